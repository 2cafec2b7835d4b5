#include "base/config/job_spec_parser.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/model/processor_config.h"

using namespace troupe;
namespace fs = std::filesystem;

namespace {

const char* kSketch = R"(name: llava-3b
model: {path: models/Qwen2.5-VL-3B-Instruct, init: pretrained, dtype: bf16}
components:
  vision: {train: true, lr: 2.0e-6}
  merger: {train: true, lr: 1.0e-5}
  text:   {train: true}
groups:
  vision: {mesh: {sp: 4}, zero: 1, recompute: none}
  text:   {mesh: {tp: 4}, tp_sequence: true}
placement: colocated
data:
  sources: [{path: data/train.jsonl, image_root: data/images, take: 1.0}]
  max_sample_tokens: 8192
  pack_tokens: 8192
  min_pixels: 4*28*28
  max_pixels: 1280*28*28
  video: {fps: 1.5, min_frames: 2, max_frames: 64, min_pixels: 16*28*28, max_pixels: 128*28*28}
  supervise: all
  workers: auto
  on_bad_record: fail
eval: {split: 0.01, every: 100}
training:
  steps: 1000
  global_batch: 64
  microbatch: {samples: 1}
  optimizer: {lr: 1.0e-5, betas: [0.9, 0.95], weight_decay: 0.1, clip: 1.0}
  schedule: {type: cosine, warmup_ratio: 0.03, min_ratio: 0.1}
  seed: 1
checkpoint: {every: 200, keep: 3, export: end}
logging: {every: 1, tensorboard: false}
debug: {dump: {steps: [1], gradients: true, vision_rows: true}}
)";

/// A spec that is right, into which a test puts one wrong line. Lines: 1 model, 2 groups, 3 data, 4 training.
struct Lines {
  std::string model = "model: {path: m}";
  std::string groups = "groups: {vision: {mesh: {sp: 2}}, text: {mesh: {tp: 2}}}";
  std::string data = "data: {synthetic: {images: 1}}";
  std::string training = "training: {steps: 3, global_batch: 4}";
  std::string more;
  std::string text() const { return model + "\n" + groups + "\n" + data + "\n" + training + "\n" + more; }
};

std::string complaint(const std::string& text) {
  const auto spec = parse_job_spec(text, "j.yaml");
  if (spec.ok()) return "(accepted)";
  CHECK(spec.error().code == ErrorCode::kInvalidArgument);
  return spec.error().message;
}

std::string with_training(const std::string& training) {
  Lines l;
  l.training = "training: {" + training + "}";
  return complaint(l.text());
}

std::string with_groups(const std::string& groups) {
  Lines l;
  l.groups = "groups: {" + groups + "}";
  return complaint(l.text());
}

std::string with_data(const std::string& data) {
  Lines l;
  l.data = "data: {" + data + "}";
  return complaint(l.text());
}

std::string with_more(const std::string& more) {
  Lines l;
  l.more = more + "\n";
  return complaint(l.text());
}

/// A folder of its own for each test, removed at its end.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "troupe-config-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name) << text;
    return path_ + "/" + name;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

const std::string kShape = std::string(TROUPE_SOURCE_DIR) + "/configs/models/qwen2.5-vl-7b";

}  // namespace

TEST_CASE("a spec as a person writes it is read") {
  const auto spec = parse_job_spec(kSketch, "/jobs/a.yaml");
  if (!spec.ok()) FAIL(spec.error().message);
  CHECK(spec->model.path == "/jobs/models/Qwen2.5-VL-3B-Instruct");
  CHECK(spec->data.sources[0].image_root == "/jobs/data/images");
  CHECK(*spec->data.max_pixels == 1280 * 28 * 28);
  CHECK(*spec->data.video.fps == 1.5);
  CHECK(*spec->data.video.min_frames == 2);
  CHECK(*spec->data.video.max_frames == 64);
  CHECK(*spec->data.video.min_pixels == 16 * 28 * 28);
  CHECK(*spec->data.video.max_pixels == 128 * 28 * 28);
  CHECK(*spec->components.at("vision").lr == 2e-6);
  CHECK_FALSE(spec->components.at("text").lr.has_value());
  CHECK(spec->groups[0].components == std::vector<std::string>{"vision", "merger"});
  CHECK(spec->groups[1].mesh.size(Axis::kTp) == 4);
  CHECK(spec->groups[1].tp_sequence);
  CHECK(spec->debug.steps == std::vector<int64_t>{1});
  CHECK(spec->eval.split == 0.01);
  CHECK(spec->training.schedule.min_ratio == 0.1);
}

