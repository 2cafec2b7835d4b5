#pragma once

#include <string>
#include <string_view>

#include "actors/images/image_file.h"

/// One pair for each type of file, behind image_file.h. A header reader is given a file of its type by content and
/// checks neither the number of pixels nor that there are any; a decoder is given the header that its reader made,
/// after those checks, and fills image.pixels [stored_height, stored_width, 3], not turned. Decoders let no exception
/// of a library through and need no lock. tiff_version: of libtiff, by which the header is read too.
namespace troupe::codecs {

Result<ImageHeader> jpeg_header(std::string_view file);
Status decode_jpeg(std::string_view file, const ImageHeader& header, RgbImage& image);
Result<ImageHeader> png_header(std::string_view file);
Status decode_png(std::string_view file, const ImageHeader& header, RgbImage& image);
Result<ImageHeader> webp_header(std::string_view file);
Status decode_webp(std::string_view file, const ImageHeader& header, RgbImage& image);
Result<ImageHeader> gif_header(std::string_view file);
Status decode_gif(std::string_view file, const ImageHeader& header, RgbImage& image);
Result<ImageHeader> bmp_header(std::string_view file);
Status decode_bmp(std::string_view file, const ImageHeader& header, RgbImage& image);
Result<ImageHeader> tiff_header(std::string_view file);
std::string tiff_version();
Status decode_tiff(std::string_view file, const ImageHeader& header, RgbImage& image);

}  // namespace troupe::codecs
