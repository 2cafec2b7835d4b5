#include "actors/data/chat_template.h"

#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "actors/data/template_pieces.h"
#include "base/json_text.h"
#include "base/mapped_file.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kStart = "<|im_start|>", kEnd = "<|im_end|>";
constexpr std::string_view kImage = "<|vision_start|><|image_pad|><|vision_end|>", kPad = "<|image_pad|>";

/// Whether an expression is the plain member `name` of something: message['content'], messages[0].content, m.role.
bool is_member(std::string_view expression, std::string_view name) {
  for (const char* form : {".", "['", "[\""}) {
    const std::string ending = form + std::string(name) + (form[0] == '.' ? "" : form[1] == '\'' ? "']" : "\"]");
    if (!expression.ends_with(ending)) continue;
    const auto owner = expression.substr(0, expression.size() - ending.size());
    return std::all_of(owner.begin(), owner.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '[' || c == ']' || c == '\'' || c == '"';
    });
  }
  return false;
}

std::string shown(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, 60)) {
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + (text.size() > 60 ? "...'" : "'");
}

Error differs(const std::string& how) { return invalid_argument(how); }

/// Reads a template's pieces in order and holds each turn against the form.
class FormReader {
 public:
  explicit FormReader(std::vector<TemplatePiece> pieces) : pieces_(std::move(pieces)) {}

  Result<std::optional<std::string>> read() {
    for (const TemplatePiece& piece : pieces_) TROUPE_RETURN_IF_ERROR(check_words(piece));
    bool begun = false, in_macro = false;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const TemplatePiece& piece = pieces_[i];
      if (piece.kind == TemplatePiece::Kind::kStatement) {
        in_macro = piece.text.starts_with("macro ") || (in_macro && !piece.text.starts_with("endmacro"));
        continue;
      }
      const bool opens = piece.kind == TemplatePiece::Kind::kText && piece.text.starts_with(kStart);
      if (!begun && !opens && !in_macro)
        return differs("puts out " + shown(piece.text) + " before the first " + std::string(kStart));
      begun = begun || !in_macro;
      if (piece.kind == TemplatePiece::Kind::kText) TROUPE_RETURN_IF_ERROR(check_text(i));
    }
    if (!begun) return differs("puts out no turn");
    if (!closes_) return differs("closes no turn with " + std::string(kEnd));
    return default_;
  }

 private:
  static Status check_words(const TemplatePiece& piece) {
    for (const char* word : {"<think>", "reasoning_content", "bos_token"})
      if (piece.text.find(word) != std::string::npos) return differs("has " + shown(word));
    if (piece.kind == TemplatePiece::Kind::kText) return {};
    // What only tool calls pass through is not judged: records with tools are refused.
    for (const char* word : {"|trim", "| trim", ".strip(", ".lstrip(", ".rstrip(", ".split(", ".replace(", "|replace",
                             "| replace", "|upper", "| upper", "|lower", "| lower", "|capitalize", "| capitalize"})
      if (piece.text.find(word) != std::string::npos && piece.text.find("content") != std::string::npos)
        return differs("changes what turns say: " + shown(piece.text));
    return {};
  }

  Status check_text(size_t i) {
    const std::string& text = pieces_[i].text;
    for (size_t at = text.find(kStart); at != std::string::npos; at = text.find(kStart, at + 1))
      TROUPE_RETURN_IF_ERROR(check_opening(i, at + kStart.size()));
    for (size_t at = text.find(kEnd); at != std::string::npos; at = text.find(kEnd, at + 1)) {
      closes_ = true;
      const auto after = std::string_view(text).substr(at + kEnd.size());
      if (after != "\n" && !after.starts_with("\n" + std::string(kStart)))
        return differs("closes a turn with " + shown(text.substr(at)) + ", not with '" + std::string(kEnd) + "\\n'");
      if (at > 0 && text[at - 1] == '\n' && i > 0 && pieces_[i - 1].kind == TemplatePiece::Kind::kExpression &&
          is_member(pieces_[i - 1].text, "content") && at == 1)
        return differs("puts a newline between a turn's words and " + std::string(kEnd));
    }
    for (size_t at = text.find(kPad); at != std::string::npos; at = text.find(kPad, at + 1)) {
      const size_t before = kImage.find(kPad);
      if (at < before || std::string_view(text).substr(at - before, kImage.size()) != kImage)
        return differs("writes an image as " + shown(text) + ", not as " + std::string(kImage));
    }
    return {};
  }

  /// The text that is put out behind piece i when statements put out nothing; empty when something else is.
  std::string_view text_behind(size_t i) const {
    while (++i < pieces_.size() && pieces_[i].kind == TemplatePiece::Kind::kStatement) {
    }
    return i < pieces_.size() && pieces_[i].kind == TemplatePiece::Kind::kText ? std::string_view(pieces_[i].text)
                                                                               : std::string_view();
  }

  /// What follows "<|im_start|>" at text[at] of piece i: a role and a newline.
  Status check_opening(size_t i, size_t at) {
    const std::string_view rest = std::string_view(pieces_[i].text).substr(at);
    if (rest.empty()) {
      const bool inserted = i + 1 < pieces_.size() && pieces_[i + 1].kind == TemplatePiece::Kind::kExpression;
      if (inserted && is_member(pieces_[i + 1].text, "role") && text_behind(i + 1).starts_with("\n")) return {};
      return differs("opens a turn with " + std::string(kStart) + " and " +
                     (inserted ? shown(pieces_[i + 1].text) : std::string("no role")) +
                     ", not with its role and a newline");
    }
    const size_t line = std::min(rest.find('\n'), rest.size());
    const std::string_view role = rest.substr(0, line);
    const bool known = role == "system" || role == "user" || role == "assistant" || role == "tool";
    if (!known || (line == rest.size() && !text_behind(i).starts_with("\n")))
      return differs("opens a turn with " + shown(std::string(kStart) + std::string(rest)));
    return role == "system" && line < rest.size() ? read_system(i, at + line + 1) : Status();
  }

  /// The words of a system turn: stated, or the record's own.
  Status read_system(size_t i, size_t at) {
    const std::string& text = pieces_[i].text;
    if (const size_t end = text.find(kEnd, at); end != std::string::npos) {
      const std::string words = text.substr(at, end - at);
      if (default_ && *default_ != words)
        return differs("states two default system turns, " + shown(*default_) + " and " + shown(words));
      default_ = words;
      return {};
    }
    // A part of a longer one, such as that with tools, has statements or more text behind it and is not the default.
    const bool computed = at == text.size() && i + 2 < pieces_.size() &&
                          pieces_[i + 1].kind == TemplatePiece::Kind::kExpression &&
                          pieces_[i + 2].kind == TemplatePiece::Kind::kText && pieces_[i + 2].text.starts_with(kEnd);
    if (computed && !is_member(pieces_[i + 1].text, "content"))
      return differs("takes the system turn from " + shown(pieces_[i + 1].text) + ", which is computed");
    return {};
  }

  std::vector<TemplatePiece> pieces_;
  std::optional<std::string> default_;
  bool closes_ = false;
};

