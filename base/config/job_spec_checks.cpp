#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/config/job_spec_parser.h"
#include "base/config/job_spec_reader.h"
#include "base/config/scalars.h"
#include "base/config/synthetic_shape.h"
#include "base/json_text.h"
#include "base/model/chat_template_files.h"
#include "base/model/processor_config.h"
#include "base/regular_file.h"
#include "base/safetensors/model_folder.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string divisors_text(int64_t n) {
  std::vector<std::string> out;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) out.push_back(std::to_string(d));
  return join_words(out);
}

/// The multiples of `m` next to `n`.
std::string nearest_multiples(int64_t n, int64_t m) {
  const int64_t below = n / m * m, above = below + m;
  return below > 0 ? std::to_string(below) + " or " + std::to_string(above) : std::to_string(above);
}

void check_components(const JobSpec& spec, const Section& groups) {
  std::map<std::string, std::vector<std::string>> holders;
  for (const GroupSpec& g : spec.groups) {
    for (const std::string& c : g.components) {
      if (c != "vision" && c != "merger" && c != "text")
        groups.fail(g.name, "unknown component '" + c + "'; valid: vision, merger, text");
      else
        holders[c].push_back(g.name);
    }
    if (contains(g.components, "text") && g.components.size() > 1)
      groups.fail(g.name, "text together with " + join_words(g.components) +
                              " in one group is not built yet; valid: text in a group of its own");
  }
  for (const char* c : {"vision", "merger", "text"}) {
    const auto& h = holders[c];
    if (h.empty() && !groups.diagnostics().mentions("groups"))
      groups.fail("", std::string("component '") + c + "' is in no group; valid: every component in exactly one group");
    if (h.size() > 1)
      groups.fail(h[1], std::string("component '") + c + "' is in groups " + join_words(h, " and ") +
                            "; valid: every component in exactly one group");
  }
  const auto &v = holders["vision"], &m = holders["merger"];
  if (v.size() == 1 && m.size() == 1 && v != m)
    groups.fail(m[0],
                "the merger in another group than the vision encoder is not built yet; valid: components [vision, "
                "merger] in '" +
                    v[0] + "'");
}

void check_axes(const JobSpec& spec, const Section& groups) {
  for (const GroupSpec& g : spec.groups) {
    const bool text = contains(g.components, "text");
    const Section mesh = groups.section(g.name).section("mesh");
    if (text && g.mesh.size(Axis::kSp) > 1)
      mesh.fail("sp", "value " + std::to_string(g.mesh.size(Axis::kSp)) +
                          ": sequence parallelism of the text decoder over sp is not built yet; valid: 1 (tp with "
                          "tp_sequence: true shards its sequence)");
    if (!text && g.mesh.size(Axis::kTp) > 1)
      mesh.fail("tp", "value " + std::to_string(g.mesh.size(Axis::kTp)) +
                          ": tensor parallelism of the vision encoder is not built yet; valid: 1 (use sp)");
    if (!text && g.tp_sequence) groups.section(g.name).fail("tp_sequence", "belongs to the group of component text");
    if (text && g.unit_images > 0)
      groups.section(g.name).section("unit").fail("images", "belongs to the group of component vision");
  }
}

void check_batch(const JobSpec& spec, const Section& training) {
  const GroupSpec* text = spec.group_of_component("text");
  if (!text) return;
  for (const std::string& key :
       {std::string("training.global_batch"), std::string("training.microbatch"), "groups." + text->name + ".mesh"})
    if (training.diagnostics().mentions(key)) return;
  const TrainingSpec& t = spec.training;
  const int64_t dp = text->mesh.size(Axis::kDp);
  const bool by_samples = t.microbatch_tokens == 0 && spec.data.pack_tokens == 0;
  const int64_t unit = by_samples ? t.microbatch_samples : 1, divisor = dp * unit;
  if (t.global_batch % divisor == 0) return;
  std::string equation = "must be a multiple of dp of group '" + text->name + "'";
  equation += by_samples ? " x microbatch.samples = " + std::to_string(dp) + " x " + std::to_string(unit) + " = " +
                               std::to_string(divisor)
                         : " = " + std::to_string(dp);
  training.fail("global_batch", "value " + std::to_string(t.global_batch) + " " + equation +
                                    "; valid: " + nearest_multiples(t.global_batch, divisor));
}

