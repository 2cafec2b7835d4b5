#pragma once

#include "actors/images/image_file.h"

namespace troupe {

/// RGBA in place of RGB: every pixel laid on white, rounded to the nearest; the vector shrinks to three quarters.
void lay_on_white(std::vector<uint8_t>& rgba);

/// Turns a stored picture upright. `orientation` (1 to 8) is Exif's, which names where the stored first row and first
/// column lie.
RgbImage upright(RgbImage stored, int orientation);

}  // namespace troupe