/// The template in a JSON file's key chat_template: a string, or a list of named ones of which "default" counts.
Result<std::optional<std::string>> template_in_json(const std::string& path) {
  if (!std::filesystem::exists(path)) return std::optional<std::string>();
  TROUPE_ASSIGN(const auto file, MappedFile::open(path));
  const Result<Json> parsed = parse_json(file->bytes());
  if (!parsed.ok()) return invalid_argument(path + " " + parsed.error().message);
  try {
    const Json& root = *parsed;
    const Json found = root.is_object() ? root.value("chat_template", Json()) : Json();
    if (found.is_string()) return std::optional(found.get<std::string>());
    for (const auto& item : found.is_array() ? found : Json::array())
      if (item.value("name", std::string()) == "default") return std::optional(item.at("template").get<std::string>());
  } catch (const Json::exception& e) {
    return invalid_argument(path + " holds no chat_template that is understood: " + json_complaint(e));
  }
  return std::optional<std::string>();
}

}  // namespace

Result<std::optional<std::string>> default_system_of(std::string_view jinja) {
  return FormReader(template_pieces(jinja)).read();
}

Result<ChatTemplate> read_chat_template(const std::string& folder) {
  std::optional<std::string> text;
  ChatTemplate result;
  const std::string jinja = folder + "/chat_template.jinja";
  if (std::filesystem::exists(jinja)) {
    TROUPE_ASSIGN(const auto file, MappedFile::open(jinja));
    text = std::string(file->bytes());
    result.source = jinja;
  }
  for (const char* name : {"/chat_template.json", "/tokenizer_config.json"}) {
    if (text) break;
    TROUPE_ASSIGN(text, template_in_json(folder + name));
    if (text) result.source = folder + name;
  }
  if (!text) return result;
  const auto system = default_system_of(*text);
  if (!system.ok())
    return invalid_argument(
        "the chat template in " + result.source + " " + system.error().message +
        "; the form that is understood is <|im_start|>ROLE, newline, text, <|im_end|>, newline, turn by turn");
  result.default_system = *system;
  result.hash = XXH3_64bits(text->data(), text->size());
  return result;
}

}  // namespace troupe
