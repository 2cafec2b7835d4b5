#include <algorithm>
#include <filesystem>

#include "base/config/dataset_info.h"
#include "base/config/scalars.h"
#include "base/convert/conversion_scope.h"
#include "base/convert/model_settings.h"
#include "base/convert/trainer_settings.h"

namespace troupe::convert {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kProcessorMinPixels = 4 * 28 * 28;  // what Qwen2.5-VL's image processor has beside

std::vector<std::string> given_keys(const ConversionScope& s, std::initializer_list<const char*> keys) {
  std::vector<std::string> out;
  for (const char* key : keys)
    if (s.values.has(key)) out.emplace_back(key);
  return out;
}

void convert_model(const ConversionScope& s) {
  convert_model_path(s, "model_name_or_path");
  const auto scratch = s.values.boolean("train_from_scratch");
  s.draft.set_or_default(scratch.has_value(), "model.init", scratch.value_or(false) ? "random" : "pretrained",
                         "train_from_scratch");
  const bool bf16 = s.values.boolean("bf16").value_or(false), pure = s.values.boolean("pure_bf16").value_or(false);
  if (s.values.boolean("fp16").value_or(false))
    s.values.fail("fp16", s.values.shown("fp16") + ": there is no fp16; valid: bf16: true");
  if (pure)
    s.draft.set("model.dtype", "bf16-pure", {"pure_bf16"});
  else if (bf16)
    s.draft.set("model.dtype", "bf16", {"bf16"});
  else
    s.draft.set("model.dtype", "fp32", given_keys(s, {"bf16", "pure_bf16"}), "without bf16 it is fp32 there");
  s.draft.take_note_of("fp16", "not needed: there is no fp16");
  const std::string stage = s.values.text("stage").value_or("sft");
  if (stage != "sft") s.values.fail("stage", s.values.shown("stage") + " is not built; valid: sft");
  s.draft.take_note_of("stage", "not needed: supervised answers are what is trained");
  if (!s.values.boolean("do_train").value_or(true))
    s.values.fail("do_train", "value false asks for no training; valid: true");
  s.draft.take_note_of("do_train", "not needed: a job trains");
  convert_freeze(s, "vision", "freeze_vision_tower", true);
  convert_freeze(s, "merger", "freeze_multi_modal_projector", true);
  convert_freeze(s, "text", "freeze_language_model", false);
}

/// The path of dataset_info.json as the configuration names it; "" when it is refused.
std::string list_of_datasets(const ConversionScope& s) {
  const std::string folder = s.values.text("dataset_dir").value_or("data");
  const bool given = s.values.has("dataset_dir");
  if (folder == "ONLINE" || folder.rfind("REMOTE:", 0) == 0) {
    s.values.fail("dataset_dir",
                  s.values.shown("dataset_dir") + " means data sets of a hub; valid: a folder with dataset_info.json");
    return "";
  }
  const std::string list = folder + "/dataset_info.json";
  std::error_code error;
  if (fs::is_regular_file(s.paths.absolute(list), error)) return list;
  s.values.fail("dataset_dir", (given ? s.values.shown("dataset_dir") : std::string("is missing, which means 'data'")) +
                                   ": there is no '" + s.paths.absolute(list) +
                                   "'; valid: a folder with dataset_info.json below --working-dir");
  return "";
}

/// The named data sets as items of a list of sources.
std::vector<std::string> sources_of(const ConversionScope& s, const std::string& key, const std::string& list) {
  std::vector<std::string> items;
  const auto limit = s.values.integer("max_samples", 1);
  for (const ForeignWord& name : s.values.words(key, true)) {
    const auto known = read_dataset_info(s.paths.absolute(list), {name.text});
    if (!known.ok()) {
      s.values.diagnostics().add_key(name.place, key, known.error().message);
      continue;
    }
    std::string item = "{path: " + quoted_text(s.paths.written(list)) + ", datasets: [" + quoted_text(name.text) + "]";
    if (const auto media = s.values.text("media_dir")) item += ", image_root: " + quoted_text(s.paths.written(*media));
    const int64_t own = known->front().take_records;
    if (limit && (own < 0 || *limit < own)) item += ", take: " + std::to_string(*limit);
    items.push_back(item + "}");
  }
  return items;
}

/// Whether samples are held out.
bool convert_held_out(const ConversionScope& s, const std::string& list) {
  const auto share = s.values.number("val_size", 0);
  if (share && *share >= 1)
    s.values.fail("val_size", s.values.shown("val_size") +
                                  " is a number of samples; eval.split is a fraction; valid: a fraction from 0 to 0.9");
  else if (share && *share > 0)
    s.draft.set("eval.split", number_text(*share), {"val_size"});
  else
    s.draft.take_note_of("val_size", "not needed: nothing is held out");
  if (!s.values.has("eval_dataset")) return share && *share > 0;
  s.draft.set_list("eval.sources", sources_of(s, "eval_dataset", list),
                   given_keys(s, {"eval_dataset", "dataset_dir", "media_dir", "max_samples"}));
  return true;
}

/// Whether there is something to evaluate.
bool convert_records(const ConversionScope& s) {
  if (!s.values.has("dataset")) s.values.fail("dataset", "is missing; valid: names of dataset_info.json");
  const std::string list = list_of_datasets(s);
  if (list.empty()) return s.values.has("val_size") || s.values.has("eval_dataset");
  s.draft.set_list("data.sources", sources_of(s, "dataset", list),
                   given_keys(s, {"dataset", "dataset_dir", "media_dir", "max_samples"}));
  return convert_held_out(s, list);
}

void convert_form(const ConversionScope& s) {
  const std::vector<std::string> valid{"qwen2_vl", "qwen2_5_vl"};
  const auto form = s.values.text("template");
  if (form && std::find(valid.begin(), valid.end(), *form) == valid.end())
    s.values.fail("template", s.values.shown("template") +
                                  ": chats are written as the model folder's template does; valid: qwen2_vl");
  s.draft.take_note_of("template", "not needed: chats are written as the model folder's template does");
  const auto length = s.values.integer("cutoff_len", 1, 10'000'000);
  s.draft.set_or_default(length.has_value(), "data.max_sample_tokens", std::to_string(length.value_or(2048)),
                         "cutoff_len");
  s.draft.set_or_default(length.has_value(), "data.too_long", "truncate_text", "cutoff_len");
  s.draft.set_default("data.on_bad_record", "skip");
  const auto last = s.values.boolean("mask_history"), still = s.values.boolean("disable_shuffling");
  s.draft.set_or_default(last.has_value(), "data.supervise", last.value_or(false) ? "last" : "all", "mask_history");
  s.draft.set_or_default(still.has_value(), "data.shuffle", still.value_or(false) ? "false" : "true",
                         "disable_shuffling");
}

/// The two limits of images or videos; `most`, `least`: what holds when nothing is said.
void convert_limits(const ConversionScope& s, const std::string& of, const std::string& section, int64_t most,
                    int64_t least) {
  const std::string most_key = of + "_max_pixels", least_key = of + "_min_pixels";
  const auto most_given = s.values.integer(most_key, 1), least_given = s.values.integer(least_key, 1);
  most = most_given.value_or(most);
  least = std::max(least_given.value_or(least), kProcessorMinPixels);
  s.draft.set_or_default(most_given.has_value(), section + ".max_pixels", std::to_string(most), most_key);
  s.draft.set_or_default(least_given.has_value(), section + ".min_pixels", std::to_string(least), least_key);
  if (least_given && *least_given < kProcessorMinPixels)
    s.draft.remark(s.values.place_of(least_key),
                   least_key + ": the model's processor scales " + of + "s up to 3136 pixels there too");
  if (most_given && most < least)
    s.values.fail(most_key, s.values.shown(most_key) + " is below the " + std::to_string(least) +
                                " pixels to which the model's processor scales up; valid: at least that");
}

void convert_videos(const ConversionScope& s) {
  const auto fps = s.values.number("video_fps", 0.001, 1000);
  const auto frames = s.values.integer("video_maxlen", 2, 65536);
  s.draft.set_or_default(fps.has_value(), "data.video.fps", number_text(fps.value_or(2)), "video_fps");
  s.draft.set_default("data.video.min_frames", "2");
  s.draft.set_or_default(frames.has_value(), "data.video.max_frames", std::to_string(frames.value_or(128)),
                         "video_maxlen");
  convert_limits(s, "video", "data.video", 256 * 256, 16 * 16);
}

void convert_packs(const ConversionScope& s) {
  const bool neat = s.values.boolean("neat_packing").value_or(false);
  const bool packed = s.values.boolean("packing").value_or(neat);
  const std::string key = neat ? "neat_packing" : "packing";
  if (!packed && !neat) {
    for (const char* name : {"packing", "neat_packing"})
      s.draft.take_note_of(name, "not needed: samples are not packed");
    return;
  }
  if (!neat)
    return s.values.fail("packing",
                         "value true lets samples of a pack attend to each other; valid: false, or neat_packing: true");
  if (s.options.global_batch == 0)
    return s.values.fail(key,
                         "value true makes a batch count packs; global_batch counts samples; valid: false, or "
                         "--global-batch SAMPLES, with about as many samples as the packs of a step hold");
  const int64_t length = s.values.integer("cutoff_len", 1, 10'000'000).value_or(2048);
  s.draft.set("data.pack_tokens", std::to_string(length), given_keys(s, {"neat_packing", "packing", "cutoff_len"}));
}

}  // namespace

void convert_llama_factory(const ConversionScope& s) {
  convert_tuner(s, {"finetuning_type"});
  convert_model(s);
  const bool held_out = convert_records(s);
  convert_form(s);
  convert_limits(s, "image", "data", 768 * 768, 32 * 32);
  convert_videos(s);
  convert_packs(s);
  convert_batch(s, ranks_of(s, /*visible=*/true), 8, 1);
  convert_optimizer(s, {5e-5, 0, 0.999});
  convert_schedule(s, "linear", s.values.number("learning_rate", 0).value_or(5e-5));
  convert_course(s);
  const int64_t logged = s.draft.find("logging.every") ? s.values.integer("logging_steps", 1).value_or(500) : 500;
  convert_evaluation(s, held_out, "no", logged);
}

}  // namespace troupe::convert