TEST_CASE("a written spec reads back as the same value, whatever its form") {
  const std::vector<std::string> forms = {
      kSketch,
      Lines{}.text(),
      Lines{}.text() +
          "placement: {vision: 2, text: 2}\nthreads: 3\nschedule: {credits: 7, memory_gib: 1.5, channel: tcp}\n",
      Lines{}.text() + "placement: {vision: ['a:0-1'], text: ['b:*']}\nname: no\ndevice: cpu\n",
      Lines{}.text() + "profile: {steps: [2, 3], ranks: [text/0]}\n",
      Lines{}.text() + "debug: {dump: {steps: [1, 3], samples: true, weights: true}}\neval: {max_samples: 9}\n",
      "model: {path: \"with \\\"quotes\\\", #hash: and $${braces}\", init: random, dtype: bf16-pure}\n"
      "data: {sources: [{path: a.json, take: 7}, {path: b.json, take: 0.25}], shuffle: false, too_long: truncate_text, "
      "supervise: last}\n"
      "training: {epochs: 2.5, global_batch: 6, microbatch: {tokens: 4096}, schedule: {type: linear, warmup_steps: "
      "10}, max_skipped: 0}\n"
      "eval: {sources: [{path: c.json}], every: 5}\ncheckpoint: {export: never}\n"};
  for (const std::string& form : forms) {
    const auto spec = parse_job_spec(form, "/jobs/a.yaml");
    if (!spec.ok()) FAIL(spec.error().message);
    const std::string written = job_spec_to_yaml(*spec);
    INFO(written);
    const auto again = parse_job_spec(written, "/elsewhere/job.yaml");
    if (!again.ok()) FAIL(again.error().message);
    CHECK(job_spec_to_yaml(*again) == written);
    CHECK(again->name == spec->name);
    CHECK(again->model.path == spec->model.path);
    CHECK(again->placement.slots == spec->placement.slots);
    CHECK(again->placement.counts == spec->placement.counts);
    CHECK(again->training.steps == spec->training.steps);
    CHECK(again->training.epochs == spec->training.epochs);
    CHECK(again->training.microbatch_tokens == spec->training.microbatch_tokens);
    CHECK(again->training.schedule.warmup_steps == spec->training.schedule.warmup_steps);
    CHECK(again->data.sources.size() == spec->data.sources.size());
  }
}

TEST_CASE("a written spec keeps odd names and record counts apart from fractions") {
  const auto spec = parse_job_spec(
      "model: {path: 'a ${'}\ndata: {sources: [{path: a.json, take: 1}, {path: b.json, take: 1.0}]}\ntraining: {steps: "
      "1}\nname: off\n",
      "/j/a.yaml");
  REQUIRE_FALSE(spec.ok());
  CHECK(spec.error().message ==
        "/j/a.yaml:1: key 'model.path': value 'a ${': '${' must be followed by a variable's name and '}' (write '$${' "
        "for the characters "
        "themselves)");
  const auto good = parse_job_spec(
      "model: {path: 'a $${'}\ndata: {sources: [{path: a.json, take: 1}, {path: b.json, take: 1.0}]}\ntraining: "
      "{steps: 1}\nname: off\n",
      "/j/a.yaml");
  REQUIRE(good.ok());
  CHECK(good->name == "off");
  CHECK(good->model.path == "/j/a ${");
  CHECK(good->data.sources[0].take_records == 1);
  CHECK(good->data.sources[1].take_records == -1);
  const auto again = parse_job_spec(job_spec_to_yaml(*good), "/k/b.yaml");
  REQUIRE(again.ok());
  CHECK(again->model.path == "/j/a ${");
  CHECK(again->data.sources[0].take_records == 1);
  CHECK(again->data.sources[1].take_records == -1);
}

TEST_CASE("C08: an unknown key is refused with its line and the nearest known key") {
  CHECK(with_training("step: 3, global_batch: 4") ==
        "j.yaml:4: key 'training.step': unknown key; did you mean 'steps'?\nj.yaml:4: key 'training.steps': is "
        "missing; valid: steps: NUMBER, or epochs: NUMBER");
  CHECK(with_data("synthetic: {images: 1}, max_pixel: 3") ==
        "j.yaml:3: key 'data.max_pixel': unknown key; did you mean 'max_pixels'?");
  CHECK(with_more("evel: {split: 0.1}") == "j.yaml:5: key 'evel': unknown key; did you mean 'eval'?");
  CHECK(with_more("checkpoint: {frobnicate: 1}") ==
        "j.yaml:5: key 'checkpoint.frobnicate': unknown key; valid here: every, keep, export");
}

TEST_CASE("C08: a right key in the wrong section is refused with the section where it belongs") {
  CHECK(with_training("steps: 3, lr: 1e-5") ==
        "j.yaml:4: key 'training.lr': unknown key; it belongs under components.NAME or training.optimizer");
  CHECK(with_more("weight_decay: 0.1") ==
        "j.yaml:5: key 'weight_decay': unknown key; it belongs under training.optimizer");
  CHECK(with_more("optimizer: {lr: 1}") == "j.yaml:5: key 'optimizer': unknown key; it belongs under training");
}

TEST_CASE("a doubled key is refused with both lines") {
  CHECK(with_more("data: {synthetic: {images: 2}}") == "j.yaml:5: key 'data': occurs twice; it is already on line 3");
}

TEST_CASE("C07: a number in quotes is refused, the same number without quotes is read") {
  CHECK(with_training("steps: 3, optimizer: {lr: '1e-5'}") ==
        "j.yaml:4: key 'training.optimizer.lr': value \"1e-5\" is in quotes, which makes it text; valid: a number from "
        "0, without quotes");
  Lines l;
  l.training = "training: {steps: 3, optimizer: {lr: 1e-5}}";
  const auto spec = parse_job_spec(l.text(), "j.yaml");
  REQUIRE(spec.ok());
  CHECK(spec->training.optimizer.lr == 1e-5);
  CHECK(with_groups("vision: {}, text: {mesh: {tp: \"2\"}}") ==
        "j.yaml:2: key 'groups.text.mesh.tp': value \"2\" is in quotes, which makes it text; valid: an integer from 1 "
        "to 4096, without quotes");
}

