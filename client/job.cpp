#include "client/job.h"

#include "client/session.h"

namespace troupe::client {
namespace {

/// Handles of another group that a call takes, and the unit that they go to.
const google::protobuf::RepeatedPtrField<wire::TensorHandle>* handles_in(const wire::Call& call, int& unit) {
  if (call.has_forward()) {
    unit = call.forward().unit();
    return &call.forward().rows();
  }
  if (call.has_backward()) {
    unit = call.backward().unit();
    return &call.backward().gradients();
  }
  return nullptr;
}

/// Sends the rows of every handle from each rank that holds a part.
void add_sends(const Session& session, const wire::Call& call, std::vector<Outgoing>& calls) {
  int unit = 0;
  const auto* handles = handles_in(call, unit);
  if (!handles) return;
  for (const wire::TensorHandle& handle : *handles) {
    const bool known = handle.group() >= 0 && handle.group() < session.directory().groups_size() &&
                       handle.rank() >= 0 && handle.rank() < session.directory().groups(handle.group()).slot_size();
    if (!known) continue;  // the host that takes it refuses it by name
    Outgoing out;
    out.to = session.address(handle.group(), handle.rank());
    out.wanted = false;
    *out.call.mutable_send_rows()->mutable_rows() = handle;
    out.call.mutable_send_rows()->set_to_unit(unit);
    calls.push_back(std::move(out));
  }
}

}  // namespace

struct TensorHandle::Held {
  std::shared_ptr<Session> session;
  std::vector<wire::TensorHandle> parts;
  ~Held() { session->drop(parts.front().group(), parts.front().object()); }
};

uint64_t TensorHandle::object() const {
  TROUPE_CHECK(held_ != nullptr);
  return held_->parts.front().object();
}

const wire::TensorHandle& TensorHandle::part(Rank rank) const {
  TROUPE_CHECK(held_ != nullptr && rank.value >= 0 && rank.value < static_cast<int>(held_->parts.size()));
  return held_->parts[static_cast<size_t>(rank.value)];
}

void TensorHandle::add_to(google::protobuf::RepeatedPtrField<wire::TensorHandle>* handles) const {
  TROUPE_CHECK(held_ != nullptr);
  for (const wire::TensorHandle& part : held_->parts) *handles->Add() = part;
}

Result<ConnectOptions> options_from(const std::map<std::string, std::string>& environment) {
  ConnectOptions options;
  for (const auto& [name, value] : environment) {
    if (name == "TROUPE_DRIVER") options.driver = value;
    if (name == "TROUPE_JOB") options.job = value;
    if (name == "TROUPE_SECRETS") options.secrets = secrets_in(value);
  }
  if (options.driver.empty() || options.job.empty())
    return invalid_argument(
        "TROUPE_DRIVER and TROUPE_JOB are not set: this program is a training loop, to be started by `troupe run JOB "
        "--loop PROGRAM`");
  return options;
}

Result<std::vector<wire::Answer>> wait_for(const std::shared_ptr<CallSet>& calls) {
  if (!calls) return make_error(ErrorCode::kFailedPrecondition, "the results of a call are waited for once");
  return calls->wait();
}

const std::string& ActorGroup::name() const { return session_->directory().groups(group_).name(); }
int ActorGroup::size() const { return session_->directory().groups(group_).slot_size(); }

std::shared_ptr<CallSet> ActorGroup::send_one(Rank rank, wire::Call call, milliseconds timeout) const {
  if (rank.value < 0 || rank.value >= size())
    return session_->refused(invalid_argument("group " + name() + " has no rank " + std::to_string(rank.value) +
                                              "; valid: 0 to " + std::to_string(size() - 1)));
  std::vector<Outgoing> calls(1);
  calls[0].to = session_->address(group_, rank.value);
  calls[0].call = std::move(call);
  return session_->send(std::move(calls), timeout);
}

std::shared_ptr<CallSet> ActorGroup::send_all(wire::Call call, milliseconds timeout) const {
  std::vector<Outgoing> calls;
  add_sends(*session_, call, calls);
  for (int rank = 0; rank < size(); ++rank) {
    Outgoing& out = calls.emplace_back();
    out.to = session_->address(group_, rank);
    out.call = call;
  }
  return session_->send(std::move(calls), timeout);
}

TensorHandle ActorGroup::new_handle(int64_t batch, int unit) const {
  auto held = std::make_shared<TensorHandle::Held>();
  held->session = session_;
  const wire::CallDirectory& directory = session_->directory();
  wire::TensorHandle part;
  part.set_generation(directory.generation());
  part.set_group(group_);
  part.set_object(session_->new_object());
  part.set_layout(group_ == directory.encoder() ? wire::TensorHandle::ROWS : wire::TensorHandle::ROW_GRADIENTS);
  part.set_batch(batch);
  part.set_unit(unit);
  for (int rank = 0; rank < size(); ++rank) {
    part.set_rank(rank);
    held->parts.push_back(part);
  }
  session_->hold(group_, part.object());
  TensorHandle handle;
  handle.held_ = std::move(held);
  return handle;
}

Job::Job(std::shared_ptr<Session> session) : session_(std::move(session)) {
  for (int g = 0; g < session_->directory().groups_size(); ++g) groups_.push_back(ActorGroup(session_, g));
}

Job::~Job() { session_->close(); }

Result<std::unique_ptr<Job>> Job::connect(const ConnectOptions& options) {
  TROUPE_ASSIGN(Directory directory, find_hosts(options.driver, options.secrets, options.job, options.timeout));
  for (int index : {directory.job.encoder(), directory.job.decoder()})
    if (index < 0 || index >= directory.job.groups_size())
      return data_loss("job " + options.job + ": its directory names group " + std::to_string(index));
  auto session = std::make_shared<Session>(std::move(directory), options.lease);
  TROUPE_RETURN_IF_ERROR(session->open(options.secrets, options.name));
  std::unique_ptr<Job> job(new Job(std::move(session)));
  // A host that refuses this loop says so here, not in the middle of a step.
  TROUPE_RETURN_IF_ERROR(job->execute_hosts(wire::EchoRequest(), options.timeout).status());
  return job;
}

Generation Job::generation() const { return Generation(session_->directory().generation()); }
ActorGroup& Job::encoder() { return groups_[static_cast<size_t>(session_->directory().encoder())]; }
ActorGroup& Job::decoder() { return groups_[static_cast<size_t>(session_->directory().decoder())]; }

std::shared_ptr<CallSet> Job::send_hosts(wire::Call call, milliseconds timeout) const {
  std::vector<Outgoing> calls;
  for (const Address& host : session_->hosts()) {
    Outgoing& out = calls.emplace_back();
    out.to = host;
    out.call = call;
  }
  return session_->send(std::move(calls), timeout);
}

Result<int> Job::finish(int64_t steps, milliseconds timeout) {
  wire::FinishRequest request;
  request.set_steps(steps);
  TROUPE_ASSIGN(const auto replies, execute_hosts(request, timeout));
  int leaked = 0;
  for (const wire::FinishReply& reply : replies) leaked += reply.leaked_handles();
  return leaked;
}

}  // namespace troupe::client
