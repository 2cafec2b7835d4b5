#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/data/byte_level_bpe.h"
#include "actors/data/split_pattern.h"
#include "base/result.h"

namespace troupe {

/// The byte-level tokenizer of a model folder's tokenizer.json: NFC where the file asks for it, split regexes,
/// byte-pair encoding. Ids equal those of Hugging Face tokenizers with `split_special_tokens`. Thread-safe.
class Tokenizer {
 public:
  /// Reads FOLDER/tokenizer.json. Errors name the file, the key and what is understood.
  static Result<std::unique_ptr<Tokenizer>> load(const std::string& folder);

  /// Appends the ids of plain text. Spellings of control tokens in it stay text: no id of a special token ever comes
  /// out. InvalidArgument when `text` is not well-formed UTF-8, with the position.
  Status encode(std::string_view text, std::vector<int64_t>& ids) const;
  /// The id of a control or vocabulary token by its exact spelling; NotFound names spelling and file.
  Result<int64_t> id_of(const std::string& spelling) const;
  /// The highest id of all tokens, control tokens included; -1 without any.
  int64_t largest_id() const { return largest_id_; }
  const std::string& file() const { return file_; }
  /// Bytes of the text that a token stands for.
  size_t byte_length(int64_t id) const;
  /// Text of `ids`; control tokens are spelt out. InvalidArgument for an unknown id.
  Result<std::string> decode(const std::vector<int64_t>& ids) const;
  /// XXH3 of tokenizer.json.
  uint64_t content_hash() const { return content_hash_; }

 private:
  struct AddedToken {
    std::string spelling;
    int64_t id;
  };
  Tokenizer() = default;
  /// A cache that no other thread uses, until it is given back.
  std::unique_ptr<WordCache> borrow_cache() const;
  void return_cache(std::unique_ptr<WordCache> cache) const;
  Status encode_parts(std::string_view text, WordCache& cache, std::vector<int64_t>& ids) const;
  Status encode_words(std::string_view text, WordCache& cache, std::vector<int64_t>& ids) const;
  /// The longest plain (not special) added token at the start of `text`, or nullptr.
  const AddedToken* added_token_at(std::string_view text) const;

  std::string file_;
  uint64_t content_hash_ = 0;
  int64_t largest_id_ = -1;
  bool nfc_ = false;
  std::vector<SplitPattern> splits_;
  std::unique_ptr<ByteLevelBpe> bpe_;
  std::unordered_map<std::string, int64_t> ids_;              // vocabulary and added tokens by spelling
  std::unordered_map<int64_t, std::string> added_spellings_;  // by id
  std::array<std::vector<AddedToken>, 256> plain_added_;      // by first byte, longest first
  mutable std::mutex caches_mutex_;
  mutable std::vector<std::unique_ptr<WordCache>> caches_;  // as many as threads have encoded at once
};

}  // namespace troupe
