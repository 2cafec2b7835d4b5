#include "actors/data/template_form.h"

#include <algorithm>

#include "actors/data/chat_layout.h"
#include "actors/data/placeholders.h"
#include "actors/jinja/text.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;
using Spans = std::vector<std::pair<size_t, size_t>>;

/// A text as parts, images and videos where their placeholders stand, every other one with its file.
Json parts_of(const std::string& text, bool media, bool cut) {
  Json parts = Json::array();
  const auto add_text = [&](const std::string& words) {
    const size_t at = cut ? std::min(words.find_first_of(" \n"), words.size()) : words.size();
    for (const std::string& part : {words.substr(0, at), words.substr(at)})
      if (!part.empty()) parts.push_back({{"type", "text"}, {"text", part}});
  };
  size_t done = 0;
  for (auto p = media ? find_placeholder(text, 0) : Placeholder(); p.found(); p = find_placeholder(text, done)) {
    add_text(text.substr(done, p.at - done));
    const std::string type = p.video ? "video" : "image";
    parts.push_back({{"type", type}});
    if (parts.size() % 2 == 0) parts.back()[type] = p.video ? "clip.mp4" : "picture.png";
    done = p.end();
  }
  add_text(text.substr(done));
  if (parts.empty()) parts.push_back({{"type", "text"}, {"text", ""}});
  return parts;
}

Json messages_of(const std::vector<Turn>& turns, Contents contents) {
  const bool cut = contents == Contents::kQuestionCuts || contents == Contents::kAllCuts;
  Json messages = Json::array();
  for (const Turn& turn : turns) {
    const bool question = turn.role == Role::kUser;
    const bool parts = contents == Contents::kAllCuts || (contents != Contents::kStrings && question);
    messages.push_back(
        {{"role", role_name(turn.role)}, {"content", parts ? parts_of(turn.text, question, cut) : Json(turn.text)}});
  }
  return messages;
}

bool has_empty_answer(const std::vector<Turn>& turns) {
  return std::any_of(turns.begin(), turns.end(),
                     [](const Turn& turn) { return turn.role == Role::kAssistant && turn.text.empty(); });
}

/// Spans without empty ones, neighbours that touch as one.
Spans joined(const Spans& spans) {
  Spans out;
  for (const auto& [begin, end] : spans) {
    if (begin == end) continue;
    if (!out.empty() && out.back().second == begin)
      out.back().second = end;
    else
      out.emplace_back(begin, end);
  }
  return out;
}

std::string learned_words(const std::string& text, const Spans& spans) {
  std::string words;
  for (const auto& [begin, end] : spans)
    words += (words.empty() ? "" : " and ") + jinja::shown(text.substr(begin, end - begin));
  return words.empty() ? "nothing" : words;
}

}  // namespace

bool has_media(const std::vector<Turn>& turns) { return !media_in_order(turns).empty(); }

std::string difference(const std::string& got, const std::string& due) {
  size_t at = static_cast<size_t>(std::mismatch(got.begin(), got.end(), due.begin(), due.end()).first - got.begin());
  at = at > 16 ? at - 16 : 0;
  while (at > 0 && (static_cast<unsigned char>(got[at]) & 0xC0U) == 0x80U) --at;
  const auto from_there = [&](const std::string& text) {
    std::string piece = jinja::shown(std::string_view(text).substr(at));
    return at > 0 ? piece.insert(1, "...") : piece;
  };
  return from_there(got) + " where the form has " + from_there(due);
}

Result<jinja::Rendering> TemplateForm::render(const std::vector<Turn>& turns, Contents contents, bool opens,
                                              const std::string& what) const {
  Json variables = tokens_;
  variables["messages"] = messages_of(turns, contents);
  variables["tools"] = nullptr;
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = opens;
  auto rendered = template_.render(variables);
  if (rendered.ok()) return rendered;
  if (rendered.error().code == ErrorCode::kUnimplemented)
    return invalid_argument("has what is not understood, met in " + what + ": " + rendered.error().message);
  return invalid_argument("fails on " + what + ": " + rendered.error().message);
}

Status TemplateForm::check(const std::vector<Turn>& turns, Contents contents, const std::string& what,
                           bool* looked_at) const {
  const ChatText due = as_text(lay_out(turns, default_, Supervise::kAll));
  TROUPE_ASSIGN(const jinja::Rendering got, render(turns, contents, false, what));
  if (looked_at != nullptr) *looked_at = got.looked_at;
  if (got.text != due.text) return invalid_argument("writes " + what + " as " + difference(got.text, due.text));
  if (!template_.marks_answers() || has_empty_answer(turns)) return {};  // an empty answer teaches nothing here
  const Spans marked = joined(got.marked);
  if (marked == due.learned) return {};
  return invalid_argument("marks other words as the answers of " + what + ": " + learned_words(got.text, marked) +
                          " where the form learns " + learned_words(due.text, due.learned));
}

}  // namespace troupe
