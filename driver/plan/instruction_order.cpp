#include "driver/plan/instruction_order.h"

#include <algorithm>

namespace troupe {
namespace {

int text_units(const JobSpec& spec) {
  const GroupSpec* text = spec.group_of_component("text");
  const int64_t lanes = text ? text->mesh.size(Axis::kDp) : 1;
  const int64_t samples = (spec.training.global_batch + lanes - 1) / lanes;
  if (spec.training.microbatch_tokens > 0) return static_cast<int>(samples);  // at most: a sample each
  return static_cast<int>((samples + spec.training.microbatch_samples - 1) / spec.training.microbatch_samples);
}

StepShape one_to_one(const Program& program, int producers, int consumers) {
  StepShape shape;
  shape.units.assign(program.groups.size(), 0);
  for (const ProgramEdge& e : program.edges) {
    shape.units[static_cast<size_t>(e.producer)] = producers;
    shape.units[static_cast<size_t>(e.consumer)] = consumers;
    std::vector<std::vector<int>> feeds;
    for (int u = 0; u < producers; ++u) feeds.push_back({std::min(u, consumers - 1)});
    shape.feeds.push_back(std::move(feeds));
  }
  return shape;
}

}  // namespace

StepShape shape_from_spec(const JobSpec& spec, const Program& program, bool with_images) {
  const int units = text_units(spec);
  return one_to_one(program, with_images ? units : 0, units);
}

Status check_instruction_order(const JobSpec& spec, const std::vector<int>& buckets) {
  const Program program = record_training_loop(spec, buckets, /*encoder_row_bytes=*/1);
  TROUPE_RETURN_IF_ERROR(check_program(program));
  const int units = text_units(spec);
  std::vector<StepShape> shapes = {one_to_one(program, 0, units), one_to_one(program, 1, 1),
                                   one_to_one(program, units, units)};
  shapes.push_back(shapes.back());  // each unit alone is more than the memory
  shapes.back().held_bytes.assign(program.groups.size(),
                                  std::vector<int64_t>(static_cast<size_t>(units), program.budget_bytes + 1));
  for (const StepShape& shape : shapes) TROUPE_RETURN_IF_ERROR(check_order(program, shape, expand(program, shape)));
  return {};
}

std::vector<std::string> instruction_order(const JobSpec& spec, const std::vector<int>& buckets) {
  const Program program = record_training_loop(spec, buckets);
  std::vector<std::string> lines;
  for (const Instruction& i : expand(program, shape_from_spec(spec, program, true)))
    lines.push_back(i.to_string(program));
  return lines;
}

std::string render_instruction_order(const JobSpec& spec, const std::vector<int>& buckets) {
  constexpr size_t kMost = 40;
  const std::vector<std::string> lines = instruction_order(spec, buckets);
  std::string text = "\norder of instructions of a full step (" + std::to_string(lines.size()) +
                     "; each host runs those of its groups)\n  a vision unit for each text unit; how many the records "
                     "make, `troupe check` counts\n";
  if (spec.memory_gib > 0)
    text += "  schedule.memory_gib lets the encoder hold fewer units where their rows ask for more memory\n";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines.size() > kMost && i == kMost - 10) {
      text += "  ... " + std::to_string(lines.size() - kMost) + " more (all with --json)\n";
      i = lines.size() - 10;
    }
    text += "  " + lines[i] + "\n";
  }
  return text;
}

}  // namespace troupe
