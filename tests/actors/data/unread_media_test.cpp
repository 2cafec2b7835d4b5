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

std::string base64(const std::string& begin) { return "\"" + begin + std::string(64, 'A') + "\""; }

TEST_CASE("A value that is a picture or a video under a key that is not read is refused wherever it stands") {
  for (const std::string& value :
       {std::string(R"("data:image/png;base64,iVBORw0KGgo=")"), std::string(R"("data:;base64,/9j/4AAQ")"),
        base64("/9j/4AAQSkZJRgABAQ"), base64("iVBORw0KGgoAAAANSUhEUg"), base64("R0lGODlhAQABAAAAACw"),
        base64("UklGRiQAAABXRUJQ"), R"([{"deep": {"er": [)" + base64("/9j/4AAQ") + "]}}]"}) {
    CHECK(says(beside("extra", value), "key 'extra' names pictures but is not read"));
    CHECK(says(in_turn("extra", value), "turn 1: key 'extra' names pictures but is not read"));
  }
  for (const std::string& value : {std::string(R"("data:video/mp4;base64,AA")"), base64("AAAAIGZ0eXBpc29t")}) {
    CHECK(says(beside("extra", value), "key 'extra' names videos but is not read"));
    CHECK(says(in_turn("extra", value), "turn 1: key 'extra' names videos but is not read"));
  }
}

TEST_CASE("A file's name is one in the record itself, and under a key that speaks of such files") {
  for (const std::string value : {R"("a.png")", R"(["a.JPG"])", R"("https://x.y/z.jpg?size=3")", R"("z.jpg#top")"}) {
    CHECK(says(beside("extra", value), "key 'extra' names pictures but is not read"));
    CHECK(says(in_turn("picture", value), "turn 1: key 'picture' names pictures but is not read"));
    CHECK(good(in_turn("extra", value)).images.empty());
  }
  for (const std::string value : {R"("a.avif")", R"("a.HEIC")", R"("a.jxl")", R"({"file": "a.svg"})", R"("my a.tga")"})
    CHECK(says(beside("picture", value), "key 'picture' names pictures but is not read"));
  CHECK(says(beside("extra", R"("https://x.y/z.mp4?t=3")"), "key 'extra' names videos but is not read"));
  CHECK(says(beside("meta", R"({"image": "a.png"})"), "key 'meta' names pictures"));
}

TEST_CASE("What a source says to ignore is no medium, and what is read as words is none") {
  const RecordSpelling spelling{{{"ignored", "avatarUrl, logo"}}, {}};
  CHECK(good(beside("avatarUrl", R"("https://x.y/a.png")"), spelling).turns.size() == 2);
  CHECK(good(in_turn("logo", base64("/9j/4AAQ")), spelling).turns.size() == 2);
  CHECK(says(beside("avatarUrl", R"("https://x.y/a.png")"), "or columns: {ignored: avatarUrl}"));
  for (const std::string record :
       {R"({"instruction": "i", "output": "logo.png"})", R"({"instruction": "i", "input": "photo.jpg", "output": "o"})",
        R"({"query": "https://x.y/z.jpg", "response": "A.mov"})",
        R"({"id": "3.jpg", "instruction": "i", "output": "o"})",
        R"({"query": "q", "response": "a", "system": "logo.png", "history": [["name it", "photo.jpg"]]})"})
    CHECK(good(record).images.empty());
  CHECK(good(R"({"q": "i", "a": "logo.png"})", {{{"question", "q"}, {"answer", "a"}}, {}}).images.empty());
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
        R"("GIF")", R"("A line\nand a.png")", R"("UklGRabc")", R"("TU0AK")"}) {
    CHECK(good(beside("caption", value)).images.empty());
    CHECK(good(in_turn("caption", value)).images.empty());
  }
  CHECK(good(beside("topic", R"("https://x.y/z")")).images.empty());
  for (const std::string key : {"docker_image", "image_license", "image_dataset"})
    CHECK(good(beside(key, R"("https://x.y/z")")).images.empty());
  CHECK(good(beside("image_caption", R"("A photo of cat.jpg")")).images.empty());
  CHECK(good(beside("profile", R"("I export to .png")")).images.empty());
  CHECK(good(beside("metadata", R"({"file_name": "x.jpg"})")).images.empty());
  CHECK(good(beside("image_caption", R"("A page, https://x.y/z")")).images.empty());
  CHECK(good(beside("output_format", R"("Answer with the file's name: a.png")")).images.empty());
  CHECK(
      good(
          R"({"image": "a.png", "file_name": "b.jpg", "messages": [{"role": "user", "content": "<image>", "source": "c.png"}, {"role": "assistant", "content": "a"}]})")
          .images.size() == 1);
  Record record;
  const auto media = [] { return MediaBeside{{"k.png"}, {}}; };
  REQUIRE(parse_record_with_media(beside("meta", R"({"file_name": "b.jpg"})"), media, record, {}, {}).ok());
  CHECK(record.images.size() == 1);
  CHECK(good(R"({"query": "Name a file.", "response": "It is a.png"})").turns[1].text == "It is a.png");
}

TEST_CASE("Media under another key than the columns name are refused with both keys, and frames with their form") {
  Record record;
  const std::string json = R"({"image": "a.png", "query": "<image>", "response": "a"})";
  const auto refused = parse_record(json, record, {{{"images", "picture"}}, {}});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message ==
        "key 'image' names pictures but is not read: columns say that 'picture' holds the record's images; valid: "
        "columns: {images: image}, or {ignored: image}");
  CHECK(says(R"({"frames": ["a.png", "b.png"], "query": "<video>", "response": "a"})",
             "a video of frames is written as a list of them inside of the list of videos (videos: [[...]])"));
}

TEST_CASE("Files that a text-only record holds under any word for them, and sound, are refused") {
  CHECK(says(beside("media", R"([{"type": "image", "path": "a.png"}])"), "key 'media' names pictures"));
  CHECK(says(beside("attachments", R"([{"path": "a.mp4"}])"), "key 'attachments' names videos"));
  CHECK(says(
      R"({"messages": [{"role": "user", "content": "q", "media": ["a.png"]}, {"role": "assistant", "content": "a"}]})",
      "turn 1: key 'media' names pictures"));
  for (const std::string key : {"audio_path", "wav", "sound", "voice_file", "speech"})
    CHECK(says(beside(key, R"("a.wav")"), "key '" + key + "' names sound, which is not read"));
  CHECK(says(beside("voices", R"({"audio": {"path": "a.mp3"}})"), "names sound"));
  CHECK(good(beside("speech", R"("formal")")).images.empty());
  CHECK(good(beside("source", R"("episode.mp3")")).images.empty());
  CHECK(good(beside("framework", R"("logo.pn")")).images.empty());
  CHECK(says(beside("framework", R"("logo.png")"), "use 'image' or 'images'"));
  CHECK(good(beside("attachments", R"(["a.txt"])")).images.empty());
}

}  // namespace
}  // namespace troupe