TEST_CASE("C07: what YAML 1.1 would read as another value is refused") {
  CHECK(with_training("steps: 010") ==
        "j.yaml:4: key 'training.steps': value '010' is not valid; valid: an integer from 1 to 1000000000");
  CHECK(with_training("steps: 1:30") ==
        "j.yaml:4: key 'training.steps': value '1:30' is not valid; valid: an integer from 1 to 1000000000");
  CHECK(with_training("steps: 3, optimizer: {lr: .nan}") ==
        "j.yaml:4: key 'training.optimizer.lr': value '.nan' is not valid; valid: a number from 0");
  CHECK(with_training("steps: 3, optimizer: {lr: 1e400}") ==
        "j.yaml:4: key 'training.optimizer.lr': value '1e400' is not valid; valid: a number from 0");
  CHECK(with_data("synthetic: {images: 1}, shuffle: no") ==
        "j.yaml:3: key 'data.shuffle': value 'no' is not valid; valid: true, false");
  CHECK(with_data("synthetic: {images: 1}, shuffle: off") ==
        "j.yaml:3: key 'data.shuffle': value 'off' is not valid; valid: true, false");
}

TEST_CASE("wrong types are refused by what they are") {
  CHECK(with_training("steps: [3]") ==
        "j.yaml:4: key 'training.steps': value [3] (a list) is not valid; valid: an integer from 1 to 1000000000");
  CHECK(with_more("checkpoint: 3") ==
        "j.yaml:5: key 'checkpoint': value '3' is not valid; valid: a mapping of keys and values");
  CHECK(with_more("checkpoint:") == "j.yaml:5: key 'checkpoint': has no value");
  CHECK(with_training("steps: 3, optimizer: {betas: [0.9]}") ==
        "j.yaml:4: key 'training.optimizer.betas': value [0.9] (a list) is not valid; valid: two numbers from 0 to "
        "below 1, "
        "such as [0.9, 0.95]");
  CHECK(with_data("synthetic: {pixels: 448}") ==
        "j.yaml:3: key 'data.synthetic.pixels': value '448' is not valid; valid: WIDTHxHEIGHT, such as 448x448");
  CHECK(complaint("- a\n- b\n") == "j.yaml:1: expected keys and values, got [a, b] (a list)");
  CHECK(complaint("model: {path: [\n").rfind("j.yaml:", 0) == 0);
  CHECK(with_training("steps: {a: [1, \"2\"], b: }") ==
        "j.yaml:4: key 'training.steps': value {a: [1, \"2\"], b: null} (a mapping) is not valid; valid: an integer "
        "from 1 "
        "to 1000000000");
  std::string numbers = "1";
  for (int i = 2; i < 60; ++i) numbers += ", " + std::to_string(i);
  CHECK(
      with_training("steps: [" + numbers + "]") ==
      "j.yaml:4: key 'training.steps': value [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, ...] (a list) is "
      "not valid; valid: an integer from 1 to 1000000000");
}

TEST_CASE("negative rates and unknown words are refused") {
  CHECK(with_training("steps: 3, optimizer: {lr: -1}") ==
        "j.yaml:4: key 'training.optimizer.lr': value '-1' is not valid; valid: a number from 0");
  CHECK(with_training("steps: 3, schedule: {type: cosin}") ==
        "j.yaml:4: key 'training.schedule.type': value 'cosin' is not valid; valid: cosine, linear, constant (did you "
        "mean cosine?)");
  CHECK(with_more("components: {vision: {lr: -2}}") ==
        "j.yaml:5: key 'components.vision.lr': value '-2' is not valid; valid: a number from 0");
  CHECK(with_more("components: {audio: {train: true}}") ==
        "j.yaml:5: key 'components.audio': unknown component; valid: vision, merger, text");
}

TEST_CASE("reserved keys are refused by name, their off values accepted") {
  CHECK(with_groups("vision: {recompute: {layers: all}}, text: {}") ==
        "j.yaml:2: key 'groups.vision.recompute': not built yet; valid: none");
  CHECK(with_groups("vision: {mesh: {pp: 2}}, text: {}") ==
        "j.yaml:2: key 'groups.vision.mesh.pp': not built yet; valid: 1");
  CHECK(with_groups("vision: {mesh: {sp: auto}}, text: {}") ==
        "j.yaml:2: key 'groups.vision.mesh.sp': value 'auto' is not built yet; valid: an integer from 1 to 4096");
  CHECK(with_groups("vision: {zero: 3}, text: {}") ==
        "j.yaml:2: key 'groups.vision.zero': value 3 is not built yet; valid: 0, 1");
  CHECK(with_more("logging: {tensorboard: true}") ==
        "j.yaml:5: key 'logging.tensorboard': not built yet; valid: false");
  CHECK(with_more("checkpoint: {best: eval_loss}") == "j.yaml:5: key 'checkpoint.best': not built yet; valid: none");
  CHECK(with_more("components: {text: {lora: {rank: 8}}}") == "j.yaml:5: key 'components.text.lora': not built yet");
  CHECK(with_groups("vision: {recompute: none, mesh: {pp: 1, cp: 1}}, text: {}") == "(accepted)");
  CHECK(with_more("logging: {tensorboard: false}") == "(accepted)");
}

