#include "actors/data/chat_layout.h"

#include "actors/data/placeholders.h"

namespace troupe {
namespace {

using Kind = LayoutPart::Kind;

/// `weight` 0: nothing of the turn is learned.
void add_turn(Role role, const std::string& text, float weight, std::vector<LayoutPart>& out) {
  const bool learned = weight > 0;
  out.push_back({Kind::kTurnStart, {}, LayoutPart::kNothing});
  // The role's line and the text are tokenized together, as a template's output is: a text that begins with a newline
  // merges with it.
  const std::string head = std::string(role_name(role)) + "\n";
  const std::string words = head + text;
  size_t done = 0;
  if (role == Role::kUser) {
    for (auto p = find_placeholder(words, 0); p.found(); p = find_placeholder(words, done)) {
      if (p.at > done) out.push_back({Kind::kWords, words.substr(done, p.at - done), LayoutPart::kNothing});
      out.push_back({p.video ? Kind::kVideo : Kind::kImage, {}, LayoutPart::kNothing});
      done = p.end();
    }
  }
  if (done < words.size())
    out.push_back({Kind::kWords, words.substr(done), learned ? head.size() : LayoutPart::kNothing, weight});
  out.push_back({Kind::kTurnEnd, {}, learned ? 0 : LayoutPart::kNothing, weight});
  out.push_back({Kind::kWords, "\n", LayoutPart::kNothing});
}

}  // namespace

std::vector<LayoutPart> lay_out(const std::vector<Turn>& turns, const std::optional<std::string>& default_system,
                                Supervise supervise) {
  std::vector<LayoutPart> out;
  if (default_system && (turns.empty() || turns[0].role != Role::kSystem))
    add_turn(Role::kSystem, *default_system, 0, out);
  for (size_t i = 0; i < turns.size(); ++i) {
    const Turn& turn = turns[i];
    const bool learned =
        turn.role == Role::kAssistant && !turn.text.empty() && (supervise == Supervise::kAll || i + 1 == turns.size());
    add_turn(turn.role, turn.text, learned ? turn.weight : 0, out);
  }
  return out;
}

ChatText as_text(const std::vector<LayoutPart>& parts) {
  ChatText out;
  for (const LayoutPart& part : parts) {
    const size_t begin = out.text.size();
    out.text += part.kind == Kind::kTurnStart ? "<|im_start|>"
                : part.kind == Kind::kTurnEnd ? "<|im_end|>"
                : part.kind == Kind::kImage   ? "<|vision_start|><|image_pad|><|vision_end|>"
                : part.kind == Kind::kVideo   ? "<|vision_start|><|video_pad|><|vision_end|>"
                                              : part.words;
    if (part.learned_from == LayoutPart::kNothing) continue;
    if (part.kind == Kind::kTurnEnd) {
      out.learned.back().second = out.text.size();
    } else {
      out.learned.emplace_back(begin + part.learned_from, out.text.size());
    }
  }
  return out;
}

}  // namespace troupe
