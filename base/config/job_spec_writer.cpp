#include <utility>

#include "base/config/job_spec_parser.h"
#include "base/config/scalars.h"

namespace troupe {
namespace {

const char* boolean(bool value) { return value ? "true" : "false"; }

const char* channel_name(BoundaryChannel v) {
  return v == BoundaryChannel::kAuto ? "auto" : v == BoundaryChannel::kTcp ? "tcp" : "shared_memory";
}
const char* init_name(ModelInit v) { return v == ModelInit::kPretrained ? "pretrained" : "random"; }
const char* dtype_name(DType v) { return v == DType::kFp32 ? "fp32" : v == DType::kBf16 ? "bf16" : "bf16-pure"; }
const char* too_long_name(TooLong v) {
  return v == TooLong::kFail ? "fail" : v == TooLong::kSkip ? "skip" : "truncate_text";
}
const char* schedule_name(ScheduleKind v) {
  return v == ScheduleKind::kCosine ? "cosine" : v == ScheduleKind::kLinear ? "linear" : "constant";
}

/// Lines "key: value" at a depth.
class Writer {
 public:
  void open(const std::string& key) {
    out_ += indent() + key + ":\n";
    ++depth_;
  }
  void close() { --depth_; }
  void put(const std::string& key, const std::string& value) { out_ += indent() + key + ": " + value + "\n"; }
  void item(const std::string& value) { out_ += indent() + "- " + value + "\n"; }
  void put(const std::string& key, int64_t value) { put(key, std::to_string(value)); }
  void put(const std::string& key, double value) { put(key, number_text(value)); }
  std::string take() { return std::move(out_); }

