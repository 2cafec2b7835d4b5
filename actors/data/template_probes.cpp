#include "actors/data/template_probes.h"

#include <algorithm>
#include <vector>

#include "actors/data/chat_layout.h"
#include "actors/data/probe_chats.h"
#include "actors/jinja/text.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;
using Spans = std::vector<std::pair<size_t, size_t>>;

constexpr std::string_view kPrompt = "<|im_start|>assistant\n";

/// Which contents are lists of parts; the others are strings.
enum class Contents { kStrings, kQuestionParts, kAllParts };

/// A text as parts, images where their placeholders stand. Longer texts come in two parts, as a file may have them.
Json parts_of(const std::string& text, bool images) {
  Json parts = Json::array();
  const auto add_text = [&](const std::string& words) {
    const size_t cut = std::min(words.find_first_of(" \n"), words.size());
    for (const std::string& part : {words.substr(0, cut), words.substr(cut)})
      if (!part.empty()) parts.push_back({{"type", "text"}, {"text", part}});
  };
  size_t done = 0;
  for (size_t at = text.find(kImagePlaceholder); images && at != std::string::npos;
       at = text.find(kImagePlaceholder, done)) {
    add_text(text.substr(done, at - done));
    parts.push_back({{"type", "image"}});
    if (parts.size() % 2 == 0) parts.back()["image"] = "picture.png";
    done = at + kImagePlaceholder.size();
  }
  add_text(text.substr(done));
  if (parts.empty()) parts.push_back({{"type", "text"}, {"text", ""}});
  return parts;
}

Json messages_of(const std::vector<Turn>& turns, Contents contents) {
  Json messages = Json::array();
  for (const Turn& turn : turns) {
    const bool question = turn.role == Role::kUser;
    const bool parts = contents == Contents::kAllParts || (contents == Contents::kQuestionParts && question);
    messages.push_back(
        {{"role", role_name(turn.role)}, {"content", parts ? parts_of(turn.text, question) : Json(turn.text)}});
  }
  return messages;
}

bool has_images(const std::vector<Turn>& turns) {
  return std::any_of(turns.begin(), turns.end(), [](const Turn& turn) {
    return turn.role == Role::kUser && turn.text.find(kImagePlaceholder) != std::string::npos;
  });
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

/// Where two texts part, from a little before: "'...' where the form has '...'".
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

std::string learned_words(const std::string& text, const Spans& spans) {
  std::string words;
  for (const auto& [begin, end] : spans)
    words += (words.empty() ? "" : " and ") + jinja::shown(text.substr(begin, end - begin));
  return words.empty() ? "nothing" : words;
}

class Probing {
 public:
  Probing(const jinja::Template& chat_template, const Json& tokens) : template_(chat_template), tokens_(tokens) {}

  Result<std::optional<std::string>> run() {
    std::vector<ProbeChat> chats = probe_chats();
    TROUPE_RETURN_IF_ERROR(find_default(chats[0]));
    if (default_) {
      chats.push_back(
          {"the default system turn given", {{Role::kSystem, *default_}, chats[0].turns[0], chats[0].turns[1]}});
    }
    for (const ProbeChat& chat : chats)
      for (const Contents contents : {Contents::kStrings, Contents::kQuestionParts, Contents::kAllParts})
        if (contents != Contents::kStrings || !has_images(chat.turns)) TROUPE_RETURN_IF_ERROR(compare(chat, contents));
    return default_;
  }

 private:
  Result<jinja::Rendering> render(const ProbeChat& chat, Contents contents, bool prompt) const {
    Json variables = tokens_;
    variables["messages"] = messages_of(chat.turns, contents);
    variables["tools"] = nullptr;
    variables["documents"] = nullptr;
    variables["add_generation_prompt"] = prompt;
    auto rendered = template_.render(variables);
    if (rendered.ok()) return rendered;
    if (rendered.error().code == ErrorCode::kUnimplemented)
      return invalid_argument("has what is not understood, met in " + named(chat, contents) + ": " +
                              rendered.error().message);
    return invalid_argument("fails on " + named(chat, contents) + ": " + rendered.error().message);
  }

  static std::string named(const ProbeChat& chat, Contents contents) {
    return "a chat with " + chat.name +
           (contents == Contents::kStrings         ? ""
            : contents == Contents::kQuestionParts ? " (questions as lists of parts)"
                                                   : " (all turns as lists of parts)");
  }

  /// What stands before the turns of a chat that has no system turn.
  Status find_default(const ProbeChat& chat) {
    TROUPE_ASSIGN(const jinja::Rendering rendered, render(chat, Contents::kStrings, false));
    const std::string due = as_text(lay_out(chat.turns, std::nullopt, Supervise::kAll)).text;
    if (rendered.text == due) return {};
    const std::string begin = "<|im_start|>system\n", end = "<|im_end|>\n" + due;
    if (!rendered.text.starts_with(begin) || !rendered.text.ends_with(end) ||
        rendered.text.size() < begin.size() + end.size())
      return invalid_argument("writes " + named(chat, Contents::kStrings) + " as " + difference(rendered.text, due));
    default_ = rendered.text.substr(begin.size(), rendered.text.size() - begin.size() - end.size());
    // Control tokens in words are text here, but not for those who tokenize what the template writes.
    if (default_->find("<|") != std::string::npos)
      return invalid_argument("has a default system turn with a control token: " + jinja::shown(*default_));
    return {};
  }

  Status compare(const ProbeChat& chat, Contents contents) const {
    const ChatText due = as_text(lay_out(chat.turns, default_, Supervise::kAll));
    TROUPE_ASSIGN(const jinja::Rendering got, render(chat, contents, false));
    if (got.text != due.text)
      return invalid_argument("writes " + named(chat, contents) + " as " + difference(got.text, due.text));
    // An empty answer has nothing to learn here, whatever is marked.
    const Spans marked = joined(got.marked);
    if (template_.marks_answers() && !has_empty_answer(chat.turns) && marked != due.learned)
      return invalid_argument("marks other words as the answers of " + named(chat, contents) + ": " +
                              learned_words(got.text, marked) + " where the form learns " +
                              learned_words(due.text, due.learned));
    TROUPE_RETURN_IF_ERROR(compare_prompt(chat, contents, due.text));
    ProbeChat open = chat;
    open.name += " that waits for its last answer";
    open.turns.pop_back();
    const ChatText question = as_text(lay_out(open.turns, default_, Supervise::kAll));
    TROUPE_ASSIGN(const jinja::Rendering asked, render(open, contents, false));
    if (asked.text != question.text)
      return invalid_argument("writes " + named(open, contents) + " as " + difference(asked.text, question.text));
    return compare_prompt(open, contents, question.text);
  }

  /// With the opening of an answer asked for, it alone may follow; a template that knows no such thing is fine too.
  Status compare_prompt(const ProbeChat& chat, Contents contents, const std::string& without) const {
    TROUPE_ASSIGN(const jinja::Rendering got, render(chat, contents, true));
    const std::string with = without + std::string(kPrompt);
    if (got.text == without || got.text == with) return {};
    return invalid_argument("opens the answer to " + named(chat, contents) + " with " + difference(got.text, with));
  }

  const jinja::Template& template_;
  const Json& tokens_;
  std::optional<std::string> default_;
};

}  // namespace

Result<std::optional<std::string>> default_system_of(const jinja::Template& chat_template,
                                                     const nlohmann::ordered_json& tokens) {
  return Probing(chat_template, tokens).run();
}

}  // namespace troupe