void check_training(const JobSpec& spec, const Section& root) {
  const Section training = root.section("training");
  const TrainingSpec& t = spec.training;
  if (training.has("steps") && training.has("epochs"))
    training.fail("epochs", "excludes 'steps'; valid: one of the two");
  if (!training.has("steps") && !training.has("epochs"))
    training.fail("steps", "is missing; valid: steps: NUMBER, or epochs: NUMBER");
  const Section schedule = training.section("schedule");
  if (schedule.has("warmup_ratio") && schedule.has("warmup_steps"))
    schedule.fail("warmup_steps", "excludes 'warmup_ratio'; valid: one of the two");
  if (t.steps && t.schedule.warmup_steps && *t.schedule.warmup_steps > *t.steps)
    schedule.fail("warmup_steps", "value " + std::to_string(*t.schedule.warmup_steps) +
                                      " must be at most training.steps = " + std::to_string(*t.steps));
  const bool any_trained =
      std::any_of(spec.components.begin(), spec.components.end(), [](const auto& c) { return c.second.train; });
  if (!any_trained)
    root.fail("components", "every component is frozen (train: false); valid: at least one with train: true");
  check_batch(spec, training);
}

/// A step that is to be dumped or traced but will not come.
struct StepProblem {
  std::string section, message;  // its key is `steps`
};

std::vector<StepProblem> step_problems(const JobSpec& spec, int64_t steps) {
  std::vector<StepProblem> out;
  auto judge = [&](const std::string& section, int64_t step) {
    if (step <= steps) return;
    out.push_back({section, "value " + std::to_string(step) + " is behind the last step, " + std::to_string(steps) +
                                "; valid: 1 to " + std::to_string(steps)});
  };
  const auto& dumped = spec.debug.steps;
  if (!dumped.empty()) judge("debug.dump", *std::max_element(dumped.begin(), dumped.end()));
  if (spec.profile.on()) judge("profile", spec.profile.last);
  return out;
}

void check_steps_asked(const JobSpec& spec, const Section& root) {
  if (!spec.training.steps) return;  // epochs are steps when the samples are counted
  const Section debug = root.section("debug");
  for (const StepProblem& p : step_problems(spec, *spec.training.steps))
    (p.section == "profile" ? root.section("profile") : debug.section("dump")).fail("steps", p.message);
}

/// Records are counted by the index; synthetic samples have none.
void check_synthetic_count(const JobSpec& spec, const Section& synthetic, const Section& training) {
  for (const char* key : {"data.synthetic", "training.global_batch", "training.epochs"})
    if (training.diagnostics().mentions(key)) return;
  const int64_t samples = spec.data.synthetic->samples, batch = spec.training.global_batch;
  if (samples < batch)
    return synthetic.fail("samples", "value " + std::to_string(samples) +
                                         " must be at least training.global_batch = " + std::to_string(batch));
  if (spec.training.epochs && *spec.training.epochs * static_cast<double>(samples) < 0.5)
    training.fail("epochs", "value " + number_text(*spec.training.epochs) + " of " + std::to_string(samples) +
                                " samples is no sample, so no step; valid: at least " +
                                number_text(1.0 / static_cast<double>(samples)));
}

void check_video(const VideoSpec& v, const Section& video) {
  const auto at_most = [&](const char* least, const std::optional<int64_t>& low, const char* most,
                           const std::optional<int64_t>& high) {
    if (low && high && *low > *high)
      video.fail(least, "value " + std::to_string(*low) + " must be at most " + most + " = " + std::to_string(*high));
  };
  at_most("min_frames", v.min_frames, "max_frames", v.max_frames);
  at_most("min_pixels", v.min_pixels, "max_pixels", v.max_pixels);
}

