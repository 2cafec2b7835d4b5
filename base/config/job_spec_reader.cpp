#include "base/config/job_spec_reader.h"

#include <algorithm>
#include <cctype>
#include <tuple>

#include "base/config/data_sources.h"
#include "base/config/scalars.h"

namespace troupe {
namespace {

// What a machine can hold or a run can last: a number beyond it is a slip, and would be found out only by waiting.
constexpr int64_t kMaxSteps = 1'000'000'000, kMaxBatch = 1 << 17, kMaxTokens = 10'000'000, kMaxPixels = 1 << 30,
                  kMaxBucketBytes = int64_t{1} << 40, kMaxFrames = 1 << 16;
constexpr double kLeastFps = 0.001, kMostFps = 1000;

bool is_plain_name(const std::string& name) {
  const bool good = std::all_of(name.begin(), name.end(),
                                [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
  return good && !name.empty() && name[0] != '.' && name[0] != '-' && name.size() <= 64;
}

void check_name(const Section& s, const std::string& key, const std::string& name) {
  if (!is_plain_name(name))
    s.bad_value(key, "'" + name + "'", "up to 64 letters, digits, '-', '_' and '.', beginning with a letter or digit");
}

void path_key(const Section& s, const std::string& key, const std::string& folder, std::string& out) {
  s.string(key, out);
  if (s.has(key) && out.empty()) s.bad_value(key, "\"\"", "a path");
  if (!out.empty()) out = resolve_path(out, folder);
}

void read_model(const Section& s, const Section& root, const std::string& folder, ModelSpec& m) {
  if (!root.has("model"))
    root.fail("model", "is missing; valid: {path: FOLDER, init: pretrained | random, dtype: fp32 | bf16 | bf16-pure}");
  if (s.present() && !s.has("path")) s.fail("path", "is missing; valid: a Hugging Face model folder");
  path_key(s, "path", folder, m.path);
  s.choice<ModelInit>("init", m.init, {{"pretrained", ModelInit::kPretrained}, {"random", ModelInit::kRandom}});
  s.choice<DType>("dtype", m.dtype, {{"fp32", DType::kFp32}, {"bf16", DType::kBf16}, {"bf16-pure", DType::kBf16Pure}});
}

void read_components(const Section& s, std::map<std::string, ComponentSpec>& out) {
  for (const char* name : {"vision", "merger", "text"}) out[name] = {};
  for (const auto& [name, section] : s.sections()) {
    auto it = out.find(name);
    if (it == out.end()) {
      const std::string near = nearest_word(name, {"vision", "merger", "text"});
      s.fail(name, "unknown component" + (near.empty() ? std::string() : "; did you mean '" + near + "'?") +
                       "; valid: vision, merger, text");
      continue;
    }
    section.boolean("train", it->second.train);
    if (!section.has("lr")) continue;
    double lr = -1;
    section.number("lr", lr, 0);
    if (lr >= 0) it->second.lr = lr;
  }
}

void read_mesh(const Section& s, Mesh& mesh) {
  static constexpr std::pair<const char*, Axis> kAxes[] = {{"dp", Axis::kDp}, {"sp", Axis::kSp}, {"tp", Axis::kTp}};
  for (const auto& [key, axis] : kAxes) {
    const YamlNode* n = s.present() ? s.find(key) : nullptr;
    if (n && n->kind == YamlKind::kScalar && n->text == "auto") {
      s.fail(key, "value 'auto' is not built yet; valid: an integer from 1 to 4096");
      continue;
    }
    int size = 1;
    s.integer(key, size, 1, 4096);
    mesh.set(axis, size);
  }
}

void read_zero(const Section& s, int& zero) {
  s.integer("zero", zero, 0, 3);
  if (zero < 2) return;
  s.fail("zero", "value " + std::to_string(zero) + " is not built yet; valid: 0, 1");
  zero = 1;
}

std::vector<std::string> string_list(const Section& s, const std::string& key, const std::string& valid) {
  const YamlNode* n = s.find(key);
  if (!n) return {};
  if (n->kind == YamlKind::kScalar) return {n->text};
  std::vector<std::string> out;
  for (const YamlNode& item : n->items)
    if (item.kind == YamlKind::kScalar) out.push_back(item.text);
  if (n->kind != YamlKind::kSequence || out.size() != n->items.size()) s.bad_value(key, n->describe(), valid);
  return out;
}

GroupSpec read_group(const std::string& name, const Section& s) {
  GroupSpec g;
  g.name = name;
  g.components = string_list(s, "components", "a list of vision, merger, text");
  read_mesh(s.section("mesh"), g.mesh);
  read_zero(s, g.zero);
  s.boolean("tp_sequence", g.tp_sequence);
  s.section("unit").integer("images", g.unit_images, 0, 1'000'000);
  return g;
}

/// Groups named after components hold them unless the spec says otherwise; the merger goes with the vision encoder.
void default_components(const Section& s, std::vector<GroupSpec>& groups) {
  auto claimed = [&](const std::string& component) {
    return std::any_of(groups.begin(), groups.end(), [&](const GroupSpec& g) {
      return std::find(g.components.begin(), g.components.end(), component) != g.components.end();
    });
  };
  const bool merger_claimed = claimed("merger");
  for (GroupSpec& g : groups) {
    if (!g.components.empty()) continue;
    if (g.name == "text") g.components = {"text"};
    if (g.name == "vision")
      g.components = merger_claimed ? std::vector<std::string>{"vision"} : std::vector<std::string>{"vision", "merger"};
    if (g.components.empty()) s.fail(g.name, "key 'components' is missing; valid: a list of vision, merger, text");
  }
}

void read_groups(const Section& root, std::vector<GroupSpec>& groups) {
  const Section s = root.section("groups");
  for (const auto& [name, section] : s.sections()) {
    check_name(s, name, name);
    groups.push_back(read_group(name, section));
  }
  if (!s.present() || groups.empty()) {
    groups.clear();
    for (const char* name : {"vision", "text"})
      groups.push_back(read_group(name, Section(nullptr, "", s.place(), s.diagnostics())));
  }
  default_components(s, groups);
}

void read_placement_map(const YamlNode& n, const Section& root, PlacementSpec& p) {
  const Section s(&n, "placement", n.place, root.diagnostics());
  bool counts = false, lists = false;
  for (const YamlEntry& e : n.entries) {
    const bool number = e.value.kind == YamlKind::kScalar && parse_integer(e.value.text).has_value();
    (number ? counts : lists) = true;
    if (number)
      s.integer(e.key, p.counts[e.key], 1, 100'000);
    else
      p.slots[e.key] = string_list(s, e.key, "a number of slots, or a list such as [\"a:0-3\", \"b:*\"]");
  }
  if (counts && lists)
    root.fail("placement", "mixes numbers of slots and lists of slots; valid: one kind for all groups");
  p.kind = lists ? PlacementKind::kExplicit : PlacementKind::kCounts;
}

void read_placement(const Section& root, PlacementSpec& p) {
  const YamlNode* n = root.find("placement");
  if (!n) return;
  if (n->is_map() && !n->entries.empty()) return read_placement_map(*n, root, p);
  if (n->kind == YamlKind::kScalar && n->text == "colocated") {
    p.kind = PlacementKind::kColocated;
  } else if (n->kind == YamlKind::kScalar && n->text == "disjoint") {
    p.kind = PlacementKind::kDisjoint;
  } else {
    root.bad_value("placement", n->describe(),
                   "colocated, disjoint, {GROUP: NUMBER OF SLOTS, ...} or {GROUP: [\"NODE:0-3\", \"NODE:*\"], ...}");
  }
}

void read_synthetic(const Section& s, std::optional<SyntheticData>& out) {
  if (!s.present()) return;
  SyntheticData d;
  s.integer("images", d.images, 0, 10'000);
  s.integer("text_tokens", d.text_tokens, 1, 10'000'000);
  s.integer("samples", d.samples, 1, kMaxTokens);
  if (const YamlNode* n = s.find("pixels")) {
    const auto size = n->kind == YamlKind::kScalar ? parse_pixel_size(n->text) : std::nullopt;
    if (size) {
      d.width = static_cast<int>(size->width);
      d.height = static_cast<int>(size->height);
    } else {
      s.bad_value("pixels", n->describe(), "WIDTHxHEIGHT, such as 448x448");
    }
  }
  out = d;
}

void optional_integer(const Section& s, const std::string& key, std::optional<int64_t>& out, int64_t minimum,
                      int64_t maximum) {
  if (!s.has(key)) return;
  int64_t value = minimum - 1;
  s.integer(key, value, minimum, maximum);
  if (value >= minimum) out = value;
}

void read_video(const Section& s, VideoSpec& v) {
  if (s.has("fps")) {
    double fps = 0;
    s.number("fps", fps, kLeastFps, kMostFps);
    if (fps > 0) v.fps = fps;
  }
  optional_integer(s, "min_frames", v.min_frames, 1, kMaxFrames);
  optional_integer(s, "max_frames", v.max_frames, 2, kMaxFrames);
  optional_integer(s, "min_pixels", v.min_pixels, 1, kMaxPixels);
  optional_integer(s, "max_pixels", v.max_pixels, 1, kMaxPixels);
}

/// An integer from 1, or the word `auto` (0).
void integer_or_auto(const Section& s, const std::string& key, int& out) {
  const YamlNode* n = s.find(key);
  if (!n) return;
  if (n->kind == YamlKind::kScalar && n->text == "auto")
    out = 0;
  else
    s.integer(key, out, 1, 4096);
}

void read_data(const Section& s, const std::string& folder, DataSpec& d) {
  d.sources = read_data_sources(s, s, folder);
  read_synthetic(s.section("synthetic"), d.synthetic);
  s.boolean("shuffle", d.shuffle);
  s.boolean("balance", d.balance);
  s.integer("max_sample_tokens", d.max_sample_tokens, 1, kMaxTokens);
  s.choice<TooLong>("too_long", d.too_long,
                    {{"fail", TooLong::kFail}, {"skip", TooLong::kSkip}, {"truncate_text", TooLong::kTruncateText}});
  s.integer("pack_tokens", d.pack_tokens, 0, kMaxTokens);
  s.integer("sort_window", d.sort_window, 0, 1 << 20);
  optional_integer(s, "min_pixels", d.min_pixels, 1, kMaxPixels);
  optional_integer(s, "max_pixels", d.max_pixels, 1, kMaxPixels);
  read_video(s.section("video"), d.video);
  s.choice<Supervise>("supervise", d.supervise, {{"all", Supervise::kAll}, {"last", Supervise::kLast}});
  integer_or_auto(s, "workers", d.workers);
  s.choice<OnBadRecord>("on_bad_record", d.on_bad_record, {{"fail", OnBadRecord::kFail}, {"skip", OnBadRecord::kSkip}});
}

void read_eval(const Section& s, const Section& data, const std::string& folder, EvalSpec& e) {
  s.number("split", e.split, 0, 0.9);
  e.sources = read_data_sources(s, data, folder);
  s.integer("every", e.every, 0, kMaxSteps);
  s.integer("max_samples", e.max_samples, 0, kMaxSteps);
}

void read_optimizer(const Section& s, OptimizerSpec& o) {
  s.number("lr", o.lr, 0);
  s.number("eps", o.eps, 0);
  s.number("weight_decay", o.weight_decay, 0);
  s.number("clip", o.clip, 0);
  const YamlNode* n = s.find("betas");
  if (!n) return;
  std::vector<double> betas;
  for (const YamlNode& item : n->items)
    if (const auto v = item.quoted ? std::nullopt : parse_number(item.text); v && *v >= 0 && *v < 1)
      betas.push_back(*v);
  if (n->items.size() == 2 && betas.size() == 2)
    o.betas = {betas[0], betas[1]};
  else
    s.bad_value("betas", n->describe(), "two numbers from 0 to below 1, such as [0.9, 0.95]");
}

void read_schedule(const Section& s, ScheduleSpec& c) {
  s.choice<ScheduleKind>(
      "type", c.type,
      {{"cosine", ScheduleKind::kCosine}, {"linear", ScheduleKind::kLinear}, {"constant", ScheduleKind::kConstant}});
  s.number("warmup_ratio", c.warmup_ratio, 0, 1);
  optional_integer(s, "warmup_steps", c.warmup_steps, 0, kMaxSteps);
  s.number("min_ratio", c.min_ratio, 0, 1);
}

void read_training(const Section& s, TrainingSpec& t) {
  optional_integer(s, "steps", t.steps, 1, kMaxSteps);
  if (s.has("epochs")) {
    double epochs = 0;
    s.number("epochs", epochs, 0, 1e6);
    if (epochs > 0)
      t.epochs = epochs;
    else if (const YamlNode* n = s.find("epochs"); n && parse_number(n->text) == 0.0)
      s.bad_value("epochs", n->describe(), "a number above 0");
  }
  s.integer("global_batch", t.global_batch, 1, kMaxBatch);
  const Section micro = s.section("microbatch");
  micro.integer("samples", t.microbatch_samples, 1, kMaxBatch);
  micro.integer("tokens", t.microbatch_tokens, 1, kMaxTokens);
  if (micro.has("samples") && micro.has("tokens")) micro.fail("tokens", "excludes 'samples'; valid: one of the two");
  read_optimizer(s.section("optimizer"), t.optimizer);
  read_schedule(s.section("schedule"), t.schedule);
  int64_t seed = static_cast<int64_t>(t.seed);
  s.integer("seed", seed, 0);
  t.seed = static_cast<uint64_t>(seed);
  s.integer("max_skipped", t.max_skipped, 0, 1'000'000);
  s.integer("bucket_bytes", t.bucket_bytes, 1, kMaxBucketBytes);
}

void read_checkpoint(const Section& s, CheckpointSpec& c) {
  s.integer("every", c.every, 0, kMaxSteps);
  s.integer("keep", c.keep, 1, 100'000);
  s.choice<bool>("export", c.export_at_end, {{"end", true}, {"never", false}});
}

void read_dump(const Section& s, DebugDump& d) {
  s.boolean("gradients", d.gradients);
  s.boolean("vision_rows", d.vision_rows);
  s.boolean("samples", d.samples);
  s.boolean("weights", d.weights);
  const YamlNode* n = s.find("steps");
  if (!n) return;
  for (const YamlNode& item : n->items)
    if (const auto v = item.quoted ? std::nullopt : parse_integer(item.text); v && *v >= 1) d.steps.push_back(*v);
  if (n->kind != YamlKind::kSequence || d.steps.size() != n->items.size())
    s.bad_value("steps", n->describe(), "a list of step numbers from 1");
}

void read_profile(const Section& root, const std::vector<GroupSpec>& groups, ProfileSpec& p) {
  const YamlNode* whole = root.find("profile");
  if (!whole || (whole->kind == YamlKind::kScalar && whole->text == "none")) return;
  const Section s = root.section("profile");
  if (const YamlNode* n = s.find("steps"); n && !(n->kind == YamlKind::kSequence && n->items.empty())) {
    std::vector<int64_t> ends;
    for (const YamlNode& item : n->items)
      if (const auto v = item.quoted ? std::nullopt : parse_integer(item.text); v && *v >= 1) ends.push_back(*v);
    if (n->kind != YamlKind::kSequence || n->items.size() != 2 || ends.size() != 2 || ends[0] > ends[1])
      s.bad_value("steps", n->describe(), "[FIRST, LAST], step numbers from 1");
    else
      std::tie(p.first, p.last) = std::pair(ends[0], ends[1]);
  }
  p.ranks = string_list(s, "ranks", "all or a list of GROUP/RANK");
  if (p.ranks == std::vector<std::string>{"all"}) p.ranks.clear();
  for (const std::string& rank : p.ranks) {
    const bool known = std::any_of(groups.begin(), groups.end(), [&](const GroupSpec& g) {
      const auto number =
          rank.rfind(g.name + "/", 0) == 0 ? parse_integer(rank.substr(g.name.size() + 1)) : std::nullopt;
      return number && *number >= 0 && *number < g.mesh.ranks();
    });
    if (!known)
      s.bad_value("ranks", "'" + rank + "'",
                  "all or a list of GROUP/RANK, such as [" + (groups.empty() ? "text" : groups[0].name) + "/0]");
  }
}

}  // namespace

JobSpec read_job_spec(const Section& root, const std::string& folder) {
  JobSpec spec;
  root.string("name", spec.name);
  if (root.has("name")) check_name(root, "name", spec.name);
  read_model(root.section("model"), root, folder, spec.model);
  read_components(root.section("components"), spec.components);
  read_groups(root, spec.groups);
  read_placement(root, spec.placement);
  read_data(root.section("data"), folder, spec.data);
  read_eval(root.section("eval"), root.section("data"), folder, spec.eval);
  read_training(root.section("training"), spec.training);
  read_checkpoint(root.section("checkpoint"), spec.checkpoint);
  root.section("logging").integer("every", spec.log_every, 1, kMaxSteps);
  root.choice<std::string>("device", spec.device, {{"auto", "auto"}, {"cpu", "cpu"}, {"cuda", "cuda"}});
  integer_or_auto(root, "threads", spec.threads);
  const Section schedule = root.section("schedule");
  schedule.integer("credits", spec.credits, 0, 1'000'000);
  schedule.number("memory_gib", spec.memory_gib, 0, 1e6);
  schedule.choice<BoundaryChannel>("channel", spec.channel,
                                   {{"auto", BoundaryChannel::kAuto},
                                    {"shared_memory", BoundaryChannel::kSharedMemory},
                                    {"tcp", BoundaryChannel::kTcp}});
  read_profile(root, spec.groups, spec.profile);
  read_dump(root.section("debug").section("dump"), spec.debug);
  return spec;
}

}  // namespace troupe
