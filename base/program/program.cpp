#include "base/program/program.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace troupe {
namespace {
constexpr std::array<const char*, 10> kOpNames = {"forward", "backward", "post",   "wait",   "reduce",
                                                  "reduced", "combine",  "update", "gather", "gathered"};

Result<Op> op_from_name(const std::string& name) {
  for (size_t i = 0; i < kOpNames.size(); ++i)
    if (name == kOpNames[i]) return static_cast<Op>(i);
  return invalid_argument("program: unknown instruction '" + name + "'");
}

bool group_is_trained(const JobSpec& spec, const GroupSpec& group) {
  return std::any_of(group.components.begin(), group.components.end(), [&](const std::string& c) {
    const auto it = spec.components.find(c);
    return it == spec.components.end() || it->second.train;
  });
}

int group_index(const JobSpec& spec, const std::string& component) {
  for (size_t g = 0; g < spec.groups.size(); ++g) {
    const auto& held = spec.groups[g].components;
    if (std::find(held.begin(), held.end(), component) != held.end()) return static_cast<int>(g);
  }
  return -1;
}

/// Groups share a slot unless the placement keeps them apart; only then does running ahead overlap anything.
bool may_share_slots(const JobSpec& spec) { return spec.placement.kind == PlacementKind::kColocated; }

std::vector<std::string> group_names(const JobSpec& spec) {
  std::vector<std::string> names;
  for (const GroupSpec& g : spec.groups) names.push_back(g.name);
  return names;
}
}  // namespace

const char* op_name(Op op) { return kOpNames[static_cast<size_t>(op)]; }

std::string Program::to_json() const {
  nlohmann::ordered_json j;
  j["groups"] = groups;
  j["credits"] = credits;
  j["budget_bytes"] = budget_bytes;
  j["row_bytes"] = row_bytes;
  j["buckets"] = buckets;
  j["edges"] = nlohmann::ordered_json::array();
  for (const ProgramEdge& e : edges)
    j["edges"].push_back({{"producer", e.producer}, {"consumer", e.consumer}, {"gradient", e.gradient}});
  j["loops"] = nlohmann::ordered_json::array();
  for (const RecordedLoop& l : loops) {
    nlohmann::ordered_json calls = nlohmann::ordered_json::array();
    for (const RecordedCall& c : l.calls) calls.push_back({{"op", op_name(c.op)}, {"group", c.group}});
    j["loops"].push_back({{"units_of", l.units_of}, {"calls", calls}});
  }
  return j.dump();
}

Result<Program> Program::from_json(const std::string& text) {
  const auto j = nlohmann::json::parse(text, nullptr, false);
  if (j.is_discarded() || !j.is_object()) return invalid_argument("program: not a JSON object");
  Program p;
  try {
    p.groups = j.at("groups").get<std::vector<std::string>>();
    p.credits = j.at("credits").get<int>();
    p.budget_bytes = j.at("budget_bytes").get<int64_t>();
    p.row_bytes = j.at("row_bytes").get<std::vector<int64_t>>();
    p.buckets = j.at("buckets").get<std::vector<int>>();
    for (const auto& e : j.at("edges")) p.edges.push_back({e.at("producer"), e.at("consumer"), e.at("gradient")});
    for (const auto& l : j.at("loops")) {
      RecordedLoop loop;
      loop.units_of = l.at("units_of");
      for (const auto& c : l.at("calls")) {
        TROUPE_ASSIGN(const Op op, op_from_name(c.at("op")));
        loop.calls.push_back({op, c.at("group")});
      }
      p.loops.push_back(std::move(loop));
    }
  } catch (const nlohmann::json::exception& e) {
    return invalid_argument(std::string("program: ") + e.what());
  }
  return p;
}

Recorder::Recorder(std::vector<std::string> groups) { program_.groups = std::move(groups); }
void Recorder::edge(int producer, int consumer, bool gradient) {
  program_.edges.push_back({producer, consumer, gradient});
}
void Recorder::credits(int units) { program_.credits = units; }
void Recorder::budget(int64_t bytes) { program_.budget_bytes = bytes; }
void Recorder::holds(int group, int64_t row_bytes) {
  program_.row_bytes.resize(program_.groups.size());
  program_.row_bytes[static_cast<size_t>(group)] = row_bytes;
}
void Recorder::buckets(std::vector<int> of_each_group) { program_.buckets = std::move(of_each_group); }

void Recorder::for_units(int group, const std::function<void()>& body) {
  TROUPE_CHECK(open_ == nullptr);
  RecordedLoop loop;
  loop.units_of = group;
  open_ = &loop;
  body();
  open_ = nullptr;
  program_.loops.push_back(std::move(loop));
}

void Recorder::forward(int group) {
  TROUPE_CHECK(open_ != nullptr && open_->units_of == group);
  open_->calls.push_back({Op::kForward, group});
}
void Recorder::backward(int group) {
  TROUPE_CHECK(open_ != nullptr && open_->units_of == group);
  open_->calls.push_back({Op::kBackward, group});
}
void Recorder::combine() { program_.loops.push_back({-1, {{Op::kCombine, -1}}}); }

