#include "actors/host/metrics.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "actors/host/memory.h"
#include "base/data/step_balance.h"

namespace troupe {

TrainedParts trained_parts(const JobSpec& spec) {
  const auto trained = [&](const char* name) {
    const auto at = spec.components.find(name);
    return at == spec.components.end() || at->second.train;
  };
  return {trained("vision"), trained("merger"), trained("text")};
}

double step_flops(const ModelConfig& config, const TrainedParts& trained, const StepPlan& plan,
                  const SampleIndex& index) {
  const VisionConfig& v = config.vision;
  const TextConfig& t = config.text;
  const auto d = [](int64_t x) { return static_cast<double>(x); };
  // A matrix product costs its forward again for the weight's gradient and again for the input's; attention twice for
  // its inputs'.
  const auto products = [](bool own, bool input) { return 1.0 + (own ? 1 : 0) + (input ? 1 : 0); };
  const double vision_work = products(trained.vision, trained.vision), vision_attention = trained.vision ? 3 : 1;
  const double merger_work = products(trained.merger, trained.vision);
  const bool into_text = trained.vision || trained.merger || trained.text;
  const double text_work = products(trained.text, into_text), text_attention = into_text ? 3 : 1;
  double total = 0;
  const double vision_layer = 2 * (4 * d(v.hidden) * d(v.hidden) + 3 * d(v.hidden) * d(v.intermediate));
  const double window = d(v.window_size / v.patch_size) * d(v.window_size / v.patch_size);
  const double full = d(static_cast<int64_t>(v.full_attention_blocks.size()));
  const double merged_hidden = d(v.hidden * v.merge_size * v.merge_size);
  for (const StepImage& image : plan.images) {
    const double n = d(image.grid.patches()), frame = d(int64_t{image.grid.h} * image.grid.w);
    total += vision_work * (d(v.depth) * vision_layer + 2 * d(v.patch_dim()) * d(v.hidden)) * n;
    total += vision_attention * 4 * n * d(v.hidden) * (full * frame + (d(v.depth) - full) * std::min(window, frame));
    total += merger_work * d(image.grid.tokens(v.merge_size)) * 2 *
             (merged_hidden * merged_hidden + merged_hidden * d(v.out_hidden));
  }
  const double kv = d(t.kv_heads * t.head_dim), q = d(t.heads * t.head_dim);
  const double text_layer = 2 * (2 * d(t.hidden) * q + 2 * d(t.hidden) * kv + 3 * d(t.hidden) * d(t.intermediate));
  for (int64_t s : plan.samples) {
    const double n = d(index.samples[static_cast<size_t>(s)].tokens);
    total += d(t.layers) * (text_work * text_layer * n + text_attention * 2 * n * n * q);  // causal: half of 4 n^2 q
    total += text_work * 2 * d(t.hidden) * d(t.vocabulary) * d(index.samples[static_cast<size_t>(s)].supervised);
  }
  return total;
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
  j["left_out"] = plan.left_out;
  j["grad_norm"] = outcome.grad_norm;
  j["lr"] = outcome.lr;
  j["skipped"] = outcome.skipped;
  j["skipped_total"] = skipped_total;
  j["step_ms"] = time.seconds * 1e3;
  j["input_wait_ms"] = time.input_wait_seconds * 1e3;
  j["tokens_per_s"] = static_cast<double>(plan.tokens) / time.seconds;
  j["tflops_per_device"] = step_flops(job.config, trained_parts(job.spec), plan, job.data->index()) / time.seconds /
                           1e12 / static_cast<double>(job.assignment.slots.size());
  return j.dump();
}

std::optional<double> loss_of_step(const std::string& run_folder, int64_t step) {
  std::ifstream in(run_folder + "/metrics.jsonl");
  std::optional<double> loss;
  for (std::string line; std::getline(in, line);) {
    const auto j = nlohmann::json::parse(line, nullptr, false);  // the last line may be cut
    if (j.is_object() && j.value("step", int64_t{0}) == step && j.contains("loss"))
      loss = j["loss"].is_number() ? std::optional(j["loss"].get<double>()) : std::nullopt;
  }
  return loss;
}

int next_attempt(const std::string& run_folder, int64_t step) {
  std::ifstream in(run_folder + "/metrics.jsonl");
  int attempt = 1;
  for (std::string line; std::getline(in, line);) {
    const auto j = nlohmann::json::parse(line, nullptr, false);  // the last line may be cut
    if (j.is_object() && j.contains("attempt") && j.value("step", int64_t{0}) > step)
      attempt = std::max(attempt, j.value("attempt", 1) + 1);
  }
  return attempt;
}

std::string local_line(const JobContext& job, const std::vector<std::unique_ptr<Actor>>& actors,
                       const std::vector<int64_t>& activation_peaks) {
  constexpr double kMib = 1024.0 * 1024.0;
  nlohmann::ordered_json j;
  j["peak_memory_mib"] = static_cast<double>(peak_device_bytes()) / kMib;
  for (size_t a = 0; a < actors.size(); ++a)
    j["activation_peak_mib"][job.group(actors[a]->group()).name + "/" + std::to_string(actors[a]->rank())] =
        static_cast<double>(activation_peaks[a]) / kMib;
  return j.dump();
}

}  // namespace troupe