void check_data(const JobSpec& spec, const Section& root) {
  const DataSpec& d = spec.data;
  const Section data = root.section("data");
  if (!data.has("sources") && !data.has("synthetic"))
    root.fail("data", "has no records; valid: sources: [{path: FILE}], or synthetic: {...}");
  if (data.has("sources") && data.has("synthetic")) data.fail("synthetic", "excludes 'sources'; valid: one of the two");
  if (data.has("sources") && d.sources.empty() && data.find("sources")->items.empty() &&
      !data.find("sources")->is_map())
    data.fail("sources", "is empty; valid: at least one {path: FILE}");
  if (d.synthetic) check_synthetic_count(spec, data.section("synthetic"), root.section("training"));
  if (d.min_pixels && d.max_pixels && *d.min_pixels > *d.max_pixels)
    data.fail("min_pixels", "value " + std::to_string(*d.min_pixels) +
                                " must be at most max_pixels = " + std::to_string(*d.max_pixels));
  check_video(d.video, data.section("video"));
  const Section eval = root.section("eval");
  if (spec.eval.split > 0 && !spec.eval.sources.empty())
    eval.fail("sources", "excludes 'split'; valid: one of the two");
  if (spec.eval.split > 0 && d.synthetic)
    eval.fail("split", "needs data.sources; synthetic data has nothing to hold out");
  if (spec.eval.every > 0 && spec.eval.split <= 0 && spec.eval.sources.empty())
    eval.fail("every", "needs something to evaluate; valid: with split: FRACTION or sources: [...]");
}

void check_placement(const JobSpec& spec, const Section& root) {
  const PlacementSpec& p = spec.placement;
  if (p.kind != PlacementKind::kCounts && p.kind != PlacementKind::kExplicit) return;
  const Section s = root.section("placement");
  std::vector<std::string> names;
  for (const GroupSpec& g : spec.groups) names.push_back(g.name);
  std::set<std::string> placed;
  for (const auto& [name, count] : p.counts) placed.insert(name);
  for (const auto& [name, slots] : p.slots) placed.insert(name);
  for (const std::string& name : placed) {
    if (contains(names, name)) continue;
    const std::string near = nearest_word(name, names);
    s.fail(name, "unknown group" + (near.empty() ? "" : "; did you mean '" + near + "'?") +
                     (near.empty() ? "; valid: " + join_words(names) : ""));
  }
  const bool misspelt = root.diagnostics().mentions("placement");
  for (const GroupSpec& g : spec.groups) {
    if (!placed.contains(g.name) && !misspelt)
      root.fail("placement", "group '" + g.name + "' is not placed; valid: an entry for each of " + join_words(names));
    const auto count = p.counts.find(g.name);
    if (root.diagnostics().mentions("groups." + g.name + ".mesh") || s.diagnostics().mentions("placement." + g.name))
      continue;
    if (count != p.counts.end() && count->second != g.mesh.ranks())
      s.fail(g.name, "value " + std::to_string(count->second) + " must equal the ranks of the group's mesh (" +
                         g.mesh.to_string() + ") = " + std::to_string(g.mesh.ranks()));
  }
}

/// A group whose mesh does not divide the attention heads of its component.
struct HeadProblem {
  std::string group, axis, message;
};

std::vector<HeadProblem> head_problems(const JobSpec& spec, const ModelConfig& config) {
  std::vector<HeadProblem> out;
  auto judge = [&](const std::string& component, Axis axis, int64_t heads) {
    const GroupSpec* g = spec.group_of_component(component);
    if (!g || heads % g->mesh.size(axis) == 0) return;
    const std::string size = std::to_string(g->mesh.size(axis)), count = std::to_string(heads);
    out.push_back({g->name, axis_name(axis),
                   "value " + size + " does not divide the " + count + " attention heads of component " + component +
                       " (" + config.source + "): " + count + " % " + size + " = " +
                       std::to_string(heads % g->mesh.size(axis)) + "; valid: " + divisors_text(heads)});
  };
  judge("vision", Axis::kSp, config.vision.heads);
  judge("text", Axis::kTp, config.text.heads);
  return out;
}

/// "owner/name" that is no path here: the form in which hubs name models.
bool looks_like_hub_id(const std::string& text, const std::string& resolved) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos || slash == 0 || text.find('/', slash + 1) != std::string::npos || text[0] == '.' ||
      text[0] == '~')
    return false;
  std::error_code ec;
  return slash + 1 < text.size() && !fs::exists(fs::path(resolved).parent_path(), ec);
}

/// Whether a file is an archive is judged while indexing, like the rest of the data.
bool is_file(const std::string& path) {
  std::error_code ec;
  return fs::is_regular_file(path, ec);
}