 private:
  std::string indent() const { return std::string(static_cast<size_t>(2 * depth_), ' '); }
  std::string out_;
  int depth_ = 0;
};

template <typename List, typename F>
std::string list_text(const List& list, F text) {
  std::string out;
  for (const auto& e : list) out += (out.empty() ? "" : ", ") + text(e);
  return "[" + out + "]";
}

void write_components(const JobSpec& s, Writer& w) {
  w.open("components");
  for (const auto& [name, c] : s.components)
    w.put(name, "{train: " + std::string(boolean(c.train)) + (c.lr ? ", lr: " + number_text(*c.lr) : "") + "}");
  w.close();
}

void write_groups(const JobSpec& s, Writer& w) {
  w.open("groups");
  for (const GroupSpec& g : s.groups) {
    w.open(quoted_text(g.name));
    w.put("components", list_text(g.components, quoted_text));
    w.put("mesh", "{dp: " + std::to_string(g.mesh.size(Axis::kDp)) + ", sp: " + std::to_string(g.mesh.size(Axis::kSp)) +
                      ", tp: " + std::to_string(g.mesh.size(Axis::kTp)) + "}");
    w.put("zero", int64_t{g.zero});
    w.put("tp_sequence", boolean(g.tp_sequence));
    w.put("unit", "{images: " + std::to_string(g.unit_images) + "}");
    w.put("recompute", "none");
    w.close();
  }
  w.close();
}

void write_placement(const PlacementSpec& p, Writer& w) {
  if (p.kind == PlacementKind::kColocated || p.kind == PlacementKind::kDisjoint) {
    w.put("placement", p.kind == PlacementKind::kColocated ? "colocated" : "disjoint");
    return;
  }
  w.open("placement");
  for (const auto& [name, count] : p.counts) w.put(quoted_text(name), int64_t{count});
  for (const auto& [name, slots] : p.slots) w.put(quoted_text(name), list_text(slots, quoted_text));
  w.close();
}

/// `before` and a mapping; nothing when the mapping is empty.
std::string words_text(const std::string& before, const std::map<std::string, std::string>& words) {
  std::string out;
  for (const auto& [name, word] : words)
    out += (out.empty() ? "" : ", ") + quoted_text(name) + ": " + quoted_text(word);
  return out.empty() ? out : before + "{" + out + "}";
}

void write_sources(const std::vector<DataSource>& sources, bool weighted, Writer& w) {
  if (sources.empty()) return;
  w.open("sources");
  for (const DataSource& d : sources) {
    // A fraction keeps its point: 1 would be one record.
    std::string take = d.take_records >= 0 ? std::to_string(d.take_records) : number_text(d.take_fraction);
    if (d.take_records < 0 && take.find_first_of(".e") == std::string::npos) take += ".0";
    w.item("{path: " + quoted_text(d.path) + ", image_root: " + quoted_text(d.image_root) + ", take: " + take +
           (weighted ? ", weight: " + number_text(d.weight) : "") + words_text(", columns: ", d.spelling.columns) +
           words_text(", roles: ", d.spelling.roles) + "}");
  }
  w.close();
}

void write_video(const VideoSpec& v, Writer& w) {
  if (!v.given()) return;
  w.open("video");
  if (v.fps) w.put("fps", *v.fps);
  if (v.min_frames) w.put("min_frames", *v.min_frames);
  if (v.max_frames) w.put("max_frames", *v.max_frames);
  if (v.min_pixels) w.put("min_pixels", *v.min_pixels);
  if (v.max_pixels) w.put("max_pixels", *v.max_pixels);
  w.close();
}

void write_data(const DataSpec& d, Writer& w) {
  w.open("data");
  write_sources(d.sources, /*weighted=*/true, w);
  if (d.synthetic)
    w.put("synthetic",
          "{images: " + std::to_string(d.synthetic->images) + ", pixels: " + std::to_string(d.synthetic->width) + "x" +
              std::to_string(d.synthetic->height) + ", text_tokens: " + std::to_string(d.synthetic->text_tokens) +
              ", samples: " + std::to_string(d.synthetic->samples) + "}");
  w.put("shuffle", boolean(d.shuffle));
  w.put("balance", boolean(d.balance));
  w.put("max_sample_tokens", d.max_sample_tokens);
  w.put("too_long", too_long_name(d.too_long));
  w.put("pack_tokens", d.pack_tokens);
  w.put("sort_window", d.sort_window);
  if (d.min_pixels) w.put("min_pixels", *d.min_pixels);
  if (d.max_pixels) w.put("max_pixels", *d.max_pixels);
  write_video(d.video, w);
  w.put("supervise", d.supervise == Supervise::kAll ? "all" : "last");
  w.put("workers", d.workers == 0 ? std::string("auto") : std::to_string(d.workers));
  w.put("on_bad_record", d.on_bad_record == OnBadRecord::kFail ? "fail" : "skip");
  w.close();
}

void write_training(const TrainingSpec& t, Writer& w) {
  w.open("training");
  if (t.steps) w.put("steps", *t.steps);
  if (t.epochs) w.put("epochs", *t.epochs);
  w.put("global_batch", t.global_batch);
  w.put("microbatch", t.microbatch_tokens > 0 ? "{tokens: " + std::to_string(t.microbatch_tokens) + "}"
                                              : "{samples: " + std::to_string(t.microbatch_samples) + "}");
  const OptimizerSpec& o = t.optimizer;
  w.put("optimizer", "{type: adamw, lr: " + number_text(o.lr) + ", betas: [" + number_text(o.betas[0]) + ", " +
                         number_text(o.betas[1]) + "], eps: " + number_text(o.eps) +
                         ", weight_decay: " + number_text(o.weight_decay) + ", clip: " + number_text(o.clip) + "}");
  const ScheduleSpec& s = t.schedule;
  const std::string warmup = s.warmup_steps ? "warmup_steps: " + std::to_string(*s.warmup_steps)
                                            : "warmup_ratio: " + number_text(s.warmup_ratio);
  w.put("schedule", "{type: " + std::string(schedule_name(s.type)) + ", " + warmup +
                        ", min_ratio: " + number_text(s.min_ratio) + "}");
  w.put("seed", std::to_string(t.seed));
  w.put("max_skipped", int64_t{t.max_skipped});
  w.put("bucket_bytes", t.bucket_bytes);
  w.close();
}

void write_debug(const DebugDump& d, Writer& w) {
  w.open("debug");
  w.put("dump", "{steps: " + list_text(d.steps, [](int64_t v) { return std::to_string(v); }) +
                    ", gradients: " + boolean(d.gradients) + ", vision_rows: " + boolean(d.vision_rows) +
                    ", samples: " + boolean(d.samples) + ", weights: " + boolean(d.weights) + "}");
  w.close();
}

}  // namespace

std::string job_spec_to_yaml(const JobSpec& s) {
  Writer w;
  w.put("name", quoted_text(s.name));
  w.put("device", s.device);
  w.put("threads", s.threads == 0 ? std::string("auto") : std::to_string(s.threads));
  w.put("model", "{path: " + quoted_text(s.model.path) + ", init: " + init_name(s.model.init) +
                     ", dtype: " + dtype_name(s.model.dtype) + "}");
  write_components(s, w);
  write_groups(s, w);
  write_placement(s.placement, w);
  w.open("schedule");
  w.put("credits", static_cast<int64_t>(s.credits));
  w.put("memory_gib", s.memory_gib);
  w.put("channel", channel_name(s.channel));
  w.close();
  write_data(s.data, w);
  w.open("eval");
  w.put("split", s.eval.split);
  write_sources(s.eval.sources, /*weighted=*/false, w);
  w.put("every", s.eval.every);
  w.put("max_samples", s.eval.max_samples);
  w.close();
  write_training(s.training, w);
  w.put("checkpoint", "{every: " + std::to_string(s.checkpoint.every) + ", keep: " + std::to_string(s.checkpoint.keep) +
                          ", export: " + (s.checkpoint.export_at_end ? "end" : "never") + "}");
  w.put("logging", "{every: " + std::to_string(s.log_every) + ", tensorboard: false}");
  const ProfileSpec& p = s.profile;
  w.put("profile", "{steps: [" + (p.on() ? std::to_string(p.first) + ", " + std::to_string(p.last) : std::string()) +
                       "], ranks: " +
                       (p.ranks.empty() ? std::string("all")
                                        : list_text(p.ranks, [](const std::string& r) { return quoted_text(r); })) +
                       "}");
  write_debug(s.debug, w);
  return w.take();
}

}  // namespace troupe
