#pragma once

#include <string_view>

namespace troupe {

/// The orientation (1 to 8) that a picture's metadata state, weighed as Pillow does: that of `exif`, a block in TIFF
/// form with or without the "Exif" mark before it, and where it states none that of `xmp`, a packet of XML. 1 when what
/// is stated is no orientation, or nothing is. Either may be empty.
int stated_orientation(std::string_view exif, std::string_view xmp);

}  // namespace troupe
