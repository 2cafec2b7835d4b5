#include "actors/host/metrics.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "actors/host/memory.h"
#include "base/data/step_balance.h"

namespace troupe {

double step_flops(const ModelConfig& config, const StepPlan& plan, const SampleIndex& index) {
  const VisionConfig& v = config.vision;
  const TextConfig& t = config.text;
  const auto d = [](int64_t x) { return static_cast<double>(x); };
  double forward = 0;
  const double vision_layer = 2 * (4 * d(v.hidden) * d(v.hidden) + 3 * d(v.hidden) * d(v.intermediate));
  const double window = d(v.window_size / v.patch_size) * d(v.window_size / v.patch_size);
  const double full = d(static_cast<int64_t>(v.full_attention_blocks.size()));
  const double merged_hidden = d(v.hidden * v.merge_size * v.merge_size);
  for (const StepImage& image : plan.images) {
    const double n = d(image.grid.patches()), frame = d(int64_t{image.grid.h} * image.grid.w);
    forward += d(v.depth) * vision_layer * n + full * 4 * n * frame * d(v.hidden) + (d(v.depth) - full) * 4 * n * std::min(window, frame) * d(v.hidden);
    forward += 2 * d(v.patch_dim()) * d(v.hidden) * n;
    forward += d(image.grid.tokens(v.merge_size)) * 2 * (merged_hidden * merged_hidden + merged_hidden * d(v.out_hidden));
  }
  const double kv = d(t.kv_heads * t.head_dim), q = d(t.heads * t.head_dim);
  const double text_layer = 2 * (2 * d(t.hidden) * q + 2 * d(t.hidden) * kv + 3 * d(t.hidden) * d(t.intermediate));
  for (int64_t s : plan.samples) {
    const double n = d(index.samples[static_cast<size_t>(s)].tokens);
    forward += d(t.layers) * (text_layer * n + 2 * n * n * q);  // causal: half of 4 n^2 q
    forward += 2 * d(t.hidden) * d(t.vocabulary) * d(index.samples[static_cast<size_t>(s)].supervised);
  }
  return 3 * forward;
}

std::string step_line(const JobContext& job, const StepPlan& plan, const StepOutcome& outcome, const StepTime& time,
                      int64_t skipped_total, int attempt) {
  nlohmann::ordered_json j;
  j["step"] = plan.step;
  j["attempt"] = attempt;
  j["data_epoch"] = plan.data_epoch;
  j["loss"] = outcome.sums.loss / static_cast<double>(std::max<int64_t>(plan.supervised, 1));
  j["supervised_tokens"] = plan.supervised;
  j["tokens"] = plan.tokens;
  j["samples"] = plan.samples.size();
  j["images"] = plan.images.size();
  j["vision_rows"] = plan.rows;
  j["wire_rows"] = static_cast<int64_t>(outcome.sums.wire_rows);
  j["in_process_rows"] = static_cast<int64_t>(outcome.sums.in_process_rows);
  const StepBalance balance =
      step_balance(plan, job.data->index(), job.config.vision, job.group(job.encoder).mesh, job.spec.data.pack_tokens);
  j["text_imbalance"] = balance.text_imbalance;
  j["vision_imbalance"] = balance.vision_imbalance;
  j["pack_fill"] = balance.pack_fill;
  j["bad_records"] = job.data->index().bad.size();
  j["grad_norm"] = outcome.grad_norm;
  j["lr"] = outcome.lr;
  j["skipped"] = outcome.skipped;
  j["skipped_total"] = skipped_total;
  j["step_ms"] = time.seconds * 1e3;
  j["input_wait_ms"] = time.input_wait_seconds * 1e3;
  j["tokens_per_s"] = static_cast<double>(plan.tokens) / time.seconds;
  j["tflops_per_device"] = step_flops(job.config, plan, job.data->index()) / time.seconds / 1e12 /
                           static_cast<double>(job.assignment.slots.size());
  return j.dump();
}

int next_attempt(const std::string& run_folder, int64_t step) {
  std::ifstream in(run_folder + "/metrics.jsonl");
  int attempt = 1;
  for (std::string line; std::getline(in, line);) {
    const auto j = nlohmann::json::parse(line, nullptr, false);  // the last line may be cut
    if (j.is_object() && j.contains("attempt") && j.value("step", int64_t{0}) > step) attempt = std::max(attempt, j.value("attempt", 1) + 1);
  }
  return attempt;
}

std::string local_line(const JobContext& job, const std::vector<std::unique_ptr<Actor>>& actors, const std::vector<int64_t>& activation_peaks) {
  constexpr double kMib = 1024.0 * 1024.0;
  nlohmann::ordered_json j;
  j["peak_memory_mib"] = static_cast<double>(peak_device_bytes()) / kMib;
  for (size_t a = 0; a < actors.size(); ++a)
    j["activation_peak_mib"][job.group(actors[a]->group()).name + "/" + std::to_string(actors[a]->rank())] = static_cast<double>(activation_peaks[a]) / kMib;
  return j.dump();
}

}  // namespace troupe