TEST_CASE("C01: a batch that does not divide is refused with the equation and the nearest valid sizes") {
  Lines l;
  l.groups = "groups: {vision: {}, text: {mesh: {dp: 4}}}";
  l.training = "training: {steps: 1, global_batch: 6}";
  CHECK(complaint(l.text()) ==
        "j.yaml:4: key 'training.global_batch': value 6 must be a multiple of dp of group 'text' x microbatch.samples "
        "= 4 x 1 = 4; valid: 4 or 8");
  l.training = "training: {steps: 1, global_batch: 2}";
  CHECK(complaint(l.text()) ==
        "j.yaml:4: key 'training.global_batch': value 2 must be a multiple of dp of group 'text' x microbatch.samples "
        "= 4 x 1 = 4; valid: 4");
  l.training = "training: {steps: 1, global_batch: 12, microbatch: {samples: 2}}";
  CHECK(complaint(l.text()) ==
        "j.yaml:4: key 'training.global_batch': value 12 must be a multiple of dp of group 'text' x microbatch.samples "
        "= 4 x 2 = 8; valid: 8 or 16");
  l.training = "training: {steps: 1, global_batch: 6, microbatch: {tokens: 100}}";
  CHECK(complaint(l.text()) ==
        "j.yaml:4: key 'training.global_batch': value 6 must be a multiple of dp of group 'text' = 4; valid: 4 or 8");
  l.training = "training: {steps: 1, global_batch: 8}";
  CHECK(complaint(l.text()) == "(accepted)");
}

TEST_CASE("the length of training is given in exactly one way") {
  CHECK(with_training("steps: 3, epochs: 1") ==
        "j.yaml:4: key 'training.epochs': excludes 'steps'; valid: one of the two");
  CHECK(with_training("global_batch: 4") ==
        "j.yaml:4: key 'training.steps': is missing; valid: steps: NUMBER, or epochs: NUMBER");
  CHECK(with_training("epochs: 0") ==
        "j.yaml:4: key 'training.epochs': value '0' is not valid; valid: a number above 0");
  CHECK(with_training("steps: 3, schedule: {warmup_ratio: 0.1, warmup_steps: 1}") ==
        "j.yaml:4: key 'training.schedule.warmup_steps': excludes 'warmup_ratio'; valid: one of the two");
  CHECK(with_training("steps: 3, schedule: {warmup_steps: 4}") ==
        "j.yaml:4: key 'training.schedule.warmup_steps': value 4 must be at most training.steps = 3");
}

TEST_CASE("every component is in exactly one group, and in one that can hold it") {
  CHECK(with_groups("vision: {}") ==
        "j.yaml:2: key 'groups': component 'text' is in no group; valid: every component in exactly one group");
  CHECK(with_groups("vision: {}, text: {}, more: {components: [text]}") ==
        "j.yaml:2: key 'groups.more': component 'text' is in groups text and more; valid: every component in exactly "
        "one group");
  CHECK(with_groups("vision: {components: [vision]}, text: {components: [text, merger]}").find("is not built yet") !=
        std::string::npos);
  CHECK(with_groups("eyes: {}, text: {}") ==
        "j.yaml:2: key 'groups.eyes': key 'components' is missing; valid: a list of vision, merger, text");
  CHECK(with_groups("eyes: {components: [vision, merger]}, words: {components: [text]}") == "(accepted)");
  CHECK(with_groups("vision: {mesh: {tp: 2}}, text: {}") ==
        "j.yaml:2: key 'groups.vision.mesh.tp': value 2: tensor parallelism of the vision encoder is not built yet; "
        "valid: 1 (use sp)");
  CHECK(with_groups("vision: {tp_sequence: true}, text: {}") ==
        "j.yaml:2: key 'groups.vision.tp_sequence': belongs to the group of component text");
  CHECK(with_more("components: {vision: {train: false}, merger: {train: false}, text: {train: false}}") ==
        "j.yaml:5: key 'components': every component is frozen (train: false); valid: at least one with train: true");
}

TEST_CASE("placements that do not fit the groups are refused") {
  CHECK(with_more("placement: {vision: 3, text: 2}") ==
        "j.yaml:5: key 'placement.vision': value 3 must equal the ranks of the group's mesh (sp=2) = 2");
  CHECK(with_more("placement: {visoin: 2, text: 2}") ==
        "j.yaml:5: key 'placement.visoin': unknown group; did you mean 'vision'?");
  CHECK(with_more("placement: {vision: 2}") ==
        "j.yaml:5: key 'placement': group 'text' is not placed; valid: an entry for each of vision, text");
  CHECK(with_more("placement: {vision: 2, text: ['a:0-1']}") ==
        "j.yaml:5: key 'placement': mixes numbers of slots and lists of slots; valid: one kind for all groups");
  CHECK(with_more("placement: together") ==
        "j.yaml:5: key 'placement': value 'together' is not valid; valid: colocated, disjoint, {GROUP: NUMBER OF "
        "SLOTS, ...} or {GROUP: [\"NODE:0-3\", \"NODE:*\"], ...}");
}

