#include "actors/data/key_words.h"

#include <cctype>

namespace troupe {

std::vector<std::string> key_words(std::string_view key) {
  std::vector<std::string> words{""};
  char before = ' ';
  for (const char c : key) {
    const auto letter = static_cast<unsigned char>(c);
    const bool begins = std::isupper(letter) != 0 && std::islower(static_cast<unsigned char>(before)) != 0;
    if (begins || (std::isalpha(letter) == 0 && !words.back().empty())) words.emplace_back();
    if (std::isalpha(letter) != 0) words.back() += static_cast<char>(std::tolower(letter));
    before = c;
  }
  std::erase(words, "");
  return words;
}

}  // namespace troupe
