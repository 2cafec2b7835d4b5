#include "actors/data/tokenizer.h"

#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "actors/data/text_normalizer.h"
#include "base/json_text.h"
#include "base/mapped_file.h"
#include "base/utf8.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

// What a ByteLevel step splits by when it is not told to leave that to a Split step.
constexpr const char* kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

constexpr int64_t kMaxId = (1 << 24) - 1;  // what one table of the vocabulary can be made for

/// Enters a token, once for each spelling and each id. `where` is the part of the file that names it.
Status add_token(const std::string& where, const std::string& spelling, const Json& id,
                 std::unordered_map<std::string, int64_t>& ids, std::unordered_map<int64_t, std::string>& spellings) {
  const std::string token = where + " '" + spelling + "'";
  if (!id.is_number_unsigned() || id > kMaxId)
    return invalid_argument(token + " has the id " + id.dump() + "; valid: an integer from 0 to " +
                            std::to_string(kMaxId));
  const auto number = id.get<int64_t>();
  const auto [by_spelling, new_spelling] = ids.emplace(spelling, number);
  if (by_spelling->second != number)
    return invalid_argument(token + " has the id " + id.dump() + " and the id " + std::to_string(by_spelling->second));
  const auto [by_id, new_id] = spellings.emplace(number, spelling);
  if (by_id->second != spelling)
    return invalid_argument(token + " has the id " + id.dump() + ", which is that of '" + by_id->second + "'");
  return {};
}

std::string type_of(const Json& node) {
  return node.is_object() ? node.value("type", std::string("?")) : std::string("?");
}

Status read_normalizer(const Json& node, bool& nfc) {
  if (node.is_null()) return {};
  if (type_of(node) == "Sequence") {
    for (const auto& child : node.at("normalizers")) TROUPE_RETURN_IF_ERROR(read_normalizer(child, nfc));
    return {};
  }
  if (type_of(node) != "NFC")
    return invalid_argument("normalizer '" + type_of(node) + "' is not understood; NFC or none is");
  nfc = true;
  return {};
}

Status add_split(const std::string& pattern, std::vector<SplitPattern>& splits) {
  TROUPE_ASSIGN(auto split, SplitPattern::compile(pattern));
  splits.push_back(std::move(split));
  return {};
}

Status read_pre_tokenizer(const Json& node, std::vector<SplitPattern>& splits) {
  const std::string type = type_of(node);
  if (type == "Sequence") {
    for (const auto& child : node.at("pretokenizers")) TROUPE_RETURN_IF_ERROR(read_pre_tokenizer(child, splits));
    return {};
  }
  if (type == "Split") {
    if (!node.at("pattern").contains("Regex") || node.value("behavior", std::string()) != "Isolated" ||
        node.value("invert", false))
      return invalid_argument(
          "pre_tokenizer Split is understood with a Regex pattern, behavior Isolated and invert false");
    return add_split(node.at("pattern").at("Regex").get<std::string>(), splits);
  }
  if (type == "ByteLevel") {
    if (node.value("add_prefix_space", true))
      return invalid_argument("pre_tokenizer ByteLevel is understood with add_prefix_space false");
    return node.value("use_regex", true) ? add_split(kByteLevelPattern, splits) : Status();
  }
  return invalid_argument("pre_tokenizer '" + type + "' is not understood; Split and ByteLevel are");
}

