#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The words of a key in small letters: "avatarUrl" and "image_path_2" are "avatar", "url" and "image", "path".
std::vector<std::string> key_words(std::string_view key);

}  // namespace troupe
