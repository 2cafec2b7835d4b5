#include "cli/noop_job.h"

#include <filesystem>
#include <fstream>

#include "base/config/job_spec_parser.h"

namespace troupe::cli {
namespace fs = std::filesystem;
namespace {

/// Shapes small enough to cost nothing; a picture of 28 x 28 pixels is one merged token, so one row crosses in a step.
constexpr char kConfig[] =
    R"({"model_type": "qwen2_5_vl", "architectures": ["Qwen2_5_VLForConditionalGeneration"], "hidden_size": 512, "num_hidden_layers": 1, "num_attention_heads": 64,
 "num_key_value_heads": 64, "intermediate_size": 64, "vocab_size": 128, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
 "max_position_embeddings": 512, "tie_word_embeddings": false, "image_token_id": 120, "video_token_id": 121, "vision_start_token_id": 122,
 "vision_end_token_id": 123, "bos_token_id": 124, "eos_token_id": 125, "rope_scaling": {"type": "mrope", "mrope_section": [2, 1, 1]},
 "vision_config": {"depth": 1, "hidden_size": 64, "num_heads": 1, "intermediate_size": 64, "out_hidden_size": 512, "patch_size": 14,
 "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112, "tokens_per_second": 2, "fullatt_block_indexes": [0], "in_channels": 3}})";

std::string job_text(const std::string& model, int vision, int text, int64_t steps) {
  return "name: bench-dispatch\nmodel: {path: " + model +
         ", init: random, dtype: fp32}\ngroups:\n  vision: {components: [vision, merger], mesh: {dp: " +
         std::to_string(vision) + "}}\n  text: {components: [text], mesh: {tp: " + std::to_string(text) +
         "}}\nplacement: disjoint\ndevice: cpu\nthreads: 1\ndata: {synthetic: {images: 1, pixels: 28x28, text_tokens: "
         "8, samples: 64}}\n"
         "training: {steps: " +
         std::to_string(steps) + ", global_batch: 1}\ncheckpoint: {export: never}\nlogging: {every: 1000000}\n";
}

}  // namespace

Result<PlannedRun> plan_noop_job(JobMode mode, const std::string& folder, int vision, int text, int64_t steps) {
  fs::create_directories(folder + "/model");
  std::ofstream(folder + "/model/config.json") << kConfig;
  std::ofstream(folder + "/job.yaml") << job_text(folder + "/model", vision, text, steps);
  TROUPE_ASSIGN(JobSpec spec, load_job_spec(folder + "/job.yaml"));
  TROUPE_ASSIGN(PlannedRun planned, plan_run(std::move(spec), nullptr));
  planned.job.mode = mode;
  planned.job.run_folder = folder + "/run";
  return planned;
}

}  // namespace troupe::cli
