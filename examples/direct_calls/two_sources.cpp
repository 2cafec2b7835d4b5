#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/config/variables.h"
#include "client/job.h"

/// A training loop of one's own: its batches come from the job's data sources in turn, and everything else is as the
/// recorded loop does it. A line of JSON a step on standard output.
///
///   troupe run examples/direct_calls/job.yaml --loop build/release/bin/two_sources --loop-arg=--steps=20
namespace {

using namespace troupe;
using namespace troupe::client;

struct Flags {
  int64_t steps = 10, batch = 8;
  double learning_rate = 1e-3, clip = 1.0;
  bool save = false;
};

/// Where each source of the job's data stands.
struct Source {
  std::string path;
  int64_t first = 0, samples = 0, taken = 0;
  /// The next samples; from the start again behind the last one.
  std::vector<int64_t> take(int64_t count) {
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < count; ++i) numbers.push_back(first + taken++ % samples);
    return numbers;
  }
};

Result<std::vector<Source>> sources_of(Job& job) {
  TROUPE_ASSIGN(const wire::DescribeReply told, job.decoder().execute(Rank(0), wire::DescribeRequest()));
  std::vector<Source> sources;
  for (const auto& s : told.sources())
    if (s.samples() > 0) sources.push_back({s.path(), s.first_sample(), s.samples()});
  if (sources.empty()) return invalid_argument("the job has no sample");
  return sources;
}

/// Calls that are on their way; they are waited for together, so that no round trip stands between two of them.
class Waits {
 public:
  template <typename Reply>
  void add(Pending<Reply> pending) {
    waits_.push_back([pending = std::move(pending)]() mutable { return pending.wait().status(); });
  }
  Status all() {
    for (auto& wait : waits_) TROUPE_RETURN_IF_ERROR(wait());
    waits_.clear();
    return {};
  }

 private:
  std::vector<std::function<Status()>> waits_;
};

/// Forward and backward of every unit. Handles are passed on before the calls that make them are done.
Status run_units(Job& job, int64_t step, const wire::BeginBatchReply& batch) {
  ActorGroup &encoder = job.encoder(), &decoder = job.decoder();
  std::vector<TensorHandle> rows, gradients;
  Waits waits;
  for (int u = 0; u < batch.encoder_units(); ++u) {
    rows.push_back(encoder.new_handle(step, u));
    wire::ForwardRequest forward;
    forward.set_unit(u);
    forward.set_object(rows.back().object());
    waits.add(encoder.execute_all_async(forward));
  }
  for (int m = 0; m < batch.decoder_units(); ++m) {
    wire::ForwardRequest forward;
    forward.set_unit(m);
    for (int u = 0; u < batch.encoder_units(); ++u)
      for (int fed : batch.feeds(u).decoder_unit())
        if (fed == m) rows[static_cast<size_t>(u)].add_to(forward.mutable_rows());
    waits.add(decoder.execute_all_async(forward));
    gradients.push_back(decoder.new_handle(step, m));
    wire::BackwardRequest backward;
    backward.set_unit(m);
    backward.set_object(gradients.back().object());
    waits.add(decoder.execute_all_async(backward));
  }
  for (int u = 0; u < batch.encoder_units(); ++u) {
    wire::BackwardRequest backward;
    backward.set_unit(u);
    for (int m : batch.feeds(u).decoder_unit()) gradients[static_cast<size_t>(m)].add_to(backward.mutable_gradients());
    waits.add(encoder.execute_all_async(backward));
  }
  return waits.all();
}

struct StepSums {
  double loss = 0, norm_squared = 0, non_finite = 0;
};

/// Gradients are summed over each group; what the ranks own is added up in rank order, then in group order.
Result<StepSums> reduce(Job& job) {
  std::vector<Pending<wire::ReduceReply>> pending;
  for (ActorGroup& group : job.groups()) pending.push_back(group.execute_all_async(wire::ReduceRequest()));
  StepSums all;
  for (auto& group : pending) {
    TROUPE_ASSIGN(const auto replies, group.wait());
    StepSums sums;
    for (const wire::ReduceReply& reply : replies) {
      sums.loss += reply.loss_sum();
      sums.norm_squared += reply.norm_squared();
      sums.non_finite += reply.non_finite();
    }
    all.loss += sums.loss;
    all.norm_squared += sums.norm_squared;
    all.non_finite += sums.non_finite;
  }
  return all;
}

Status update(Job& job, const Flags& flags, int64_t number, double norm) {
  wire::UpdateRequest request;
  request.set_number(number);
  for (const char* component : {"vision", "merger", "text"})
    (*request.mutable_learning_rate())[component] = flags.learning_rate;
  request.set_gradient_scale(flags.clip > 0 ? std::min(1.0, flags.clip / (norm + 1e-6)) : 1.0);
  Waits waits;
  for (ActorGroup& group : job.groups()) waits.add(group.execute_all_async(request));
  return waits.all();
}

Status train(Job& job, const Flags& flags) {
  TROUPE_ASSIGN(std::vector<Source> sources, sources_of(job));
  int64_t updates = 0;
  for (int64_t step = 1; step <= flags.steps; ++step) {
    Source& source = sources[static_cast<size_t>(step - 1) % sources.size()];
    wire::BeginBatchRequest begin;
    begin.set_batch(step);
    for (int64_t sample : source.take(flags.batch)) begin.add_samples(sample);
    TROUPE_ASSIGN(const auto batches, job.execute_hosts(begin));
    TROUPE_RETURN_IF_ERROR(run_units(job, step, batches.front()));
    TROUPE_ASSIGN(const StepSums sums, reduce(job));
    const double norm = std::sqrt(sums.norm_squared);
    const double loss = sums.loss / static_cast<double>(std::max<int64_t>(batches.front().supervised(), 1));
    const bool good = sums.non_finite == 0 && std::isfinite(loss) && std::isfinite(norm);
    if (good) TROUPE_RETURN_IF_ERROR(update(job, flags, ++updates, norm));
    const nlohmann::ordered_json line = {
        {"step", step}, {"source", source.path}, {"loss", loss}, {"grad_norm", norm}, {"updated", good}};
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }
  if (flags.save) {
    wire::SaveRequest save;
    save.set_step(flags.steps);
    TROUPE_RETURN_IF_ERROR(job.execute_hosts(save).status());
  }
  return job.finish(flags.steps).status();
}

Status run(const Flags& flags) {
  TROUPE_ASSIGN(ConnectOptions options, options_from(process_environment()));
  options.name = "two_sources";
  TROUPE_ASSIGN(const auto job, Job::connect(options));
  return train(*job, flags);
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("A training loop that takes its batches from the job's data sources in turn.", "two_sources");
  app.add_option("--steps", flags.steps, "steps to train")->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app.add_option("--batch", flags.batch, "samples of a step")->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  app.add_option("--lr", flags.learning_rate, "learning rate of every component");
  app.add_option("--clip", flags.clip, "bound of the gradient norm; 0: none");
  app.add_flag("--save", flags.save, "save a checkpoint behind the last step");
  CLI11_PARSE(app, argc, argv);
  const Status status = run(flags);
  if (status.ok()) return 0;
  std::fprintf(stderr, "two_sources: %s\n", status.error().to_string().c_str());
  return 1;
}
