#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "base/config/scalars.h"
#include "base/convert/conversion_scope.h"
#include "base/convert/model_settings.h"
#include "base/convert/trainer_settings.h"

namespace troupe::convert {
namespace {

namespace fs = std::filesystem;

/// Which of Troupe's dtypes the three keys come to; what is refused is said.
void convert_dtype(const ConversionScope& s, const ModelFacts& facts) {
  const auto given = s.values.text("torch_dtype");
  const std::string type = given.value_or(facts.dtype.value_or("bfloat16"));
  if (type != "bfloat16" && type != "float16" && type != "float32")
    return s.values.bad_value("torch_dtype", "bfloat16, float32");
  // float16 and float32 mean mixed fp16 there unless fp16 and bf16 say otherwise.
  const auto fp16_given = s.values.boolean("fp16"), bf16_given = s.values.boolean("bf16");
  const bool bf16 = bf16_given.value_or(type == "bfloat16"), fp16 = fp16_given.value_or(type != "bfloat16" && !bf16);
  if (fp16_given.value_or(false))
    return s.values.fail("fp16", s.values.shown("fp16") + ": there is no fp16; valid: false, or bf16: true");
  if (type == "float16" || fp16)
    return s.values.fail("torch_dtype", "'" + type + "'" + (given ? "" : ", which config.json gives,") +
                                            " trains in fp16 there; there is no fp16; valid: torch_dtype: bfloat16, or "
                                            "float32 with fp16: false and bf16: false");
  std::vector<std::string> from;
  for (const char* name : {"torch_dtype", "bf16", "fp16"})
    if (s.values.has(name)) from.emplace_back(name);
  const std::string why = from.empty() ? "config.json has '" + type + "'" : "";
  if (bf16) {
    s.draft.set("model.dtype", "bf16", from, why);
    if (type == "bfloat16" && !s.values.has("deepspeed"))
      s.draft.remark(
          s.values.place_of("torch_dtype"),
          "model.dtype bf16 keeps weights and moments in fp32 beside; ms-swift without DeepSpeed keeps all in "
          "bf16, which is --set model.dtype=bf16-pure");
    return;
  }
  s.draft.set("model.dtype", type == "float32" ? "fp32" : "bf16-pure", from, why);
}

void convert_model(const ConversionScope& s, const ModelFacts& facts) {
  s.draft.set_default("model.init", "pretrained");
  convert_dtype(s, facts);
  convert_freeze(s, "vision", "freeze_vit", true);
  convert_freeze(s, "merger", "freeze_aligner", true);
  convert_freeze(s, "text", "freeze_llm", false);
  if (const auto lr = s.values.number("vit_lr", 0)) s.draft.set("components.vision.lr", number_text(*lr), {"vit_lr"});
  if (const auto lr = s.values.number("aligner_lr", 0))
    s.draft.set("components.merger.lr", number_text(*lr), {"aligner_lr"});
}

/// "PATH#N" cut in two; N is 0 when there is none.
std::pair<std::string, int64_t> path_and_count(const std::string& text) {
  const size_t at = text.rfind('#');
  const auto count = at == std::string::npos ? std::nullopt : parse_integer(text.substr(at + 1));
  return count && *count > 0 ? std::pair(text.substr(0, at), *count) : std::pair(text, int64_t{0});
}

/// Why a path is no file of records, or "".
std::string no_records(const std::string& path, const std::string& whole) {
  std::error_code error;
  if (fs::is_directory(whole, error)) return "is a folder; valid: its JSON, JSONL or Parquet files";
  const std::string kind = fs::path(path).extension().string();
  if (kind == ".csv" || kind == ".tsv" || kind == ".arrow")
    return "is a " + kind + " file, which is not read; valid: JSON, JSONL or Parquet";
  if (fs::exists(whole, error)) return "";
  if (kind == ".json" || kind == ".jsonl" || kind == ".parquet") return "does not exist ('" + whole + "')";
  return "is no file here ('" + whole + "'), so ms-swift loads it from a hub; valid: a JSON, JSONL or Parquet file";
}

std::vector<std::string> sources_of(const ConversionScope& s, const std::string& key) {
  std::vector<std::string> items;
  const std::string root = s.values.text("ROOT_IMAGE_DIR").value_or(".");
  for (const ForeignWord& word : s.values.words(key, false)) {
    const auto [path, count] = path_and_count(word.text);
    if (const std::string reason = no_records(path, s.paths.absolute(path)); !reason.empty()) {
      s.values.diagnostics().add_key(word.place, key, "value '" + word.text + "' " + reason);
      continue;
    }
    std::string item =
        "{path: " + quoted_text(s.paths.written(path)) + ", image_root: " + quoted_text(s.paths.written(root));
    if (count > 0) {
      item += ", take: " + std::to_string(count);
      s.draft.remark(word.place, key + ": '#" + std::to_string(count) + "' takes the first " + std::to_string(count) +
                                     " records at most; ms-swift draws them, and repeats a shorter file");
    }
    items.push_back(item + "}");
  }
  return items;
}

void convert_columns(const ConversionScope& s) {
  static const std::map<std::string, std::string> meanings{{"messages", "turns"},  {"query", "question"},
                                                           {"response", "answer"}, {"system", "system"},
                                                           {"images", "images"},   {"history", "history"}};
  std::string text;
  for (const auto& [column, meaning] : s.values.mapping("columns")) {
    const auto known = meanings.find(meaning.text);
    if (known == meanings.end())
      return s.values.fail("columns", "'" + meaning.text + "' of '" + column +
                                          "' is not known; valid: messages, query, response, system, images, history");
    text += (text.empty() ? "" : ", ") + known->second + ": " + quoted_text(column);
  }
  if (!text.empty()) s.draft.set("data.columns", "{" + text + "}", {"columns"});
}

/// Whether there is something to evaluate.
bool convert_records(const ConversionScope& s) {
  std::vector<std::string> from;
  for (const char* key : {"dataset", "ROOT_IMAGE_DIR"})
    if (s.values.has(key)) from.emplace_back(key);
  if (!s.values.has("dataset")) s.values.fail("dataset", "is missing; valid: JSON, JSONL or Parquet files");
  s.draft.set_list("data.sources", sources_of(s, "dataset"), from);
  convert_columns(s);
  const bool shuffled = s.values.boolean("dataset_shuffle").value_or(true);
  const bool loaded = s.values.boolean("train_dataloader_shuffle").value_or(true);
  std::vector<std::string> keys;
  for (const char* key : {"dataset_shuffle", "train_dataloader_shuffle"})
    if (s.values.has(key)) keys.emplace_back(key);
  s.draft.set("data.shuffle", shuffled || loaded ? "true" : "false", keys);
  const auto share = s.values.number("split_dataset_ratio", 0, 0.9);
  const bool evaluates = evaluation_strategy(s, s.values.text("save_strategy").value_or("steps")) != "no";
  if (s.values.has("val_dataset")) {
    s.draft.set_list("eval.sources", sources_of(s, "val_dataset"), {"val_dataset"});
    s.draft.take_note_of("split_dataset_ratio", "not needed: val_dataset goes before it");
    return true;
  }
  if (share && *share > 0 && evaluates) s.draft.set("eval.split", number_text(*share), {"split_dataset_ratio"});
  s.draft.take_note_of("split_dataset_ratio", "not needed: nothing is held out");
  return share && *share > 0 && evaluates;
}

void convert_length(const ConversionScope& s, const ModelFacts& facts) {
  const auto length = s.values.integer("max_length", 1, 10'000'000);
  if (length)
    s.draft.set("data.max_sample_tokens", std::to_string(*length), {"max_length"});
  else if (facts.positions)
    s.draft.set("data.max_sample_tokens", std::to_string(*facts.positions), {},
                "max_position_embeddings of config.json");
  else if (!s.values.has("max_length"))
    s.values.fail("max_length",
                  "is missing, and config.json of the model has no max_position_embeddings; valid: an integer");
  const std::string strategy = s.values.text("truncation_strategy").value_or("delete");
  if (strategy != "delete" && strategy != "right")
    s.values.fail("truncation_strategy", s.values.shown("truncation_strategy") + " is not built; valid: delete, right");
  s.draft.set_or_default(s.values.has("truncation_strategy"), "data.too_long",
                         strategy == "right" ? "truncate_text" : "skip", "truncation_strategy");
  const auto strict = s.values.boolean("strict");
  s.draft.set_or_default(strict.has_value(), "data.on_bad_record", strict.value_or(false) ? "fail" : "skip", "strict");
  const std::string scale = s.values.text("loss_scale").value_or("default");
  if (scale != "default" && scale != "last_round")
    s.values.fail("loss_scale", s.values.shown("loss_scale") + " is not built; valid: default, last_round");
  s.draft.set_or_default(s.values.has("loss_scale"), "data.supervise", scale == "default" ? "all" : "last",
                         "loss_scale");
}

/// What qwen_vl_utils takes from the environment or from model_kwargs, and what holds without.
struct MediaSetting {
  const char* name;
  const char* spec;
  double otherwise, least, most;
};
constexpr double kMostPixels = 1 << 30, kMostFrames = 1 << 16;
constexpr std::array<MediaSetting, 7> kMediaSettings{
    {{"MAX_PIXELS", "data.max_pixels", 16384 * 28 * 28, 1, kMostPixels},
     {"MIN_PIXELS", "data.min_pixels", 4 * 28 * 28, 1, kMostPixels},
     {"FPS", "data.video.fps", 2, 0.001, 1000},
     {"FPS_MIN_FRAMES", "data.video.min_frames", 4, 1, kMostFrames},
     {"FPS_MAX_FRAMES", "data.video.max_frames", 768, 2, kMostFrames},
     {"VIDEO_MIN_PIXELS", "data.video.min_pixels", 128 * 28 * 28, 1, kMostPixels},
     {"VIDEO_MAX_PIXELS", "data.video.max_pixels", 768 * 28 * 28, 1, kMostPixels}}};
constexpr const char* kTotalPixels = "VIDEO_TOTAL_PIXELS";

bool is_whole(const MediaSetting& setting) { return setting.least >= 1; }

std::string setting_text(const MediaSetting& setting, double value) {
  return is_whole(setting) ? std::to_string(static_cast<int64_t>(value)) : number_text(value);
}

std::string capitals(std::string name) {
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

/// The word of model_kwargs as the setting's number; nothing when it was refused.
std::optional<double> number_of_argument(const ConversionScope& s, const MediaSetting& setting, const std::string& name,
                                         const std::string& word) {
  const auto number = parse_number(word);
  if (number && *number >= setting.least && *number <= setting.most &&
      (!is_whole(setting) || *number == std::floor(*number)))
    return number;
  s.values.fail("model_kwargs",
                "'" + name + "' is '" + word + "'; valid: " + (is_whole(setting) ? "an integer" : "a number") +
                    " from " + setting_text(setting, setting.least) + " to " + setting_text(setting, setting.most));
  return std::nullopt;
}

std::optional<double> setting_of_environment(const ConversionScope& s, const MediaSetting& setting) {
  if (!is_whole(setting)) return s.values.number(setting.name, setting.least, setting.most);
  const auto whole =
      s.values.integer(setting.name, static_cast<int64_t>(setting.least), static_cast<int64_t>(setting.most));
  return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
}

/// What model_kwargs says, by the settings' names; of two spellings of one the first counts.
std::map<std::string, double> settings_of_arguments(const ConversionScope& s) {
  std::map<std::string, double> out;
  for (const auto& [name, value] : s.values.mapping("model_kwargs")) {
    const std::string known = capitals(name);
    const auto setting =
        std::find_if(kMediaSettings.begin(), kMediaSettings.end(), [&](const auto& m) { return m.name == known; });
    if (setting != kMediaSettings.end()) {
      if (const auto number = number_of_argument(s, *setting, name, value.text)) out.emplace(known, *number);
    } else if (known == kTotalPixels) {
      s.draft.remark(s.values.place_of("model_kwargs"),
                     name +
                         ": dropped: frames of a video share a limit only where the folder's video processor has "
                         "cap_pixels_per_frame");
    } else {
      s.values.bad_value("model_kwargs",
                         "{\"max_pixels\": NUMBER, \"min_pixels\": NUMBER}, fps, fps_min_frames, fps_max_frames, "
                         "video_min_pixels, video_max_pixels");
    }
  }
  return out;
}

void convert_media(const ConversionScope& s) {
  const auto arguments = settings_of_arguments(s);
  for (const MediaSetting& setting : kMediaSettings) {
    const auto argument = arguments.find(setting.name);
    std::string from = argument != arguments.end() ? "model_kwargs" : setting.name;
    std::optional<double> value = setting_of_environment(s, setting);
    if (argument != arguments.end()) value = argument->second;
    if (setting.spec == std::string("data.max_pixels"))
      if (const auto most = s.values.integer("max_pixels", 1);
          most && static_cast<double>(*most) < value.value_or(setting.otherwise)) {
        value = static_cast<double>(*most);
        from = "max_pixels";
      }
    s.draft.set_or_default(value.has_value(), setting.spec, setting_text(setting, value.value_or(setting.otherwise)),
                           from);
  }
}

void convert_packs(const ConversionScope& s) {
  if (!s.values.boolean("packing").value_or(false)) {
    for (const char* name : {"packing", "packing_length"})
      s.draft.take_note_of(name, "not needed: samples are not packed");
    return;
  }
  if (s.options.global_batch == 0)
    return s.values.fail("packing",
                         "value true makes a batch count packs; global_batch counts samples; valid: false, or "
                         "--global-batch SAMPLES, with about as many samples as the packs of a step hold");
  const DraftKey* sample = s.draft.find("data.max_sample_tokens");
  const auto length = s.values.integer("packing_length", 1, 10'000'000);
  std::vector<std::string> from{"packing"};
  if (length) from.emplace_back("packing_length");
  if (length || sample) s.draft.set("data.pack_tokens", length ? std::to_string(*length) : sample->value, from);
}

/// Ranks that hold different samples: those of one sequence count once.
Ranks sample_ranks(const ConversionScope& s) {
  Ranks ranks = ranks_of(s, /*visible=*/false);
  const int64_t shared = s.values.integer("sequence_parallel_size", 1, 4096).value_or(1);
  if (ranks.count % shared != 0)
    s.values.fail("sequence_parallel_size", s.values.shown("sequence_parallel_size") + " does not divide the " +
                                                std::to_string(ranks.count) +
                                                " ranks; valid: a divisor, or --devices N");
  ranks.count = std::max<int64_t>(1, ranks.count / shared);
  if (s.values.has("sequence_parallel_size")) ranks.from.emplace_back("sequence_parallel_size");
  return ranks;
}

}  // namespace

void convert_ms_swift(const ConversionScope& s) {
  const bool turned = convert_tuner(s, {"tuner_type", "train_type"});
  const auto folder = convert_model_path(s, "model");
  ModelFacts facts;
  if (folder)
    facts = read_model_facts(*folder);
  else
    facts.positions = 1;  // said already: one complaint about the model is enough
  convert_model(s, facts);
  const bool held_out = convert_records(s);
  convert_length(s, facts);
  convert_media(s);
  convert_packs(s);
  convert_batch(s, sample_ranks(s), 1, 0);
  const bool rate = s.values.has("learning_rate");
  convert_optimizer(s, {1e-5, 0.1, 0.95});
  if (turned && !rate)
    s.draft.remark({s.values.config().file, 0}, "learning_rate is missing: 1e-5, the default of training all weights");
  convert_schedule(s, "cosine", s.values.number("learning_rate", 0).value_or(1e-5));
  convert_course(s);
  const int64_t saved =
      s.values.has("save_steps") ? static_cast<int64_t>(s.values.number("save_steps", 0).value_or(500)) : 500;
  convert_evaluation(s, held_out, s.values.text("save_strategy").value_or("steps"), std::max<int64_t>(saved, 1));
}

}  // namespace troupe::convert
