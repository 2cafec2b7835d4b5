#include "base/convert/trainer_settings.h"

#include <algorithm>

#include "base/config/scalars.h"

namespace troupe::convert {
namespace {

constexpr int64_t kMaxBatch = 131'072, kMaxRanks = 4096, kMaxSteps = 1'000'000'000;

std::string whole(int64_t value) { return std::to_string(value); }

/// A count of steps, or nothing with a remark when it is a share of them (which the trainer takes below 1).
std::optional<int64_t> steps_in(const ConversionScope& s, const std::string& key, const std::string& spec_key) {
  const auto number = s.values.number(key, 0, static_cast<double>(kMaxSteps));
  if (!number) return std::nullopt;
  if (*number > 0 && *number < 1) {
    s.draft.take_note_of(key, "no counterpart: " + spec_key + " is a number of steps, not a share of all");
    return std::nullopt;
  }
  return s.values.integer(key, 0, kMaxSteps);
}

std::string strategy_in(const ConversionScope& s, const std::string& key, const std::string& fallback) {
  const std::string word = s.values.text(key).value_or(fallback);
  if (word != "no" && word != "steps" && word != "epoch" && word != "best") s.values.bad_value(key, "no, steps, epoch");
  return word;
}

void write_groups(const ConversionScope& s, const Ranks& ranks) {
  const std::string mesh = "{dp: " + whole(ranks.count) + "}";
  const std::string why = ranks.from.empty() ? ranks.why : "";
  s.draft.set("groups.vision.components", "[vision, merger]", {}, "images are encoded here");
  s.draft.set("groups.vision.mesh", mesh, ranks.from, why);
  s.draft.set("groups.vision.zero", "1", {}, "optimizer state is shared out over the replicas");
  s.draft.set("groups.text.components", "[text]", {}, "the decoder");
  s.draft.set("groups.text.mesh", mesh, ranks.from, why);
  s.draft.set("groups.text.zero", "1", {}, "optimizer state is shared out over the replicas");
  s.draft.set("placement", "colocated", {}, "both groups on the same devices");
}

void convert_saving(const ConversionScope& s) {
  const std::string strategy = strategy_in(s, "save_strategy", "steps");
  const bool by_steps = strategy == "steps", given = s.values.has("save_steps");
  const auto steps = steps_in(s, "save_steps", "checkpoint.every");
  if (by_steps && (steps || !given))
    s.draft.set_or_default(given, "checkpoint.every", whole(steps.value_or(500)), "save_steps");
  else
    s.draft.set("checkpoint.every", "0", {by_steps ? "save_steps" : "save_strategy"},
                strategy == "no" ? "" : "only a number of steps has a counterpart");
  const auto keep = s.values.integer("save_total_limit", 1, 100'000);
  if (keep)
    s.draft.set("checkpoint.keep", whole(*keep), {"save_total_limit"});
  else
    s.draft.set("checkpoint.keep", "3", {}, "without save_total_limit all would be kept");
}

}  // namespace

Ranks ranks_of(const ConversionScope& s, bool visible) {
  if (s.options.devices > 0) return {s.options.devices, {}, "--devices"};
  const auto local = s.values.integer("NPROC_PER_NODE", 1, kMaxRanks);
  const int64_t nodes = s.values.integer("NNODES", 1, kMaxRanks).value_or(1);
  std::vector<std::string> from;
  int64_t count = 0;
  if (local) {
    count = *local;
    from = {"NPROC_PER_NODE"};
  } else if (visible && s.values.has("CUDA_VISIBLE_DEVICES")) {
    count = static_cast<int64_t>(s.values.words("CUDA_VISIBLE_DEVICES", true).size());
    from = {"CUDA_VISIBLE_DEVICES"};
  }
  if (s.values.has("NNODES")) from.push_back("NNODES");
  if (!from.empty() && count * nodes <= kMaxRanks) return {std::max<int64_t>(count, 1) * nodes, from, ""};
  if (!from.empty()) s.values.fail("NNODES", s.values.shown("NNODES") + " makes more than 4096 ranks");
  s.draft.remark({s.values.config().file, 0},
                 "does not say on how many devices it is trained, one is assumed; --devices N says it, and multiplies "
                 "training.global_batch");
  return {1, {}, "one device is assumed"};
}

void convert_batch(const ConversionScope& s, const Ranks& ranks, int64_t default_batch, int64_t accumulation) {
  const int64_t batch = s.values.integer("per_device_train_batch_size", 1, kMaxBatch).value_or(default_batch);
  if (accumulation == 0) accumulation = std::max<int64_t>(1, (16 + batch * ranks.count - 1) / (batch * ranks.count));
  const auto given = s.values.integer("gradient_accumulation_steps", 1, kMaxBatch);
  const int64_t steps = given.value_or(accumulation);
  if (s.options.global_batch > 0) {
    s.draft.set("training.global_batch", whole(s.options.global_batch), {}, "--global-batch");
  } else {
    std::vector<std::string> from;
    for (const char* key : {"per_device_train_batch_size", "gradient_accumulation_steps"})
      if (s.values.has(key)) from.emplace_back(key);
    from.insert(from.end(), ranks.from.begin(), ranks.from.end());
    s.draft.set("training.global_batch", whole(batch * steps * ranks.count), from,
                whole(batch) + " a device x " + whole(steps) + " accumulated x " + whole(ranks.count) +
                    (ranks.count == 1 ? " rank" : " ranks"));
  }
  s.draft.set_or_default(s.values.has("per_device_train_batch_size"), "training.microbatch.samples", whole(batch),
                         "per_device_train_batch_size");
  write_groups(s, ranks);
}

void convert_optimizer(const ConversionScope& s, const OptimizerDefaults& defaults) {
  struct Number {
    const char *key, *path;
    double fallback, minimum, maximum;
  };
  constexpr double kNone = std::numeric_limits<double>::max();
  for (const Number& n : {Number{"learning_rate", "training.optimizer.lr", defaults.lr, 0, kNone},
                          Number{"weight_decay", "training.optimizer.weight_decay", defaults.weight_decay, 0, kNone},
                          Number{"adam_epsilon", "training.optimizer.eps", 1e-8, 0, kNone},
                          Number{"max_grad_norm", "training.optimizer.clip", 1.0, 0, kNone}}) {
    const auto value = s.values.number(n.key, n.minimum, n.maximum);
    s.draft.set_or_default(value.has_value(), n.path, number_text(value.value_or(n.fallback)), n.key);
  }
  const auto beta1 = s.values.number("adam_beta1", 0, 1), beta2 = s.values.number("adam_beta2", 0, 1);
  std::vector<std::string> from;
  if (beta1) from.emplace_back("adam_beta1");
  if (beta2) from.emplace_back("adam_beta2");
  s.draft.set("training.optimizer.betas",
              "[" + number_text(beta1.value_or(0.9)) + ", " + number_text(beta2.value_or(defaults.beta2)) + "]", from);
  const std::string optimizer = s.values.text("optim").value_or("adamw_torch");
  const std::vector<std::string> valid{"adamw_torch", "adamw_torch_fused", "adamw_hf", "adamw_apex_fused"};
  if (std::find(valid.begin(), valid.end(), optimizer) == valid.end())
    s.values.fail("optim", s.values.shown("optim") + ": the optimizer is AdamW; valid: " + join_words(valid));
  s.draft.take_note_of("optim", "not needed: the optimizer is AdamW");
}

namespace {

/// The last rate as a part of the peak, for cosine_with_min_lr.
void convert_min_rate(const ConversionScope& s, const std::string& type, double lr) {
  const auto given = s.values.mapping("lr_scheduler_kwargs");
  if (type != "cosine_with_min_lr") {
    if (!given.empty())
      s.values.fail("lr_scheduler_kwargs", s.values.shown("lr_scheduler_kwargs") +
                                               " is not read for this lr_scheduler_type; valid: leave it out");
    return;
  }
  const auto value = given.size() == 1 ? parse_number(given[0].second.text) : std::nullopt;
  const bool rate = given.size() == 1 && given[0].first == "min_lr_rate";
  const bool absolute = given.size() == 1 && given[0].first == "min_lr" && lr > 0;
  const double ratio = value ? (rate ? *value : *value / lr) : -1;
  if (!(rate || absolute) || ratio < 0 || ratio > 1)
    return s.values.bad_value("lr_scheduler_kwargs",
                              "{\"min_lr\": RATE} up to learning_rate, or {\"min_lr_rate\": PART} from 0 to 1");
  s.draft.set("training.schedule.min_ratio", number_text(ratio), {"lr_scheduler_kwargs"});
}

/// Steps go before the ratio; steps below 1 are a ratio, as newer trainers have it.
void convert_warmup(const ConversionScope& s) {
  const auto ratio = s.values.number("warmup_ratio", 0, 1);
  const auto steps = s.values.number("warmup_steps", 0, static_cast<double>(kMaxSteps));
  if (steps && *steps >= 1) {
    const auto count = s.values.integer("warmup_steps", 1, kMaxSteps);
    return s.draft.set("training.schedule.warmup_steps", whole(count.value_or(1)), {"warmup_steps"});
  }
  if (steps && *steps > 0)
    return s.draft.set("training.schedule.warmup_ratio", number_text(*steps), {"warmup_steps"},
                       "below 1 it is a ratio");
  s.draft.set_or_default(ratio.has_value(), "training.schedule.warmup_ratio", number_text(ratio.value_or(0)),
                         "warmup_ratio");
}

}  // namespace

void convert_schedule(const ConversionScope& s, const std::string& fallback, double lr) {
  const std::string type = s.values.text("lr_scheduler_type").value_or(fallback);
  const bool given = s.values.has("lr_scheduler_type");
  std::string written = type;
  if (type == "constant_with_warmup") written = "constant";
  if (type == "cosine_with_min_lr") written = "cosine";
  if (written != "linear" && written != "cosine" && written != "constant")
    s.values.bad_value("lr_scheduler_type", "linear, cosine, constant, constant_with_warmup, cosine_with_min_lr");
  s.draft.set_or_default(given, "training.schedule.type", written, "lr_scheduler_type");
  if (type != "constant") {
    convert_warmup(s);
  } else {
    s.draft.set("training.schedule.warmup_ratio", "0", {"lr_scheduler_type"}, "constant has no warm-up there");
    for (const char* key : {"warmup_ratio", "warmup_steps"})
      s.draft.take_note_of(key,
                           "not needed: lr_scheduler_type constant has no warm-up there (constant_with_warmup has)");
  }
  convert_min_rate(s, type, lr);
}

void convert_course(const ConversionScope& s) {
  const auto steps = s.values.integer("max_steps", -1, kMaxSteps);
  const auto epochs = s.values.number("num_train_epochs", 0, 1e6), limit = s.values.number("max_epochs", 0, 1e6);
  if (steps && *steps > 0) {
    s.draft.set("training.steps", whole(*steps), {"max_steps"});
    s.draft.take_note_of("num_train_epochs", "not needed: max_steps goes before it");
  } else if (limit && *limit < epochs.value_or(3)) {
    s.draft.set("training.epochs", number_text(*limit), {"max_epochs"});
  } else {
    s.draft.set_or_default(epochs.has_value(), "training.epochs", number_text(epochs.value_or(3)), "num_train_epochs");
  }
  const auto seed = s.values.integer("seed", 0);
  s.draft.set_or_default(seed.has_value(), "training.seed", whole(seed.value_or(42)), "seed");
  if (s.values.boolean("use_cpu").value_or(false)) s.draft.set("device", "cpu", {"use_cpu"});
  if (s.values.boolean("group_by_length").value_or(false)) {
    s.draft.set("data.sort_window", "50", {"group_by_length"}, "the batches that are sorted among themselves");
  }
  convert_saving(s);
  const auto logged = steps_in(s, "logging_steps", "logging.every");
  if (logged && *logged > 0) s.draft.set("logging.every", whole(*logged), {"logging_steps"});
}

std::string evaluation_strategy(const ConversionScope& s, const std::string& fallback) {
  const bool newer = s.values.has("eval_strategy");
  return strategy_in(s, newer ? "eval_strategy" : "evaluation_strategy", fallback);
}

void convert_evaluation(const ConversionScope& s, bool held_out, const std::string& fallback, int64_t default_steps) {
  const std::string key = s.values.has("eval_strategy") ? "eval_strategy" : "evaluation_strategy";
  const std::string strategy = evaluation_strategy(s, fallback);
  const auto steps = steps_in(s, "eval_steps", "eval.every");
  if (!held_out) {
    for (const char* name : {"eval_strategy", "evaluation_strategy", "eval_steps"})
      s.draft.take_note_of(name, "not needed: nothing is held out to evaluate");
    return;
  }
  if (strategy != "steps") {
    const std::vector<std::string> from =
        s.values.has(key) ? std::vector<std::string>{key} : std::vector<std::string>{};
    return s.draft.set("eval.every", "0", from, strategy == "no" ? "" : "only a number of steps has a counterpart");
  }
  std::vector<std::string> from;
  if (s.values.has(key)) from.push_back(key);
  if (steps) from.emplace_back("eval_steps");
  s.draft.set("eval.every", whole(steps.value_or(default_steps)), from);
}

}  // namespace troupe::convert
