#include "actors/bench/busy_pipeline.h"

#include <algorithm>
#include <future>
#include <map>
#include <thread>

#include "actors/host/instruction_loop.h"
#include "base/program/graph.h"
#include "base/rendezvous/memory_kv_store.h"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{60};

int64_t mix(int64_t value) { return (value * 1103515245 + 12345) % 1000003; }
/// What a unit makes of what it was given: of the sum of all messages that came for it.
int64_t worked(int group, int unit, bool backward, int64_t given) {
  return mix(given + 7 * group + 31 * unit + (backward ? 500 : 0));
}

/// One group on a host of its own.
class BusyHost {
 public:
  BusyHost(const BusyJob& job, int group, KvStore& store) : job_(job), group_(group), store_(store) {}

  Status run(std::vector<double>& seconds, std::vector<int64_t>& sums) {
    TROUPE_RETURN_IF_ERROR(connect());
    InstructionLoop loop({{group_, 0}}, &log_);
    InstructionWork work;
    work.progress = [](const Instruction&, int, int) {};
    work.perform = [this](const Instruction& i, size_t) { return perform(i); };
    work.combine = [this](const Instruction&) { return combine(); };
    TROUPE_RETURN_IF_ERROR(meet("start"));
    log_.start();
    for (step_ = 1; step_ <= job_.steps; ++step_) {
      const auto begin = Clock::now();
      sum_ = 0;
      forward_.clear();
      backward_.clear();
      {
        Span whole;
        whole.kind = SpanKind::kStep;
        whole.name = "step";
        whole.step = step_;
        const SpanScope scope(&log_, whole);
        TROUPE_RETURN_IF_ERROR(loop.run(job_.program, step_, expand(job_.program, job_.shape), work));
      }
      seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
      sums.push_back(sum_);
    }
    TROUPE_RETURN_IF_ERROR(channel_->flush(kPatience));
    return meet("end");  // nobody lets go of its channel while another reads from it
  }
  HostTrace trace() {
    HostTrace trace;
    trace.slot = group_;
    trace.node = "local";
    trace.groups = job_.program.groups;
    trace.actors = {{group_, 0}};
    trace.spans = log_.take();
    return trace;
  }

 private:
  int groups() const { return static_cast<int>(job_.program.groups.size()); }

  Status connect() {
    UcxChannelOptions options;
    options.name = "busy";
    options.self = SlotId(group_);
    options.interface_address = "127.0.0.1";
    TROUPE_ASSIGN(channel_, create_ucx_channel(options));
    if (job_.delays.most.count() > 0)
      channel_ = create_delayed_channel(std::move(channel_),
                                        {job_.delays.seed + static_cast<uint64_t>(group_), job_.delays.most});
    std::vector<SlotId> peers;
    for (int g = 0; g < groups(); ++g)
      if (g != group_) peers.push_back(SlotId(g));
    return channel_->connect(peers, store_, kPatience);
  }
  Status meet(const std::string& where) {
    TROUPE_ASSIGN(const int64_t here, store_.add("busy/" + where, 1));
    if (here == groups()) return store_.set("busy/" + where + "/all", "1");
    return store_.get("busy/" + where + "/all", kPatience).status();
  }

  Status perform(const Instruction& i) {
    switch (i.op) {
      case Op::kForward:
      case Op::kBackward: {
        Span span;
        span.kind = SpanKind::kKernel;
        span.name = op_name(i.op);
        span.step = step_;
        span.group = group_;
        span.rank = 0;
        span.unit = i.unit;
        const SpanScope scope(&log_, span);
        std::this_thread::sleep_for(std::chrono::duration<double>(job_.seconds(i.op, group_, i.unit)));
        auto& values = i.op == Op::kForward ? forward_ : backward_;
        int64_t given = values[i.unit];
        if (i.op == Op::kBackward) given += forward_[i.unit];
        values[i.unit] = worked(group_, i.unit, i.op == Op::kBackward, given);
        sum_ += values[i.unit];
        return {};
      }
      case Op::kPost:
        return send(peer_group(i), tag(i), (i.gradient ? backward_ : forward_)[i.unit]);
      case Op::kWait: {
        Span span;
        span.kind = SpanKind::kPeer;
        span.name = "receive";
        span.step = step_;
        span.group = group_;
        span.rank = 0;
        span.unit = i.unit;
        const SpanScope scope(&log_, span);
        TROUPE_ASSIGN(const int64_t value, receive(peer_group(i), tag(i)));
        (i.gradient ? backward_ : forward_)[i.unit] += value;
        return {};
      }
      default:
        return {};  // nothing is trained
    }
  }
  /// Groups exchange their sums, as the executor's do: the one thing that ends a step for all.
  Status combine() {
    for (int g = 0; g < groups(); ++g)
      if (g != group_) TROUPE_RETURN_IF_ERROR(send(g, sums_tag(group_, g), sum_));
    for (int g = 0; g < groups(); ++g)
      if (g != group_) TROUPE_RETURN_IF_ERROR(receive(g, sums_tag(g, group_)).status());
    return {};
  }