Status read_merges(const Json& node, std::vector<ByteLevelBpe::Merge>& merges) {
  for (const auto& merge : node) {
    if (merge.is_array() && merge.size() == 2) {
      merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    const std::string line = merge.is_string() ? merge.get<std::string>() : std::string();
    const size_t space = line.find(' ');
    if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
      return invalid_argument("merge " + std::to_string(merges.size()) + " is neither \"LEFT RIGHT\" nor a pair");
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return {};
}

Result<std::unique_ptr<ByteLevelBpe>> read_model(const Json& model,
                                                 std::unordered_map<std::string, int64_t>& vocabulary,
                                                 std::unordered_map<int64_t, std::string>& spellings) {
  if (type_of(model) != "BPE" && model.contains("type"))
    return invalid_argument("model '" + type_of(model) + "' is not understood; BPE is");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (model.contains(key) && model[key].is_string() && !model[key].get<std::string>().empty())
      return invalid_argument(std::string("model.") + key + " is not understood");
  if (model.value("ignore_merges", false)) return invalid_argument("model.ignore_merges is not understood");
  if (model.value("byte_fallback", false)) return invalid_argument("model.byte_fallback is not understood");
  const Json dropout = model.value("dropout", Json());
  if (!dropout.is_null() && dropout != 0)
    return invalid_argument("model.dropout is " + dropout.dump() +
                            ", which cuts the same text in other ways each time; "
                            "valid: null, 0");
  for (const auto& [spelling, id] : model.at("vocab").items())
    TROUPE_RETURN_IF_ERROR(add_token("model.vocab: token", spelling, id, vocabulary, spellings));
  std::vector<ByteLevelBpe::Merge> merges;
  TROUPE_RETURN_IF_ERROR(read_merges(model.at("merges"), merges));
  return ByteLevelBpe::create(vocabulary, merges);
}

/// Tokens that tokenizer_config.json adds: transformers gives them to the tokenizer too, so those of `root`, the file
/// tokenizer.json, must be the same.
Status check_added_tokens(const std::string& folder, const Json& root) {
  const std::string path = folder + "/tokenizer_config.json";
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return {};
  TROUPE_ASSIGN(const auto file, MappedFile::open(path));
  const Result<Json> config = parse_json(file->bytes());
  if (!config.ok()) return invalid_argument(path + " " + config.error().message);
  if (!config->is_object()) return {};
  std::map<std::string, Json> known;
  for (const auto& added : root.value("added_tokens", Json::array()))
    known[added.at("content").get<std::string>()] = added;
  const Json there = config->value("added_tokens_decoder", Json::object());
  for (const auto& [id, added] : there.items()) {
    if (!there.is_object() || !added.is_object() || !added.value("content", Json()).is_string())
      return invalid_argument(path + ": added_tokens_decoder is no object of ids with objects that have 'content'");
    const auto spelling = added.at("content").get<std::string>();
    const auto found = known.find(spelling);
    const std::string says = path + ": added_tokens_decoder has '" + spelling + "' as number " + id;
    if (found == known.end()) return invalid_argument(says + ", which is no added token of tokenizer.json");
    const Json& own = found->second;
    if (own.at("id").dump() != id)
      return invalid_argument(says + "; tokenizer.json has it as number " + own.at("id").dump());
    for (const char* key : {"special", "single_word", "lstrip", "rstrip", "normalized"})
      if (added.contains(key) && own.contains(key) && added.at(key) != own.at(key))
        return invalid_argument(says + " with " + key + " " + added.at(key).dump() + "; tokenizer.json has it with " +
                                own.at(key).dump());
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::load(const std::string& folder) {
  std::unique_ptr<Tokenizer> t(new Tokenizer());
  t->file_ = folder + "/tokenizer.json";
  TROUPE_ASSIGN(const auto file, MappedFile::open(t->file_));
  t->content_hash_ = XXH3_64bits(file->bytes().data(), file->bytes().size());
  const Result<Json> parsed = parse_json(file->bytes());
  if (!parsed.ok()) return invalid_argument(t->file_ + " " + parsed.error().message);
  try {
    const Json& root = *parsed;
    TROUPE_RETURN_IF_ERROR(check_added_tokens(folder, root));
    TROUPE_RETURN_IF_ERROR(read_normalizer(root.value("normalizer", Json()), t->nfc_));
    TROUPE_RETURN_IF_ERROR(read_pre_tokenizer(root.at("pre_tokenizer"), t->splits_));
    std::unordered_map<int64_t, std::string> spellings;
    auto bpe = read_model(root.at("model"), t->ids_, spellings);
    if (!bpe.ok()) return wrap(bpe.error(), t->file_);
    t->bpe_ = std::move(bpe).value();
    for (const auto& added : root.value("added_tokens", Json::array())) {
      const auto spelling = added.at("content").get<std::string>();
      if (const Status entered = add_token("added_tokens: token", spelling, added.at("id"), t->ids_, spellings);
          !entered.ok())
        return wrap(entered.error(), t->file_);
      const AddedToken token{spelling, t->ids_.at(spelling)};
      t->added_spellings_[token.id] = token.spelling;
      if (added.value("special", false) || token.spelling.empty()) continue;  // special ones never come out of text
      for (const char* key : {"single_word", "lstrip", "rstrip", "normalized"})
        if (added.value(key, false))
          return invalid_argument(t->file_ + ": added token '" + token.spelling + "' has " + key +
                                  ", which is not understood in tokens that are not special");
      t->plain_added_[static_cast<unsigned char>(token.spelling[0])].push_back(token);
    }
  } catch (const Json::exception& e) {
    return invalid_argument(t->file_ + " is not a tokenizer file that is understood: " + json_complaint(e));
  }
  for (const auto& [spelling, id] : t->ids_) t->largest_id_ = std::max(t->largest_id_, id);
  for (auto& tokens : t->plain_added_)
    std::stable_sort(tokens.begin(), tokens.end(),
                     [](const auto& a, const auto& b) { return a.spelling.size() > b.spelling.size(); });
  return t;
}

const Tokenizer::AddedToken* Tokenizer::added_token_at(std::string_view text) const {
  for (const auto& token : plain_added_[static_cast<unsigned char>(text[0])])
    if (text.substr(0, token.spelling.size()) == token.spelling) return &token;
  return nullptr;
}

Status Tokenizer::encode(std::string_view text, std::vector<int64_t>& ids) const {
  if (const size_t at = first_invalid_utf8(text); at != std::string_view::npos)
    return invalid_argument("the text is not valid UTF-8: byte " +
                            std::to_string(static_cast<unsigned char>(text[at])) + " at position " +
                            std::to_string(at));
  auto cache = borrow_cache();
  const Status status = encode_parts(text, *cache, ids);
  return_cache(std::move(cache));
  return status;
}

std::unique_ptr<WordCache> Tokenizer::borrow_cache() const {
  const std::lock_guard lock(caches_mutex_);
  if (caches_.empty()) return std::make_unique<WordCache>();
  auto cache = std::move(caches_.back());
  caches_.pop_back();
  return cache;
}

void Tokenizer::return_cache(std::unique_ptr<WordCache> cache) const {
  const std::lock_guard lock(caches_mutex_);
  caches_.push_back(std::move(cache));
}

Status Tokenizer::encode_parts(std::string_view text, WordCache& cache, std::vector<int64_t>& ids) const {
  size_t done = 0;
  for (size_t i = 0; i < text.size();) {
    const AddedToken* token = added_token_at(text.substr(i));
    if (token == nullptr) {
      ++i;
      continue;
    }
    TROUPE_RETURN_IF_ERROR(encode_words(text.substr(done, i - done), cache, ids));
    ids.push_back(token->id);
    done = i += token->spelling.size();
  }
  return encode_words(text.substr(done), cache, ids);
}

Status Tokenizer::encode_words(std::string_view text, WordCache& cache, std::vector<int64_t>& ids) const {
  if (text.empty()) return {};
  std::string normalized;
  if (nfc_ && !is_nfc(text)) {
    TROUPE_ASSIGN(normalized, normalize_nfc(text));
    text = normalized;
  }
  std::vector<std::string_view> pieces{text}, finer;
  for (const auto& split : splits_) {
    finer.clear();
    for (const auto piece : pieces) TROUPE_RETURN_IF_ERROR(split.split(piece, finer));
    pieces.swap(finer);
  }
  for (const auto piece : pieces) TROUPE_RETURN_IF_ERROR(bpe_->encode(piece, cache, ids));
  return {};
}

Result<int64_t> Tokenizer::id_of(const std::string& spelling) const {
  const auto found = ids_.find(spelling);
  if (found == ids_.end()) return not_found(file_ + " has no token '" + spelling + "'");
  return found->second;
}

size_t Tokenizer::byte_length(int64_t id) const {
  if (const auto added = added_spellings_.find(id); added != added_spellings_.end()) return added->second.size();
  const std::string* bytes = bpe_->bytes(id);
  return bytes == nullptr ? 0 : bytes->size();
}

Result<std::string> Tokenizer::decode(const std::vector<int64_t>& ids) const {
  std::string text;
  for (const int64_t id : ids) {
    if (const auto added = added_spellings_.find(id); added != added_spellings_.end()) {
      text += added->second;
    } else if (const std::string* bytes = bpe_->bytes(id)) {
      text += *bytes;
    } else {
      return invalid_argument(file_ + " has no token with id " + std::to_string(id));
    }
  }
  return text;
}

}  // namespace troupe