std::string unreadable_reason(const std::string& path, bool folder) {
  std::error_code ec;
  if (!fs::exists(path, ec)) return "does not exist";
  if (fs::is_directory(path, ec) != folder) return folder ? "is not a folder" : "is a folder, not a file";
  if (access(path.c_str(), folder ? R_OK | X_OK : R_OK) != 0) return "cannot be read (permission denied)";
  return "";
}

/// What records need beside the weights; files that are only carried along may be missing.
void check_text_files(JobSpec& spec, const Section& model) {
  const std::string& path = spec.model.path;
  std::error_code ec;
  if (!fs::exists(path + "/tokenizer.json", ec))
    model.fail("path", "value '" + path + "' has no tokenizer.json, which data.sources needs");
  // Carried along by the export, which transformers could not load otherwise.
  for (const char* name : {"/tokenizer_config.json", "/generation_config.json"}) {
    if (!fs::exists(path + name, ec)) continue;
    const Result<std::string> text = read_text_file(path + name);
    const Result<nlohmann::json> parsed = text.ok() ? parse_json(*text) : Result<nlohmann::json>(text.error());
    if (!parsed.ok()) model.fail("path", path + name + ": " + parsed.error().message);
    if (parsed.ok() && !parsed->is_object()) model.fail("path", path + name + ": is not a JSON object");
  }
  if (!fs::exists(path + "/preprocessor_config.json", ec) && !fs::exists(path + "/processor_config.json", ec))
    spec.warnings.push_back(path + ": has no preprocessor_config.json; the original processor's defaults are used");
  if (std::string warning = image_processor_warning(path); !warning.empty())
    spec.warnings.push_back(std::move(warning));
  if (!fs::exists(path + "/generation_config.json", ec))
    spec.warnings.push_back(path + ": has no generation_config.json; the export will have none either");
  const Result<ChatTemplateFiles> templates = find_chat_templates(path);
  if (!templates.ok()) return model.fail("path", templates.error().message);
  if (!templates->taken)
    spec.warnings.push_back(path + ": has no chat template file; the export will have none either");
  if (!templates->others.empty()) spec.warnings.push_back(templates->warning());
}

/// Reads headers only, so that a truncated or foreign file is refused in no time.
void check_weights(const std::string& path, const ModelConfig& config, const Section& model) {
  if (!ModelFolder::has_weights(path))
    return model.fail(
        "path", "value '" + path + "' has no *.safetensors weights; valid: a folder with weights, or init: random");
  const Result<ModelFolder> folder = ModelFolder::open(path);
  if (!folder.ok()) return model.fail("path", folder.error().message);
  if (const Status s = folder->check(config); !s.ok()) model.fail("path", s.error().message);
}

/// All synthetic samples have one length, so that a limit below it leaves none.
void check_synthetic_length(const JobSpec& spec, const VisionConfig& vision, const Section& data) {
  if (!spec.data.synthetic) return;
  const int64_t tokens = synthetic_sample_tokens(*spec.data.synthetic, vision);
  for (const auto& [key, limit] :
       {std::pair("max_sample_tokens", spec.data.max_sample_tokens), std::pair("pack_tokens", spec.data.pack_tokens)})
    if (limit > 0 && tokens > limit)
      data.fail(key, "value " + std::to_string(limit) + ", but the samples of data.synthetic have " +
                         std::to_string(tokens) + " tokens; valid: at least " + std::to_string(tokens));
}

void check_token_ids(const ModelConfig& config, const Section& model) {
  for (const auto& [key, id] :
       {std::pair("image_token_id", config.image_token), std::pair("vision_start_token_id", config.vision_start_token),
        std::pair("vision_end_token_id", config.vision_end_token)})
    if (id >= config.text.vocabulary)
      model.fail("path", config.source + ": key '" + key + "': value " + std::to_string(id) +
                             " must be below vocab_size " + std::to_string(config.text.vocabulary));
}