TEST_CASE("records are given in exactly one way") {
  CHECK(with_data("shuffle: true") ==
        "j.yaml:3: key 'data': has no records; valid: sources: [{path: FILE}], or synthetic: {...}");
  CHECK(with_data("synthetic: {images: 1}, sources: [{path: a}]") ==
        "j.yaml:3: key 'data.synthetic': excludes 'sources'; valid: one of the two");
  CHECK(with_data("sources: []") == "j.yaml:3: key 'data.sources': is empty; valid: at least one {path: FILE}");
  CHECK(with_data("sources: {path: a}") ==
        "j.yaml:3: key 'data.sources': value {path: a} (a mapping) is not valid; valid: a list such as "
        "[{path: train.jsonl, image_root: images}]");
  CHECK(with_data("sources: [{image_root: a}]").find("j.yaml:3: key 'data.sources[0].path': is missing") == 0);
  CHECK(with_data("sources: [{path: a, columns: {image: b}}]") ==
        "j.yaml:3: key 'data.sources[0].columns.image': unknown column; valid: turns, role, content, images, videos, "
        "fps, "
        "system, id, question, input, answer, history, weight, record_weight, ignored");
  CHECK(with_data("sources: [{path: a, take: 1.5}]") ==
        "j.yaml:3: key 'data.sources[0].take': value '1.5' is not valid; valid: a fraction above 0.0 up to 1.0, or a "
        "number of records from 1");
  CHECK(with_data("synthetic: {images: 1}, min_pixels: 100, max_pixels: 99") ==
        "j.yaml:3: key 'data.min_pixels': value 100 must be at most max_pixels = 99");
  CHECK(with_data("synthetic: {images: 1}, video: {min_frames: 8, max_frames: 4}") ==
        "j.yaml:3: key 'data.video.min_frames': value 8 must be at most max_frames = 4");
  CHECK(with_data("synthetic: {images: 1}, video: {min_pixels: 8, max_pixels: 4}") ==
        "j.yaml:3: key 'data.video.min_pixels': value 8 must be at most max_pixels = 4");
  for (const char* value : {"0", "-1", "1001", "two"})
    CHECK(with_data("synthetic: {images: 1}, video: {fps: " + std::string(value) + "}").find("key 'data.video.fps'") !=
          std::string::npos);
  CHECK(with_more("eval: {every: 5}") ==
        "j.yaml:5: key 'eval.every': needs something to evaluate; valid: with split: FRACTION or sources: [...]");
}

TEST_CASE("all that is wrong with a file is said at once, in the order of its lines") {
  Lines l;
  l.model = "model: {dtype: fp16}";
  l.training = "training: {steps: x, seed: -1}";
  CHECK(complaint(l.text()) ==
        "j.yaml:1: key 'model.path': is missing; valid: a Hugging Face model folder\n"
        "j.yaml:1: key 'model.dtype': value 'fp16' is not valid; valid: fp32, bf16, bf16-pure\n"
        "j.yaml:4: key 'training.steps': value 'x' is not valid; valid: an integer from 1 to 1000000000\n"
        "j.yaml:4: key 'training.seed': value '-1' is not valid; valid: an integer from 0 to 9223372036854775807");
}

TEST_CASE("overrides win over the file and are named in complaints") {
  Folder folder;
  const std::string file =
      folder.write("a.yaml", "model: {path: '" + kShape +
                                 "', init: random}\ndata: {synthetic: {images: 1}}\ntraining: {steps: 3}\n");
  const auto good =
      load_job_spec(file, {"training.steps=7", "groups={vision: {mesh: {sp: 2}}, text: {}}", "name=other"}, {});
  if (!good.ok()) FAIL(good.error().message);
  CHECK(good->training.steps == 7);
  CHECK(good->groups[0].mesh.size(Axis::kSp) == 2);
  CHECK(good->name == "other");
  CHECK(good->file == file);
  CHECK(load_job_spec(file, {"training.steps=abc"}, {}).error().message ==
        "--set training.steps=abc: key 'training.steps': value 'abc' is not valid; valid: an integer from 1 to "
        "1000000000");
  CHECK(load_job_spec(file, {"training.step=4"}, {}).error().message ==
        "--set training.step=4: key 'training.step': unknown key; did you mean 'steps'?");
  CHECK(load_job_spec(file, {"training"}, {}).error().message ==
        "--set training: expected --set KEY.KEY=VALUE, such as --set training.steps=100");
  CHECK(load_job_spec(file, {"training.steps.x=1"}, {}).error().message ==
        "--set training.steps.x=1: 'training.steps' is '3' and has no 'x'");
  for (const std::string option : {"model.dtype=", "training.optimizer.lr= "}) {
    const auto empty = load_job_spec(file, {option}, {});
    const std::string key = option.substr(0, option.find('='));
    REQUIRE_FALSE(empty.ok());
    CHECK(empty.error().message ==
          "--set " + option + ": key '" + key + "': has no value; '" + key + "=null' removes it");
  }
  const auto epochs = load_job_spec(file, {"training.steps=null", "training.epochs=2"}, {});
  REQUIRE(epochs.ok());
  CHECK_FALSE(epochs->training.steps.has_value());
  CHECK(epochs->training.epochs == 2.0);
}

TEST_CASE("of a value whose variable is not set only that is said") {
  Folder folder;
  const std::string file = folder.write("a.yaml",
                                        "model: {path: \"${HUB}/model\"}\n"
                                        "data: {sources: [{path: \"${RECORDS}\"}]}\n"
                                        "training: {steps: \"${STEPS}\", optimizer: {betas: [0.9, \"${BETA}\"]}}\n");
  CHECK(load_job_spec(file, {}, {}).error().message ==
        file + ":1: key 'model.path': value '${HUB}/model': the environment variable HUB is not set\n" + file +
            ":2: key 'data.sources[0].path': value '${RECORDS}': the environment variable RECORDS is not set\n" + file +
            ":3: key 'training.steps': value '${STEPS}': the environment variable STEPS is not set\n" + file +
            ":3: key 'training.optimizer.betas[1]': value '${BETA}': the environment variable BETA is not set");
}

