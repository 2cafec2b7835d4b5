#include "actors/calls/serve.h"

#include <nlohmann/json.hpp>

#include "actors/calls/call_target.h"
#include "actors/host/checkpointing.h"
#include "actors/host/meeting.h"
#include "actors/rpc/call_port.h"
#include "base/checkpoint/checkpoint_folder.h"
#include "proto/rpc/call_keys.h"

namespace troupe {
namespace {

using Clock = HandleTable::Clock;
/// Between two looks at leases and at whether the job is stopping.
constexpr std::chrono::milliseconds kLook{100};

LeaseEvents events_of(HandleTable& handles) {
  LeaseEvents events;
  events.greeted = [&](std::chrono::milliseconds lease) { handles.set_lease(lease); };
  events.renewed = [&](const auto& objects) { handles.renew(objects, Clock::now()); };
  return events;
}

Status announce(const JobContext& job, KvStore& store, const std::string& address) {
  const HostAssignment& a = job.assignment;
  TROUPE_RETURN_IF_ERROR(store.set(call_address_key(a.generation, a.self), address));
  if (!is_leader(job)) return {};
  wire::CallDirectory directory;
  directory.set_generation(a.generation.value);
  directory.set_encoder(job.encoder);
  directory.set_decoder(job.decoder);
  for (size_t g = 0; g < job.spec.groups.size(); ++g) {
    auto& group = *directory.add_groups();
    group.set_name(job.spec.groups[g].name);
    for (int slot : a.group_slots[g]) group.add_slot(slot);
  }
  return store.set(kCallDirectoryKey, directory.SerializeAsString());
}

Status finish(Host& host, HostControl& control, const CallTarget& target, const HandleTable& handles) {
  const std::vector<std::string> leaked = handles.held();
  for (const std::string& handle : leaked)
    control.report_event("handle_leaked", nlohmann::json{{"handle", handle}}.dump());
  const JobContext& job = host.job();
  if (job.spec.checkpoint.export_at_end && !is_noop(job.assignment.mode))
    TROUPE_RETURN_IF_ERROR(export_checkpoint(job, host.actors(), job.assignment.run_folder + "/export"));
  TROUPE_RETURN_IF_ERROR(host.boundary().close());
  const std::string slot = std::to_string(job.assignment.self.value);
  const nlohmann::json result = {{"steps", target.steps()},
                                 {"complete", true},
                                 {"calls", {{slot, target.calls()}}},
                                 {"handles_leaked", {{slot, leaked.size()}}},
                                 {"handles_expired", {{slot, handles.expired_count()}}}};
  return control.report_finished(result.dump());
}

void carry_out(const IncomingCall& incoming, CallTarget& target, CallPort& port, HostControl& control) {
  wire::Answer answer = target.carry_out(incoming.call, incoming.deadline);
  if (target.finished()) control.report_finishing();  // ahead of the answer: the loop may leave behind it
  port.answer(incoming.session, std::move(answer));
}

}  // namespace

Status serve_calls(Host& host, HostControl& control) {
  const std::string address = control.call_address();
  if (address.empty())
    return make_error(ErrorCode::kUnimplemented,
                      "calls from a loop of one's own need a job on one machine, without a cluster manifest; over TCP "
                      "they are not built yet");
  if (is_leader(host.job())) TROUPE_RETURN_IF_ERROR(discard_unfinished(control.assignment().run_folder));
  HandleTable handles(control.assignment().generation);
  CallTarget target(host, handles);
  TROUPE_ASSIGN(auto port, CallPort::listen(address, events_of(handles)));
  TROUPE_RETURN_IF_ERROR(announce(host.job(), control.store(), address));
  control.report_ready();
  auto next_look = Clock::now() + kLook;
  while (!target.finished()) {
    IncomingCall incoming;
    const bool came = port->take(incoming, kLook);
    if (came && !incoming.released.empty())
      handles.release(incoming.released);
    else if (came)
      carry_out(incoming, target, *port, control);
    if (const auto now = Clock::now(); now >= next_look) {
      if (control.stop_requested()) return cancelled("the job is stopping");
      // While calls wait in the loop's process, so do its renewals.
      if (port->full())
        handles.renew_all(now);
      else
        handles.expire(now);
      next_look = now + kLook;
    }
  }
  port.reset();  // the last answer leaves
  return finish(host, control, target, handles);
}

}  // namespace troupe