void check_model_files(JobSpec& spec, const Section& root) {
  const Section model = root.section("model");
  const std::string& path = spec.model.path;
  const std::string reason = unreadable_reason(path, true);
  const YamlNode* written = model.find("path");
  if (!reason.empty()) {
    std::string message = "value '" + path + "' " + reason;
    if (written && looks_like_hub_id(written->text, path))
      message = "value '" + written->text +
                "' looks like a model id of a hub; models are read from folders; download it with: hf download " +
                written->text + " --local-dir " + path;
    else
      message += "; valid: a Hugging Face model folder";
    model.fail("path", message);
    return;
  }
  if (!spec.data.sources.empty()) check_text_files(spec, model);
  const Result<ModelConfig> config = read_model_config(path);
  if (!config.ok()) return model.fail("path", config.error().message);
  if (spec.model.init == ModelInit::kPretrained) check_weights(path, *config, model);
  check_token_ids(*config, model);
  check_synthetic_length(spec, config->vision, root.section("data"));
  for (const HeadProblem& p : head_problems(spec, *config))
    root.section("groups").section(p.group).section("mesh").fail(p.axis, p.message);
}

void check_source_files(const std::vector<DataSource>& sources, const Section& section) {
  const YamlNode* list = section.find("sources");
  for (size_t i = 0; i < sources.size(); ++i) {
    const YamlNode* item = nullptr;  // a dataset_info.json is one item and several sources
    for (size_t j = 0; list && j < list->items.size(); ++j)
      if (section.full_name("sources") + "[" + std::to_string(j) + "]" == sources[i].key) item = &list->items[j];
    const Section entry(item, sources[i].key, item ? item->place : section.place(), section.diagnostics());
    if (const std::string reason = unreadable_reason(sources[i].path, false); !reason.empty())
      entry.fail("path",
                 "value '" + sources[i].path + "' " + reason + "; valid: a JSON, JSONL or Parquet file of records");
    else if (const std::string root = unreadable_reason(sources[i].image_root, !is_file(sources[i].image_root));
             !root.empty())
      entry.fail("image_root", "value '" + sources[i].image_root + "' " + root +
                                   "; valid: the folder or the tar archive that image paths are relative to");
  }
}

}  // namespace

void check_relations(const JobSpec& spec, const Section& root) {
  const Section groups = root.section("groups");
  check_components(spec, groups);
  check_axes(spec, groups);
  check_training(spec, root);
  check_steps_asked(spec, root);
  check_data(spec, root);
  check_placement(spec, root);
}

void check_files(JobSpec& spec, const Section& root) {
  if (!spec.model.path.empty()) check_model_files(spec, root);
  check_source_files(spec.data.sources, root.section("data"));
  check_source_files(spec.eval.sources, root.section("eval"));
}

Status check_heads(const JobSpec& spec, const ModelConfig& config) {
  std::vector<std::string> lines;
  for (const HeadProblem& p : head_problems(spec, config))
    lines.push_back("key 'groups." + p.group + ".mesh." + p.axis + "': " + p.message);
  if (lines.empty()) return {};
  return invalid_argument(join_words(lines, "\n"));
}

Status check_steps(const JobSpec& spec, int64_t steps) {
  std::vector<std::string> lines;
  for (const StepProblem& p : step_problems(spec, steps))
    lines.push_back("key '" + p.section + ".steps': " + p.message);
  if (lines.empty()) return {};
  return invalid_argument(join_words(lines, "\n"));
}

Status check_writable(const std::string& folder) {
  fs::path at = fs::absolute(folder);
  std::error_code ec;
  while (!fs::exists(at, ec) && at.has_parent_path() && at != at.parent_path()) at = at.parent_path();
  if (!fs::is_directory(at, ec))
    return invalid_argument("run folder '" + folder + "': '" + at.string() + "' is not a folder");
  if (access(at.c_str(), W_OK | X_OK) != 0)
    return invalid_argument("run folder '" + folder + "' cannot be created: '" + at.string() + "' is not writable");
  // What permissions promise a full or read-only file system, or a quota, may deny: write something.
  std::string probe = (at / ".troupe-XXXXXX").string();
  const int file = mkstemp(probe.data());
  const bool written = file >= 0 && write(file, "x", 1) == 1;
  const int error = errno;
  if (file >= 0) {
    close(file);
    unlink(probe.c_str());
  }
  if (!written)
    return invalid_argument("run folder '" + folder + "' cannot be created: nothing can be written in '" + at.string() +
                            "': " + std::strerror(error));
  return {};
}

}  // namespace troupe
