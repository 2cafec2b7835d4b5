#include <algorithm>
#include <csignal>
#include <map>
#include <mutex>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "transport/world/exchange_communicator.h"
#include "transport/world/kv_c10d_store.h"
#include "transport/world/posted_line.h"
#include "transport/world/solo_communicator.h"

/// Gloo is used for its connections only, through point-to-point sends and receives. Two reasons: a process group's
/// collectives cannot be interrupted, while a waiting send or receive can (Work::abort), and its reductions of bf16
/// round after every addition.
namespace troupe {
namespace {

using Work = c10::intrusive_ptr<c10d::Work>;

/// Tags of one communicator repeat after so many exchanges; Gloo keeps a queue for each tag it has seen.
constexpr int kTagsPerCommunicator = 1024;

/// The connections of one rank to all others of its world, shared by its communicators. Thread-safe: the owner and the
/// world's second line exchange at once, each through communicators of its own.
class GlooLinks {
 public:
  GlooLinks(c10::intrusive_ptr<c10d::ProcessGroupGloo> group, std::string name, std::chrono::milliseconds timeout)
      : group_(std::move(group)), name_(std::move(name)), timeout_(timeout) {}

  /// `ranks` maps a transfer's peer to its rank in the world.
  void exchange(const std::vector<PeerExchange::Transfer>& sends, const std::vector<PeerExchange::Transfer>& receives,
                const std::vector<int>& ranks, const std::string& name, int tag);
  void abort();

 private:
  struct Pending {
    Work work;
    int peer;
    bool sending;
  };
  using Exchange = std::vector<Pending>;
  void post(Exchange& exchange, const PeerExchange::Transfer& transfer, const std::vector<int>& ranks,
            const std::string& name, int tag, bool sending);
  void wait_all(const Exchange& exchange, const std::string& name);
  Error failure(const std::string& name, int peer, bool sending, const std::string& reason);

  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  std::string name_;
  std::chrono::milliseconds timeout_;
  std::vector<Exchange*> under_way_;  // each changed by its thread under mutex_, read by abort()
  std::mutex mutex_;
  bool aborted_ = false;
};

Error GlooLinks::failure(const std::string& name, int peer, bool sending, const std::string& reason) {
  std::lock_guard lock(mutex_);
  if (aborted_) return make_error(ErrorCode::kAborted, name + ": the world was aborted");
  const std::string what = name + ": " + (sending ? "sending to" : "receiving from") + " rank " + std::to_string(peer);
  if (reason.find("imed out") != std::string::npos) {
    return deadline_exceeded(what + " did not end within " + std::to_string(timeout_.count()) + " ms");
  }
  return unavailable(what + " failed: " + reason);
}

void GlooLinks::post(Exchange& exchange, const PeerExchange::Transfer& transfer, const std::vector<int>& ranks,
                     const std::string& name, int tag, bool sending) {
  if (transfer.tensor.numel() == 0) return;
  const int peer = ranks[static_cast<size_t>(transfer.peer)];
  std::vector<at::Tensor> tensors{transfer.tensor};
  std::unique_lock lock(mutex_);
  if (aborted_) {
    lock.unlock();
    throw ErrorException(failure(name, peer, sending, ""));
  }
  try {
    Work work = sending ? group_->send(tensors, peer, tag) : group_->recv(tensors, peer, tag);
    exchange.push_back({std::move(work), peer, sending});
  } catch (const std::exception& e) {
    lock.unlock();
    throw ErrorException(failure(name, peer, sending, e.what()));
  }
}

/// Works stay in the exchange while they are waited for, so that abort() can reach the one that blocks.
void GlooLinks::wait_all(const Exchange& exchange, const std::string& name) {
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  for (const Pending& pending : exchange) {
    bool done = false;
    std::string reason = "interrupted";
    // Zero would mean the default to c10d.
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    try {
      done = pending.work->wait(std::max(left, std::chrono::milliseconds(1)));
    } catch (const std::exception& e) {
      reason = e.what();
    }
    if (!done) throw ErrorException(failure(name, pending.peer, pending.sending, reason));
  }
}

void GlooLinks::exchange(const std::vector<PeerExchange::Transfer>& sends,
                         const std::vector<PeerExchange::Transfer>& receives, const std::vector<int>& ranks,
                         const std::string& name, int tag) {
  Exchange mine;
  const auto forget = [&] {
    std::lock_guard lock(mutex_);
    std::erase(under_way_, &mine);
  };
  {
    std::lock_guard lock(mutex_);
    under_way_.push_back(&mine);
  }
  try {
    for (const auto& transfer : receives) post(mine, transfer, ranks, name, tag, false);
    for (const auto& transfer : sends) post(mine, transfer, ranks, name, tag, true);
    wait_all(mine, name);
  } catch (...) {
    forget();
    throw;
  }
  forget();
}

void GlooLinks::abort() {
  std::lock_guard lock(mutex_);
  aborted_ = true;
  for (const Exchange* exchange : under_way_)
    for (const Pending& pending : *exchange) pending.work->abort();
}

/// One communicator's view of the links.
class GlooExchange final : public PeerExchange {
 public:
  GlooExchange(GlooLinks& links, std::string name, std::vector<int> ranks, int first_tag)
      : links_(links), name_(std::move(name)), ranks_(std::move(ranks)), first_tag_(first_tag) {}
  void exchange(const std::vector<Transfer>& sends, const std::vector<Transfer>& receives) override {
    // Both ends count their exchanges alike; were one ahead, its data would wait for the deadline instead of being
    // taken for another's.
    const int tag = first_tag_ + count_;
    count_ = (count_ + 1) % kTagsPerCommunicator;
    links_.exchange(sends, receives, ranks_, name_, tag);
  }