TEST_CASE("steps that are to be dumped or traced must come") {
  CHECK(with_more("debug: {dump: {steps: [1, 3], samples: true}}") == "(accepted)");
  CHECK(with_more("debug: {dump: {steps: [1, 4], samples: true}}") ==
        "j.yaml:5: key 'debug.dump.steps': value 4 is behind the last step, 3; valid: 1 to 3");
  CHECK(with_more("profile: {steps: [2, 3]}") == "(accepted)");
  CHECK(with_more("profile: {steps: [2, 4]}") ==
        "j.yaml:5: key 'profile.steps': value 4 is behind the last step, 3; valid: 1 to 3");
  JobSpec spec;  // by epochs
  spec.debug.steps = {9};
  CHECK(check_steps(spec, 9).ok());
  CHECK(check_steps(spec, 8).error().message ==
        "key 'debug.dump.steps': value 9 is behind the last step, 8; valid: 1 to 8");
}

TEST_CASE("the keys of a file remember where they were written, those of a text do not") {
  Folder folder;
  const std::string file = folder.write("a.yaml", "model: {path: '" + kShape + "', init: random}\n" +
                                                      "data: {synthetic: {images: 1}}\ntraining:\n  steps: 3\n");
  const auto spec = load_job_spec(file, {"training.global_batch=4"}, {});
  REQUIRE(spec.ok());
  CHECK(spec->places.of("training.steps") == file + ":4");
  CHECK(spec->places.of("training.global_batch") == "--set training.global_batch=4");
  CHECK(parse_job_spec(Lines{}.text(), "j.yaml")->places.places().empty());
}

TEST_CASE("variables come from the environment that is passed in") {
  Folder folder;
  const std::string file = folder.write("a.yaml",
                                        "model: {path: '${SHAPES}/qwen2.5-vl-7b', init: random}\ndata: {synthetic: "
                                        "{images: 1}}\ntraining: {steps: '${STEPS}'}\n");
  const auto spec =
      load_job_spec(file, {}, {{"SHAPES", std::string(TROUPE_SOURCE_DIR) + "/configs/models"}, {"STEPS", "11"}});
  if (!spec.ok()) FAIL(spec.error().message);
  CHECK(spec->model.path == kShape);
  CHECK(spec->training.steps == 11);
  CHECK(load_job_spec(file, {}, {{"STEPS", "11"}})
            .error()
            .message.find(
                file +
                ":1: key 'model.path': value '${SHAPES}/qwen2.5-vl-7b': the environment variable SHAPES is not set") ==
        0);
}

TEST_CASE("C03, C05: each component is judged by its own number of heads") {
  Folder folder;
  const std::string file =
      folder.write("a.yaml", "model: {path: '" + kShape +
                                 "', init: random}\ngroups:\n  vision: {mesh: {sp: 8}}\n  text: {mesh: {tp: 4}}\n"
                                 "data: {synthetic: {images: 1}}\ntraining: {steps: 3}\n");
  CHECK(load_job_spec(file, {}, {}).ok());
  CHECK(load_job_spec(file, {"groups.vision.mesh.sp=3", "groups.text.mesh.tp=8"}, {}).error().message ==
        "--set groups.vision.mesh.sp=3: key 'groups.vision.mesh.sp': value 3 does not divide the 16 attention heads of "
        "component vision (" +
            kShape +
            "/config.json): 16 % 3 = 1; valid: 1, 2, 4, 8, 16\n"
            "--set groups.text.mesh.tp=8: key 'groups.text.mesh.tp': value 8 does not divide the 28 attention heads of "
            "component text (" +
            kShape + "/config.json): 28 % 8 = 4; valid: 1, 2, 4, 7, 14, 28");
}

TEST_CASE("C09: missing and unreadable paths are named with their lines") {
  Folder folder;
  const std::string head = "model: {path: '" + kShape + "', init: random}\n", tail = "training: {steps: 3}\n";
  const std::string records = folder.write("r.jsonl", "{}\n");
  std::string file = folder.write("a.yaml", head + "data: {sources: [{path: none.jsonl}]}\n" + tail);
  CHECK(load_job_spec(file, {}, {})
            .error()
            .message.find(file + ":2: key 'data.sources[0].path': value '" + folder.path() +
                          "/none.jsonl' does not exist") != std::string::npos);
  file = folder.write("a.yaml", head + "data: {sources: [{path: r.jsonl, image_root: none}]}\n" + tail);
  CHECK(load_job_spec(file, {}, {})
            .error()
            .message.find(
                file + ":2: key 'data.sources[0].image_root': value '" + folder.path() +
                "/none' does not exist; valid: the folder or the tar archive that image paths are relative to") !=
        std::string::npos);
  folder.write("pictures.tar", "judged while indexing");
  folder.write("m/tokenizer.json", "{}");
  fs::copy(kShape + "/config.json", folder / "m/config.json");
  file = folder.write(
      "a.yaml",
      "model: {path: m, init: random}\ndata: {sources: [{path: r.jsonl, image_root: pictures.tar}]}\n" + tail);
  CHECK(load_job_spec(file, {}, {}).ok());
  file = folder.write("a.yaml", "model: {path: none}\ndata: {synthetic: {images: 1}}\n" + tail);
  CHECK(load_job_spec(file, {}, {}).error().message == file + ":1: key 'model.path': value '" + folder.path() +
                                                           "/none' does not exist; valid: a Hugging Face model folder");
  file = folder.write("a.yaml", "model: {path: Qwen/Qwen2.5-VL-3B-Instruct}\ndata: {synthetic: {images: 1}}\n" + tail);
  CHECK(load_job_spec(file, {}, {}).error().message ==
        file +
            ":1: key 'model.path': value 'Qwen/Qwen2.5-VL-3B-Instruct' looks like a model id of a hub; models are read "
            "from folders; download it with: "
            "hf download Qwen/Qwen2.5-VL-3B-Instruct --local-dir " +
            folder.path() + "/Qwen/Qwen2.5-VL-3B-Instruct");
  file = folder.write("a.yaml", "model: {path: '" + kShape + "'}\ndata: {synthetic: {images: 1}}\n" + tail);
  CHECK(load_job_spec(file, {}, {}).error().message ==
        file + ":1: key 'model.path': value '" + kShape +
            "' has no *.safetensors weights; valid: a folder with weights, or init: random");
  const auto missing = load_job_spec(folder / "nothing.yaml", {}, {});
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == ErrorCode::kNotFound);
}

