#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "actors/data/record.h"

/// What stands for images and videos in the text of a user turn. In other turns the words are text.
namespace troupe {

inline constexpr std::string_view kImagePlaceholder = "<image>", kVideoPlaceholder = "<video>";

struct Placeholder {
  size_t at = std::string_view::npos;  // in the text; npos: there is none
  bool video = false;
  bool found() const { return at != std::string_view::npos; }
  size_t end() const { return at + (video ? kVideoPlaceholder : kImagePlaceholder).size(); }
};
/// The first one from byte `from` on.
Placeholder find_placeholder(std::string_view text, size_t from);

/// An image or a video of a record, by its place in Record::images or Record::videos.
struct MediumPlace {
  bool video = false;
  size_t number = 0;
};
/// In reading order: by the placeholders of the user turns. The lists of the record may be shorter or longer.
std::vector<MediumPlace> media_in_order(const std::vector<Turn>& turns);

/// InvalidArgument with both counts where placeholders and images, or videos, differ in number.
Status check_placeholders(const Record& record);

}  // namespace troupe