void Recorder::step(int group) {
  // Gradients are reduced before the one norm of all groups is combined; weights change only after it.
  const auto at = std::find_if(program_.loops.begin(), program_.loops.end(), [](const RecordedLoop& l) {
    return std::any_of(l.calls.begin(), l.calls.end(), [](const RecordedCall& c) { return c.op == Op::kCombine; });
  });
  program_.loops.insert(at, {-1, {{Op::kReduce, group}}});
  program_.loops.push_back({-1, {{Op::kUpdate, group}, {Op::kGather, group}}});
}

Program Recorder::finish() { return std::move(program_); }

namespace {
/// Encoder and decoder of a job, with the boundary between them.
struct Roles {
  int encoder = -1, decoder = -1;
};
Roles roles_of(const JobSpec& spec) { return {group_index(spec, "vision"), group_index(spec, "text")}; }

/// Forward passes of the encoder and the decoder and, where asked for, their backward passes.
void record_passes(Recorder& r, const Roles& roles, bool decoder_backward, bool encoder_backward) {
  r.for_units(roles.encoder, [&] { r.forward(roles.encoder); });
  r.for_units(roles.decoder, [&] {
    r.forward(roles.decoder);
    if (decoder_backward) r.backward(roles.decoder);
  });
  if (encoder_backward) r.for_units(roles.encoder, [&] { r.backward(roles.encoder); });
}
}  // namespace

Program record_training_loop(const JobSpec& spec, std::vector<int> buckets, int64_t encoder_row_bytes) {
  const Roles roles = roles_of(spec);
  const bool encoder_trained = group_is_trained(spec, spec.groups[static_cast<size_t>(roles.encoder)]);
  const bool decoder_trained = group_is_trained(spec, spec.groups[static_cast<size_t>(roles.decoder)]);
  Recorder r(group_names(spec));
  r.buckets(std::move(buckets));
  r.edge(roles.encoder, roles.decoder, encoder_trained);
  r.credits(may_share_slots(spec) ? 0 : spec.credits);
  if (spec.memory_gib > 0 && encoder_row_bytes > 0) {
    r.budget(static_cast<int64_t>(spec.memory_gib * static_cast<double>(int64_t{1} << 30)));
    r.holds(roles.encoder, encoder_row_bytes);
  }
  record_passes(r, roles, encoder_trained || decoder_trained, encoder_trained);
  r.combine();
  if (encoder_trained) r.step(roles.encoder);
  if (decoder_trained) r.step(roles.decoder);
  return r.finish();
}

Program record_dispatch_loop(const JobSpec& spec) {
  const Roles roles = roles_of(spec);
  Recorder r(group_names(spec));
  r.edge(roles.encoder, roles.decoder, true);
  r.credits(spec.credits);
  record_passes(r, roles, true, true);
  return r.finish();
}

Program record_evaluation_loop(const JobSpec& spec) {
  const Roles roles = roles_of(spec);
  Recorder r(group_names(spec));
  r.edge(roles.encoder, roles.decoder, false);
  r.credits(spec.credits);
  record_passes(r, roles, false, false);
  r.combine();
  return r.finish();
}

namespace {
/// Rows of a vision unit in the lane that has most of them.
int64_t unit_rows(const StepPlan& plan, int unit) {
  int64_t most = 0;
  for (const auto& lane : plan.vision) {
    int64_t rows = 0;
    for (const int32_t image : lane[static_cast<size_t>(unit)].images) {
      const auto i = static_cast<size_t>(image);
      rows += (i + 1 < plan.images.size() ? plan.images[i + 1].first_row : plan.rows) - plan.images[i].first_row;
    }
    most = std::max(most, rows);
  }
  return most;
}
}  // namespace

StepShape shape_of(const Program& program, const StepPlan& plan) {
  StepShape shape;
  shape.units.assign(program.groups.size(), 0);
  for (const ProgramEdge& e : program.edges) {
    shape.units[static_cast<size_t>(e.producer)] = plan.vision_units();
    shape.units[static_cast<size_t>(e.consumer)] = plan.text_units();
    shape.feeds.push_back(plan.feeds());
    const auto producer = static_cast<size_t>(e.producer);
    if (producer >= program.row_bytes.size()) continue;
    shape.held_bytes.resize(program.groups.size());
    for (int unit = 0; unit < plan.vision_units(); ++unit)
      shape.held_bytes[producer].push_back(unit_rows(plan, unit) * program.row_bytes[producer]);
  }
  return shape;
}

std::string Instruction::to_string(const Program& program) const {
  std::string text = group < 0 ? "all" : program.groups[static_cast<size_t>(group)];
  text += std::string(".") + op_name(op);
  if (bucket >= 0) return text + "(bucket " + std::to_string(bucket) + ")";
  if (unit < 0) return text;
  text += "(" + std::to_string(unit);
  if (edge >= 0) {
    const ProgramEdge& e = program.edges[static_cast<size_t>(edge)];
    const int other = group == e.producer ? e.consumer : e.producer;
    text += (op == Op::kPost ? " -> " : " <- ") + program.groups[static_cast<size_t>(other)] + " " +
            std::to_string(peer_unit);
    if (gradient) text += ", gradient";
  }
  return text + ")";
}

}  // namespace troupe
