#include <algorithm>

#include "tests/actors/images/pictures.h"

namespace troupe {
namespace {

using namespace fixture;

TEST_CASE("TIFF: colours come out right of every compression and pixel form") {
  for (const char* name : {"rgb.tif", "lzw.tif", "deflate.tif", "packbits.tif", "palette.tif"}) {
    INFO(name);
    check_close(quadrants(decoded(name)), kColours, 0);
  }
  check_close(quadrants(decoded("jpeg.tif")), kColours, 4);
  check_close(quadrants(decoded("cmyk.tif")), kColours, 0);
  check_close(quadrants(decoded("grey.tif")), kGreys, 0);
  check_close(quadrants(decoded("group4.tif")), {kBlack, kWhite, kBlack, kWhite}, 0);
}

TEST_CASE("D15, D16: alpha of a TIFF is laid on white and 16-bit grey is read by its high byte") {
  check_close(quadrants(decoded("alpha.tif")), kPale, 0);
  check_ramp("grey16.tif");
}

struct Entry {
  int tag, type;
  std::vector<int> values;
};

/// A file of 2 x 2 pixels in one strip whose bytes are given; types: 1 bytes, 3 shorts, 4 longs.
std::string tiff(const std::vector<int>& strip, std::vector<Entry> entries) {
  const auto numbers = [](const std::vector<int>& values, size_t width) {
    std::string out;
    for (const int value : values)
      for (size_t i = 0; i < width; ++i) out += static_cast<char>(value >> 8 * i);
    return out;
  };
  const int data_bytes = static_cast<int>(strip.size());
  for (const Entry& entry :
       {Entry{256, 3, {2}}, Entry{257, 3, {2}}, Entry{273, 4, {8}}, Entry{278, 3, {2}}, Entry{279, 4, {data_bytes}}})
    entries.push_back(entry);
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.tag < b.tag; });
  const int directory = 8 + data_bytes, behind = directory + 6 + 12 * static_cast<int>(entries.size());
  std::string out = "II*" + std::string(1, '\0') + numbers({directory}, 4) + numbers(strip, 1) +
                    numbers({static_cast<int>(entries.size())}, 2),
              tail;
  for (const Entry& entry : entries) {
    std::string value = numbers(entry.values, entry.type == 3 ? 2 : static_cast<size_t>(entry.type));
    if (value.size() > 4) {
      tail += value;
      value = numbers({behind + static_cast<int>(tail.size() - value.size())}, 4);
    }
    value.resize(4);
    out += numbers({entry.tag, entry.type}, 2) + numbers({static_cast<int>(entry.values.size())}, 4) + value;
  }
  return out + numbers({0}, 4) + tail;
}

/// Grey 100, alpha 128 in every pixel, with ExtraSamples as given.
std::string grey_alpha(int extra, int photometric = 1) {
  return tiff(std::vector<int>{100, 128, 100, 128, 100, 128, 100, 128},
              {{258, 3, {8, 8}}, {262, 3, {photometric}}, {277, 3, {2}}, {338, 3, {extra}}});
}

int first_sample(const std::string& file) {
  const auto image = decode_image(file);
  INFO((image.ok() ? "" : image.error().message));
  REQUIRE(image.ok());
  return image->pixels[0];
}

TEST_CASE("D15: alpha beside grey is laid on white, straight or multiplied, and left out where it is no alpha") {
  CHECK(first_sample(grey_alpha(2)) == 177);  // 100 * 128 / 255 + 127
  CHECK(first_sample(grey_alpha(1)) == 227);  // 100 + 127
  CHECK(first_sample(grey_alpha(0)) == 100);
  CHECK(first_sample(tiff({100, 100, 100, 128, 100, 100, 100, 128, 100, 100, 100, 128, 100, 100, 100, 128},
                          {{258, 3, {8, 8, 8, 8}}, {262, 3, {2}}, {277, 3, {4}}, {338, 3, {2}}})) == 177);
}

TEST_CASE("A TIFF of a kind that is not read is refused by its header, by name") {
  const auto grey = [](int bits, int format, int compression, int photometric = 1) {
    return reason(
        tiff(std::vector<int>(16),
             {{258, 3, {bits}}, {259, 3, {compression}}, {262, 3, {photometric}}, {277, 3, {1}}, {339, 3, {format}}}));
  };
  CHECK(grey(8, 1, 1).empty());
  CHECK(grey(32, 3, 1) == "is a TIFF with floating-point samples; that is not read");
  CHECK(grey(16, 3, 1) == "is a TIFF with floating-point samples; that is not read");
  CHECK(grey(32, 1, 1) == "is a TIFF with 32-bit samples; that is not read");
  CHECK(grey(12, 1, 1) == "is a TIFF with 12-bit samples; that is not read");
  CHECK(grey(16, 2, 1) == "is a TIFF with signed samples of 16 bits; that is not read");
  CHECK(grey(8, 1, 34712) == "is a TIFF with compression 34712; that is not read");
  CHECK(grey(8, 1, 1, 3) == "is a TIFF with a palette that is missing; that is not read");
  CHECK(grey(8, 1, 1, 34892).starts_with("is a TIFF that is not read: "));  // LinearRaw: libtiff names it
  for (const int extra : {1, 2})
    CHECK(reason(grey_alpha(extra, 0)) ==
          "is a TIFF with alpha beside other samples than RGB or 8-bit grey; that is not read");
}

TEST_CASE("D14: the orientation of a TIFF's XMP is applied where it has no tag of its own") {
  std::vector<int> packet;
  for (const char c : std::string(R"(<rdf:Description tiff:Orientation="6"/>)")) packet.push_back(c);
  const auto file = [&](const std::vector<Entry>& more) {
    std::vector<Entry> entries = {{258, 3, {8}}, {262, 3, {1}}, {277, 3, {1}}, {700, 1, packet}};
    entries.insert(entries.end(), more.begin(), more.end());
    return tiff({1, 2, 3, 4}, entries);
  };
  CHECK(first_sample(file({})) == 3);
  CHECK(first_sample(file({{274, 3, {3}}})) == 4);
}

TEST_CASE("D14: each orientation turns the stored TIFF upright once") {
  for (size_t o = 1; o <= 8; ++o) {
    const auto image = decoded("orientation" + std::to_string(o) + ".tif");
    INFO("orientation " << o);
    CHECK(image.width == (o >= 5 ? 32 : 48));
    check_close(quadrants(image), kUpright[o - 1], 0);
  }
}

TEST_CASE("Of a TIFF with several pages the first is read") {
  check_close(quadrants(decoded("pages.tif")), kColours, 0);
}

TEST_CASE("D10: a TIFF that ends early is refused by its header, damaged data while decoding") {
  for (const char* name : {"rgb.tif", "deflate.tif"}) check_cut_off(name);
  const auto image = decode_image([] {
    std::string file = picture("deflate.tif");
    for (size_t i = 12; i < 40; ++i) file[i] = '\x55';  // Pillow writes the data first or last: both ends are hit
    for (size_t i = file.size() - 40; i < file.size() - 12; ++i) file[i] = '\x55';
    return file;
  }());
  CHECK_FALSE(image.ok());
}

}  // namespace
}  // namespace troupe