TEST_CASE("truncated weights and weights of another shape are refused while the spec is read") {
  Folder folder;
  fs::copy(kShape, folder / "m");
  const std::string file =
      folder.write("a.yaml", "model: {path: m}\ndata: {synthetic: {images: 1}}\ntraining: {steps: 3}\n");
  const std::string weights = folder.write("m/model.safetensors", "abc");
  CHECK(load_job_spec(file, {}, {}).error().message ==
        file + ":1: key 'model.path': " + weights +
            ": truncated: a safetensors file has at least 8 bytes, this one has 3");
  folder.write("m/model.safetensors", std::string("\x02\0\0\0\0\0\0\0{}", 10));
  const std::string message = load_job_spec(file, {}, {}).error().message;
  CHECK(message.find(file + ":1: key 'model.path': " + folder.path() +
                     "/m: the weights do not match config.json: tensor 'visual.patch_embed.proj.weight' is missing") ==
        0);
  CHECK(message.find("and 719 more") != std::string::npos);
}

TEST_CASE("image markers beyond the vocabulary are refused, also those that the configuration leaves to the default") {
  Folder folder;
  folder.write("m/config.json",
               R"({"model_type": "qwen2_5_vl", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300, "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
    "image_token_id": 299, "vision_start_token_id": 300,
    "vision_config": {"depth": 3, "hidden_size": 48, "intermediate_size": 60, "num_heads": 6, "out_hidden_size": 64}})");
  const std::string file =
      folder.write("a.yaml", "model: {path: m, init: random}\ndata: {synthetic: {images: 1}}\ntraining: {steps: 3}\n");
  const std::string head = file + ":1: key 'model.path': " + folder.path() + "/m/config.json: key '";
  CHECK(load_job_spec(file, {}, {}).error().message ==
        head + "vision_start_token_id': value 300 must be below vocab_size 300\n" + head +
            "vision_end_token_id': value 151653 must be below vocab_size 300");
}

TEST_CASE("C11: synthetic data fewer than a batch, or that come to no step, are refused") {
  CHECK(with_data("synthetic: {samples: 3}") ==
        "j.yaml:3: key 'data.synthetic.samples': value 3 must be at least training.global_batch = 4");
  CHECK(with_data("synthetic: {samples: 4}") == "(accepted)");
  Lines l;
  l.training = "training: {epochs: 0.06, global_batch: 4}";
  l.data = "data: {synthetic: {samples: 8}}";
  CHECK(complaint(l.text()) ==
        "j.yaml:4: key 'training.epochs': value 0.06 of 8 samples is no sample, so no step; valid: at least 0.125");
}

TEST_CASE("synthetic samples longer than the spec allows are refused with both numbers") {
  Folder folder;
  const std::string head = "model: {path: '" + kShape + "', init: random}\n", tail = "training: {steps: 3}\n";
  const std::string synthetic =
      "synthetic: {images: 1, pixels: 448x448, text_tokens: 64}";  // 16 x 16 merged tokens, 2 markers, the text
  std::string file = folder.write("a.yaml", head + "data: {" + synthetic + ", max_sample_tokens: 322}\n" + tail);
  CHECK(load_job_spec(file, {}, {}).ok());
  file = folder.write("a.yaml", head + "data: {" + synthetic + ", max_sample_tokens: 321, pack_tokens: 10}\n" + tail);
  CHECK(load_job_spec(file, {}, {}).error().message ==
        file +
            ":2: key 'data.max_sample_tokens': value 321, but the samples of data.synthetic have 322 tokens; valid: at "
            "least 322\n" +
            file +
            ":2: key 'data.pack_tokens': value 10, but the samples of data.synthetic have 322 tokens; valid: at least "
            "322");
}

TEST_CASE("C09: optional files of a model folder only warn") {
  Folder folder;
  fs::copy(kShape, folder / "m");
  folder.write("m/tokenizer.json", "{}");
  folder.write("r.jsonl", "{}\n");
  const std::string file = folder.write(
      "a.yaml", "model: {path: m, init: random}\ndata: {sources: [{path: r.jsonl}]}\ntraining: {steps: 3}\n");
  const auto spec = load_job_spec(file, {}, {});
  if (!spec.ok()) FAIL(spec.error().message);
  REQUIRE(spec->warnings.size() == 3);
  CHECK(spec->warnings[2] == folder.path() + "/m: has no chat template file; the export will have none either");
  folder.write("m/processor_config.json", "{}");
  const auto nested = load_job_spec(file, {}, {});
  REQUIRE(nested.ok());
  CHECK(nested->warnings == std::vector<std::string>(spec->warnings.begin() + 1, spec->warnings.end()));
}