 private:
  GlooLinks& links_;
  std::string name_;
  std::vector<int> ranks_;
  int first_tag_, count_ = 0;
};

class GlooWorld final : public World {
 public:
  explicit GlooWorld(const WorldOptions& options, std::unique_ptr<GlooLinks> links);
  ~GlooWorld() override {
    if (links_ && line_ && !line_->idle()) links_->abort();
  }
  const Mesh& mesh() const override { return mesh_; }
  int rank() const override { return rank_; }
  Communicator& over(AxisSet axes) override { return find(communicators_, axes); }
  Communicator& posted_over(AxisSet axes) override { return find(posted_, axes); }
  int64_t post(std::function<void()> work) override {
    if (!line_) line_ = std::make_unique<PostedLine>();
    return line_->post(std::move(work));
  }
  void wait_posted(int64_t number) override {
    if (line_) line_->wait(number);
  }
  void abort() override {
    if (links_) links_->abort();
  }

 private:
  using Communicators = std::map<AxisSet, std::unique_ptr<Communicator>>;
  Communicators make(const std::vector<AxisSet>& all, int& first_tag);
  Communicator& find(const Communicators& made, AxisSet axes);

  std::string name_;
  Mesh mesh_;
  int rank_;
  std::unique_ptr<GlooLinks> links_;  // null: every communicator has one member
  SoloCommunicator solo_;
  Communicators communicators_, posted_;
  std::unique_ptr<PostedLine> line_;  // from the first post on; last: its thread uses the rest
};

GlooWorld::GlooWorld(const WorldOptions& options, std::unique_ptr<GlooLinks> links)
    : name_(options.name), mesh_(options.mesh), rank_(options.rank), links_(std::move(links)) {
  int first_tag = 0;
  communicators_ = make(options.axes, first_tag);
  posted_ = make(options.posted_axes, first_tag);
}

GlooWorld::Communicators GlooWorld::make(const std::vector<AxisSet>& all, int& first_tag) {
  Communicators made;
  for (const AxisSet axes : all) {
    if (mesh_.size(axes) == 1 || made.count(axes) > 0) continue;
    const std::string name = "world " + name_ + " over " + axes.to_string() + ", rank " + std::to_string(rank_);
    auto exchange = std::make_unique<GlooExchange>(*links_, name, mesh_.peers(rank_, axes), first_tag);
    made[axes] = std::make_unique<ExchangeCommunicator>(name, mesh_.index_among_peers(rank_, axes), mesh_.size(axes),
                                                        std::move(exchange));
    first_tag += kTagsPerCommunicator;
  }
  return made;
}

Communicator& GlooWorld::find(const Communicators& made, AxisSet axes) {
  if (mesh_.size(axes) == 1) return solo_;
  const auto found = made.find(axes);
  if (found == made.end()) {
    throw ErrorException(
        internal_error("world " + name_ + " was made without a communicator over " + axes.to_string()));
  }
  return *found->second;
}

/// Returns when every rank has all of its connections: one that left earlier would fail those that still connect.
Status wait_for_all(const WorldOptions& options, KvStore& store) {
  const std::string all = options.name + "/gloo-connected/all";
  TROUPE_ASSIGN(const int64_t connected, store.add(options.name + "/gloo-connected/count", 1));
  if (connected == options.mesh.ranks()) return store.set(all, "1");
  return store.get(all, options.timeout).status();
}

Result<std::unique_ptr<GlooLinks>> connect(const WorldOptions& options, KvStore& store) {
  const std::string name = "world " + options.name + ", rank " + std::to_string(options.rank);
  try {
    auto gloo = c10d::ProcessGroupGloo::Options::create(options.timeout);
    gloo->threads = 1;  // they run collectives, of which there are none
    gloo->devices = {c10d::ProcessGroupGloo::createDeviceForHostname(options.interface_address)};
    auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(
        make_kv_c10d_store(store, options.name + "/gloo/", options.timeout), options.rank, options.mesh.ranks(), gloo);
    const Status met = wait_for_all(options, store);
    if (!met.ok()) return wrap(met.error(), name + " could not meet its peers");
    return std::make_unique<GlooLinks>(std::move(group), name, options.timeout);
  } catch (const ErrorException& e) {
    return wrap(e.error, name + " could not meet its peers");
  } catch (const std::exception& e) {
    return unavailable(name + " could not connect on " + options.interface_address + ": " + e.what());
  }
}

}  // namespace

Result<std::unique_ptr<World>> create_gloo_world(const WorldOptions& options, KvStore& store) {
  if (options.rank < 0 || options.rank >= options.mesh.ranks()) {
    return invalid_argument("world " + options.name + ": rank " + std::to_string(options.rank) + " of " +
                            options.mesh.to_string());
  }
  bool connected = false;
  for (const auto* all : {&options.axes, &options.posted_axes})
    for (const AxisSet axes : *all) connected = connected || options.mesh.size(axes) > 1;
  std::unique_ptr<GlooLinks> links;
  if (connected) {
    std::signal(SIGPIPE,
                SIG_IGN);  // Gloo writes to its sockets without MSG_NOSIGNAL: a peer's death must be an error, not ours
    TROUPE_ASSIGN(links, connect(options, store));
  }
  return std::unique_ptr<World>(std::make_unique<GlooWorld>(options, std::move(links)));
}

}  // namespace troupe
