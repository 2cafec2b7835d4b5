#pragma once

#include <string_view>

namespace troupe {

/// The orientation (1 to 8) that a TIFF-form Exif block states; 1 when it has none that is valid. Accepts the block
/// with and without the "Exif" mark before it.
int exif_orientation(std::string_view block);

}  // namespace troupe
