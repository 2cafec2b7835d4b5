#include "actors/data/unread_media.h"

#include "tests/actors/data/parsed_record.h"

namespace troupe {
namespace {

using namespace testing;

/// A record of words with a key more, of the record or of its first turn.
std::string beside(const std::string& key, const std::string& value) {
  return "{\"" + key + "\": " + value +
         R"(, "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})";
}
std::string in_turn(const std::string& key, const std::string& value) {
  return R"({"messages": [{"role": "user", "content": "q", ")" + key + "\": " + value +
         R"(}, {"role": "assistant", "content": "a"}]})";
}

TEST_CASE("A value that looks like a picture or a video under a key that is not read is refused") {
  for (const std::string value :
       {R"("data:image/png;base64,iVBORw0KGgo=")", R"("data:;base64,/9j/4AAQ")", R"("/9j/4AAQSkZJRgABAQ")",
        R"("iVBORw0KGgoAAAANSUhEUg")", R"("R0lGODlhAQABAAAAACw")", R"("UklGRiQAAABXRUJQ")", R"("a.avif")",
        R"("a.HEIC")", R"("a.heif")", R"("a.jxl")", R"("a.jp2")", R"("a.svg")", R"("https://x.y/z.jpg?size=3")",
        R"("https://x.y/z.jpg#top")", R"({"file": "a.png"})", R"([{"deep": {"er": ["a.png"]}}])"}) {
    CHECK(says(beside("extra", value), "key 'extra' names pictures but is not read"));
    CHECK(says(in_turn("extra", value), "turn 1: key 'extra' names pictures but is not read"));
  }
  for (const std::string value : {R"("data:video/mp4;base64,AA")", R"("AAAAIGZ0eXBpc29t")", R"({"file": "a.mp4"})",
                                  R"("https://x.y/z.mp4?t=3")"}) {
    CHECK(says(beside("extra", value), "key 'extra' names videos but is not read"));
    CHECK(says(in_turn("extra", value), "turn 1: key 'extra' names videos but is not read"));
  }
}

TEST_CASE("Under a key that speaks of pictures any address is one") {
  for (const std::string key : {"image_url", "imageUrl", "image_path", "img", "img1", "picture", "photo_link", "pic"})
    CHECK(says(beside(key, R"(["https://x.y/z"])"), "key '" + key + "' names pictures"));
  CHECK(says(beside("meta", R"({"image_url": "https://x.y/z"})"), "key 'meta' names pictures"));
  CHECK(says(beside("picture", R"({"url": "s3://x.y/z"})"), "key 'picture' names pictures"));
  CHECK(says(beside("video_url", R"("https://x.y/z")"), "key 'video_url' names videos"));
}

TEST_CASE("Pictures in a turn under the record's keys or in its parts are refused too") {
  CHECK(says(in_turn("image", R"("a.png")"), "turn 1: key 'image' is not read there"));
  CHECK(says(in_turn("videos", R"(["a.mp4"])"), "turn 1: key 'videos' is not read there"));
  CHECK(good(in_turn("images", "[null]")).images.empty());
  CHECK(says(
      R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "q", "img": "a.png"}]}, {"role": "assistant", "content": "a"}]})",
      "turn 1: key 'img' names pictures"));
}

TEST_CASE("Words, numbers and other addresses are no pictures, nor is anything beside one that is read") {
  for (const std::string value :
       {R"("see photo.jpg")", R"("He opened a.png")", R"("https://x.y/z")", R"(".png")", R"("data: a table")",
        R"("data:text/plain;base64,aGVsbG8=")", "3", R"("/9j/ is how a JPEG begins")", R"({"width": 3, "tags": ["a"]})",
        R"("GIF")", R"("A line\nand a.png")"}) {
    CHECK(good(beside("caption", value)).images.empty());
    CHECK(good(in_turn("caption", value)).images.empty());
  }
  CHECK(good(beside("topic", R"("https://x.y/z")")).images.empty());
  CHECK(good(beside("image_caption", R"("A page, https://x.y/z")")).images.empty());
  CHECK(good(beside("output_format", R"("Answer with the file's name: a.png")")).images.empty());
  CHECK(
      good(
          R"({"image": "a.png", "file_name": "b.jpg", "messages": [{"role": "user", "content": "<image>", "source": "c.png"}, {"role": "assistant", "content": "a"}]})")
          .images.size() == 1);
  Record record;
  REQUIRE(
      parse_record_with_media(beside("meta", R"({"file_name": "b.jpg"})"), MediaBeside{{"k.png"}, {}}, record, {}, {})
          .ok());
  CHECK(record.images.size() == 1);
  CHECK(good(R"({"query": "Name a file.", "response": "It is a.png"})").turns[1].text == "It is a.png");
}

}  // namespace
}  // namespace troupe
