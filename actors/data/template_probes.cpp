#include "actors/data/template_probes.h"

#include <optional>
#include <string>

#include "actors/data/chat_layout.h"
#include "actors/data/probe_chats.h"
#include "actors/jinja/text.h"

namespace troupe {
namespace {

constexpr std::string_view kPrompt = "<|im_start|>assistant\n";
constexpr std::string_view kEnd = "<|im_end|>";

std::string named(const ProbeChat& chat, Contents contents) {
  return "a chat with " + chat.name +
         (contents == Contents::kStrings        ? ""
          : contents == Contents::kQuestionCuts ? " (questions as lists of parts)"
                                                : " (all turns as lists of parts)");
}

/// The words of the system turn that a text begins with.
std::optional<std::string> leading_system(const std::string& text) {
  const std::string begin = "<|im_start|>system\n";
  if (!text.starts_with(begin)) return std::nullopt;
  const size_t end = text.find(kEnd, begin.size());
  if (end == std::string::npos) return std::nullopt;
  return text.substr(begin.size(), end - begin.size());
}

/// What stands before the turns of a chat that has no system turn.
Result<std::optional<std::string>> default_in(const TemplateForm& form, const ProbeChat& chat) {
  const std::string what = named(chat, Contents::kStrings);
  TROUPE_ASSIGN(const jinja::Rendering got, form.render(chat.turns, Contents::kStrings, false, what));
  const std::optional<std::string> words = leading_system(got.text);
  const std::string due = as_text(lay_out(chat.turns, words, Supervise::kAll)).text;
  if (got.text != due) return invalid_argument("writes " + what + " as " + difference(got.text, due));
  // Control tokens in words are text here, but not for those who tokenize what the template writes.
  if (words && words->find("<|") != std::string::npos)
    return invalid_argument("has a default system turn with a control token: " + jinja::shown(*words));
  return words;
}

/// With the opening of an answer asked for, it alone may follow; a template that knows no such thing is fine too.
Status check_opening(const TemplateForm& form, const ProbeChat& chat, Contents contents) {
  const std::string what = named(chat, contents);
  const std::string without = as_text(lay_out(chat.turns, form.default_system(), Supervise::kAll)).text;
  TROUPE_ASSIGN(const jinja::Rendering got, form.render(chat.turns, contents, true, what));
  const std::string with = without + std::string(kPrompt);
  if (got.text == without || got.text == with) return {};
  return invalid_argument("opens the answer to " + what + " with " + difference(got.text, with));
}

Status check_chat(const TemplateForm& form, const ProbeChat& chat, Contents contents) {
  TROUPE_RETURN_IF_ERROR(form.check(chat.turns, contents, named(chat, contents)));
  TROUPE_RETURN_IF_ERROR(check_opening(form, chat, contents));
  ProbeChat open = chat;
  open.name += " that waits for its last answer";
  open.turns.pop_back();
  TROUPE_RETURN_IF_ERROR(form.check(open.turns, contents, named(open, contents)));
  return check_opening(form, open, contents);
}

Status check_chats(const TemplateForm& form, const std::vector<ProbeChat>& chats) {
  for (const ProbeChat& chat : chats)
    for (const Contents contents : {Contents::kStrings, Contents::kQuestionCuts, Contents::kAllCuts})
      if (contents != Contents::kStrings || !has_media(chat.turns))
        TROUPE_RETURN_IF_ERROR(check_chat(form, chat, contents));
  return {};
}

}  // namespace

Status probe_videos(const TemplateForm& form) { return check_chats(form, video_probe_chats()); }

Status probe(TemplateForm& form) {
  std::vector<ProbeChat> chats = probe_chats();
  TROUPE_ASSIGN(const std::optional<std::string> words, default_in(form, chats[0]));
  form.set_default_system(words);
  if (words) {
    chats.push_back({"the default system turn given", {{Role::kSystem, *words}, chats[0].turns[0], chats[0].turns[1]}});
  }
  return check_chats(form, chats);
}

}  // namespace troupe
