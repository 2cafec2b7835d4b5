#include "actors/data/template_shapes.h"

#include <vector>

#include "actors/data/placeholders.h"

namespace troupe {
namespace {

constexpr size_t kMostShapes = 10'000;  // that are kept; beyond them records are rendered one by one

/// Turns of the same shape whose texts are all different, and the shape's name.
struct Shape {
  std::string name;
  std::vector<Turn> turns;
};

Shape shape_of(const std::vector<Turn>& turns, bool in_parts) {
  Shape shape;
  int number = 0;
  for (const Turn& turn : turns) {
    Turn other{turn.role, {}};
    const auto add_text = [&] {
      other.text += "Text " + std::to_string(++number) + ".";
      shape.name += 't';
    };
    shape.name += std::to_string(static_cast<int>(turn.role));
    size_t done = 0;
    const bool media = in_parts && turn.role == Role::kUser;
    for (auto p = media ? find_placeholder(turn.text, 0) : Placeholder(); p.found();
         p = find_placeholder(turn.text, done)) {
      if (p.at > done) add_text();
      other.text += p.video ? kVideoPlaceholder : kImagePlaceholder;
      shape.name += p.video ? 'v' : 'i';
      done = p.end();
    }
    if (done < turn.text.size() || done == 0) add_text();
    shape.turns.push_back(std::move(other));
  }
  return shape;
}

}  // namespace

bool TemplateShapes::is_sure(const Record& record, Contents contents) const {
  Shape shape = shape_of(record.turns, contents != Contents::kStrings);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = sure_.find(shape.name); known != sure_.end()) return known->second;
    if (sure_.size() >= kMostShapes) return false;
  }
  bool looked_at = false;
  const bool same = form_->check(shape.turns, contents, "it", &looked_at).ok();
  const std::lock_guard lock(mutex_);
  return sure_.emplace(std::move(shape.name), same && !looked_at).first->second;
}

Status TemplateShapes::check(const Record& record) const {
  const Contents contents = has_media(record.turns) ? Contents::kQuestionParts : Contents::kStrings;
  if (is_sure(record, contents)) return {};
  return form_->check(record.turns, contents, "it");
}

}  // namespace troupe
