#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "actors/images/image_patches.h"

namespace {

/// Decodes, scales and cuts one file, and writes its patches; prints the grid.
troupe::Status write_patches(const std::string& file, const std::string& out, int64_t least, int64_t most) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  TROUPE_ASSIGN(const troupe::RgbImage image, troupe::decode_image(bytes));
  const troupe::VisionConfig vision;
  TROUPE_ASSIGN(const troupe::ImageSize scaled,
                troupe::scaled_size({image.height, image.width}, vision.patch_size * vision.merge_size, least, most));
  const at::Tensor patches = troupe::image_patches(image, scaled, vision, {});
  std::ofstream(out, std::ios::binary)
      .write(static_cast<const char*>(patches.const_data_ptr()), static_cast<std::streamsize>(patches.nbytes()));
  const troupe::IndexedImage grid = troupe::grid_of(scaled, vision.patch_size);
  std::printf("%d %d %d\n", grid.t, grid.h, grid.w);
  return {};
}

}  // namespace

/// pixel_patches MIN_PIXELS MAX_PIXELS OUT: for each path on stdin the patches in OUT (fp32) and a line "T H W", or a
/// line that begins with "error". For pixels.py, which reads OUT before it sends the next path.
int main(int argc, char** argv) {
  if (argc != 4) return 2;
  for (std::string path; std::getline(std::cin, path);) {
    const troupe::Status done = write_patches(path, argv[3], std::stoll(argv[1]), std::stoll(argv[2]));
    if (!done.ok()) std::printf("error: %s\n", done.error().to_string().c_str());
    std::fflush(stdout);
  }
  return 0;
}