TEST_CASE("Two image processor files that differ are a warning") {
  Folder folder;
  fs::copy(kShape, folder / "m");
  folder.write("m/tokenizer.json", "{}");
  folder.write("m/preprocessor_config.json", R"({"max_pixels": 100352})");
  folder.write("m/processor_config.json", R"({"image_processor": {"max_pixels": 50176}})");
  folder.write("r.jsonl", "{}\n");
  const auto spec = load_job_spec(
      folder.write("a.yaml",
                   "model: {path: m, init: random}\ndata: {sources: [{path: r.jsonl}]}\ntraining: {steps: 3}\n"),
      {}, {});
  REQUIRE(spec.ok());
  CHECK(spec->warnings[0] == image_processor_warning(folder.path() + "/m"));
}

TEST_CASE("C09: a run folder that cannot be created is refused") {
  Folder folder;
  CHECK(check_writable(folder / "runs/a/b").ok());
  folder.write("file", "x");
  CHECK(check_writable(folder / "file/run").error().message ==
        "run folder '" + folder.path() + "/file/run': '" + folder.path() + "/file' is not a folder");
  CHECK_FALSE(check_writable("/proc/troupe-run").ok());  // root has every permission there, and yet can make no file
  if (geteuid() == 0) return;                            // root may write anywhere
  fs::create_directory(folder / "sealed");
  fs::permissions(folder / "sealed", fs::perms::owner_read | fs::perms::owner_exec);
  CHECK_FALSE(check_writable(folder / "sealed/run").ok());
}

TEST_CASE("aliases are copied and an explosion of them is refused") {
  CHECK(complaint("model: {path: m}\ntraining: &t {steps: 3}\ndata: {synthetic: {images: 1}}\n") == "(accepted)");
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 8; ++i) {
    const std::string below = "*a" + std::to_string(i - 1), name = "a" + std::to_string(i);
    bomb += name + ": &" + name + " [" + below + "," + below + "," + below + "," + below + "," + below + "," + below +
            "," + below + "," + below + "]\n";
  }
  CHECK(complaint(bomb) == "j.yaml: its aliases expand to more than a million values");
}

TEST_CASE("every integer has an upper bound that the message names") {
  CHECK(with_training("steps: 10, global_batch: 12000000") ==
        "j.yaml:4: key 'training.global_batch': value '12000000' is not valid; valid: an integer from 1 to 131072");
  CHECK(with_training("steps: 2000000000, global_batch: 4").find("an integer from 1 to 1000000000") !=
        std::string::npos);
  CHECK(with_data("sources: [{path: a.jsonl}], max_sample_tokens: 2000000000").find("an integer from 1 to 10000000") !=
        std::string::npos);
  CHECK(with_data("sources: [{path: a.jsonl}], max_pixels: 2000000000").find("an integer from 1 to 1073741824") !=
        std::string::npos);
}

TEST_CASE("a path that is empty, or a value with a zero byte, is refused with its line") {
  CHECK(with_data("sources: [{path: ''}]") ==
        "j.yaml:3: key 'data.sources[0].path': value \"\" is not valid; valid: a path");
  CHECK(with_data("sources: [{path: a.jsonl, image_root: ''}]").find("key 'data.sources[0].image_root': value \"\"") !=
        std::string::npos);
  CHECK(with_data("sources: [{path: \"a\\0b\"}]").find("j.yaml:3: is not valid YAML: holds a zero byte") == 0);
}

TEST_CASE("a key that is no word is said once, and what is printed of a file cannot steer a terminal") {
  for (const char* key : {"~", "[a, b]", "{a: b}"}) {
    const std::string said = with_more(std::string("? ") + key + "\n: 1");
    INFO(said);
    CHECK(said.find("a key must be a plain word, not ") != std::string::npos);
    CHECK(said.find('\n') == std::string::npos);
  }
  const std::string said = with_training("steps: \"a\\e[2J\\nb\", global_batch: 4");
  CHECK(said.find("\\x1b[2J\\nb") != std::string::npos);
  CHECK(said.find('\n') == std::string::npos);
}

TEST_CASE("a spec that is nested very deep is refused with its line, in every form of nesting") {
  for (const size_t levels : {size_t{65}, size_t{200'000}}) {
    const std::string lists = "name: a\nz: " + std::string(levels, '[') + std::string(levels, ']') + "\n";
    CHECK(complaint(lists).find("j.yaml:2: is not valid YAML: nested deeper than 64 levels") == 0);
    CHECK(complaint("name: a\nz: " + std::string(levels, '[')).find("nested deeper than 64 levels") !=
          std::string::npos);
  }
  std::string maps = "name: a\nz: ";
  for (int i = 0; i < 10'000; ++i) maps += "{a: ";
  CHECK(complaint(maps).find("nested deeper than 64 levels") != std::string::npos);
  std::string items = "- ";
  for (int i = 0; i < 10'000; ++i) items += "- ";
  CHECK(complaint(items).find("nested deeper than 64 levels") != std::string::npos);
}

TEST_CASE("a window of steps to trace is two step numbers, and ranks are those of the job") {
  CHECK(with_more("profile: {steps: [2, 3], ranks: all}") == "(accepted)");
  CHECK(with_more("profile: {steps: [2, 2], ranks: [vision/0, text/0]}") == "(accepted)");
  CHECK(with_more("profile: none") == "(accepted)");
  CHECK(with_more("profile: {steps: [1]}").find("key 'profile.steps'") != std::string::npos);
  CHECK(with_more("profile: {steps: [4, 2]}").find("valid: [FIRST, LAST], step numbers from 1") != std::string::npos);
  CHECK(with_more("profile: {steps: [1, 2], ranks: [vision/4096]}").find("vision/4096") != std::string::npos);
  CHECK(with_more("profile: {steps: [1, 2], ranks: [audio/0]}").find("key 'profile.ranks'") != std::string::npos);
}