  int peer_group(const Instruction& i) const {
    const ProgramEdge& edge = job_.program.edges[static_cast<size_t>(i.edge)];
    return i.group == edge.producer ? edge.consumer : edge.producer;
  }
  MessageTag tag(const Instruction& i) const {
    const bool producer = i.group == job_.program.edges[static_cast<size_t>(i.edge)].producer;
    MessageTag t;
    t.generation = 1;
    t.edge = static_cast<uint32_t>(i.edge);
    t.step = step_;
    t.producer_unit = producer ? i.unit : i.peer_unit;
    t.consumer_unit = producer ? i.peer_unit : i.unit;
    t.backward = i.gradient;
    return t;
  }
  MessageTag sums_tag(int from, int to) const {
    MessageTag t;
    t.generation = 1;
    t.edge = 0xffff;
    t.step = step_;
    t.producer_unit = from;
    t.consumer_unit = to;
    return t;
  }
  MessageHeader header() const { return {1, job_.message_bytes, 0, 0}; }
  Status send(int to, const MessageTag& tag, int64_t value) {
    const auto bytes =
        std::make_shared<std::vector<int64_t>>(static_cast<size_t>(job_.message_bytes) / sizeof(int64_t), value);
    Payload payload;
    payload.data = reinterpret_cast<const std::byte*>(bytes->data());
    payload.bytes = static_cast<size_t>(job_.message_bytes);
    payload.owner = bytes;
    return channel_->send(SlotId(to), tag, header(), std::move(payload));
  }
  Result<int64_t> receive(int from, const MessageTag& tag) {
    TROUPE_ASSIGN(const Payload payload, channel_->receive(SlotId(from), tag, header(), kPatience));
    const auto* values = reinterpret_cast<const int64_t*>(payload.data);
    const int64_t first = values[0], last = values[payload.bytes / sizeof(int64_t) - 1];
    if (first != last) return data_loss("a message of group " + std::to_string(from) + " is torn: " + tag.to_string());
    return first;
  }

  const BusyJob& job_;
  const int group_;
  KvStore& store_;
  std::unique_ptr<Channel> channel_;
  TraceLog log_;
  int64_t step_ = 0, sum_ = 0;
  std::map<int, int64_t> forward_, backward_;
};

}  // namespace

std::vector<int64_t> expected_sums(const BusyJob& job) {
  const GroupGraph graph(job.program);
  const UnitGraph units(job.program, job.shape);
  const auto edge = [&](int e) { return job.program.edges[static_cast<size_t>(e)]; };
  std::map<std::pair<int, int>, int64_t> forward, backward;  // [group, unit]
  std::vector<int64_t> sums(job.program.groups.size(), 0);
  for (const int g : graph.order())
    for (int u = 0; u < job.shape.units[static_cast<size_t>(g)]; ++u) {
      int64_t given = 0;
      for (int e : graph.incoming(g))
        for (int v : units.feeding(e, u)) given += forward.at({edge(e).producer, v});
      forward[{g, u}] = worked(g, u, false, given);
      sums[static_cast<size_t>(g)] += forward[{g, u}];
    }
  for (auto g = graph.order().rbegin(); g != graph.order().rend(); ++g)
    for (int u = 0; graph.backwards(*g) && u < job.shape.units[static_cast<size_t>(*g)]; ++u) {
      int64_t given = forward.at({*g, u});
      for (int e : graph.outgoing(*g))
        if (edge(e).gradient)
          for (int m : units.fed_by(e, u)) given += backward.at({edge(e).consumer, m});
      backward[{*g, u}] = worked(*g, u, true, given);
      sums[static_cast<size_t>(*g)] += backward[{*g, u}];
    }
  return sums;
}

Result<BusyOutcome> run_busy_job(const BusyJob& job) {
  TROUPE_RETURN_IF_ERROR(check_program(job.program));
  TROUPE_RETURN_IF_ERROR(check_order(job.program, job.shape, expand(job.program, job.shape)));
  MemoryKvStore store;
  const size_t groups = job.program.groups.size();
  std::vector<std::unique_ptr<BusyHost>> hosts;
  std::vector<std::vector<double>> seconds(groups);
  std::vector<std::vector<int64_t>> sums(groups);
  std::vector<std::future<Status>> ends;
  for (size_t g = 0; g < groups; ++g) hosts.push_back(std::make_unique<BusyHost>(job, static_cast<int>(g), store));
  for (size_t g = 0; g < groups; ++g)
    ends.push_back(std::async(std::launch::async, [&, g] { return hosts[g]->run(seconds[g], sums[g]); }));
  Status first;
  for (auto& end : ends)
    if (const Status status = end.get(); !status.ok() && first.ok()) first = status;
  TROUPE_RETURN_IF_ERROR(first);
  BusyOutcome outcome;
  for (size_t s = 0; s < static_cast<size_t>(job.steps); ++s) {
    double longest = 0;
    std::vector<int64_t> of_step;
    for (size_t g = 0; g < groups; ++g) {
      longest = std::max(longest, seconds[g][s]);
      of_step.push_back(sums[g][s]);
    }
    outcome.step_seconds.push_back(longest);
    outcome.sums.push_back(std::move(of_step));
  }
  for (auto& host : hosts) outcome.traces.push_back(host->trace());
  return outcome;
}

}  // namespace troupe
