#include "actors/data/record_parts.h"

#include "tests/actors/data/parsed_record.h"

namespace troupe {
namespace {

using namespace testing;

/// A question in parts, and more keys of the record.
std::string asked(const std::string& parts, const std::string& keys = "") {
  return "{" + keys + R"("messages": [{"role": "user", "content": [)" + parts +
         R"(]}, {"role": "assistant", "content": "y"}]})";
}

TEST_CASE("A part names its picture or video as transformers spells it") {
  for (const std::string part :
       {R"("image": "a.png")", R"("path": "a.png")", R"("url": "a.png")", R"("image_url": {"url": "a.png"})",
        R"("image": {"path": "a.png"})", R"("image": "a.png", "path": "a.png", "url": null)"}) {
    const auto record = good(asked(R"({"type": "image", )" + part + "}"));
    REQUIRE(record.images.size() == 1);
    CHECK(record.images[0].path == "a.png");
    CHECK(record.turns[0].text == "<image>");
  }
  CHECK(good(asked(R"({"type": "image", "base64": "AAAA"})")).images[0].path == "data:;base64,AAAA");
  CHECK(good(asked(R"({"type": "image", "base64": "data:image/png;base64,AA"})")).images[0].path ==
        "data:image/png;base64,AA");
  CHECK(good(asked(R"({"type": "image", "bytes": "AAAA"})")).images[0].path == "data:;base64,AAAA");
  for (const std::string part : {R"("video": "a.mp4")", R"("path": "a.mp4")", R"("url": "a.mp4")"}) {
    const auto videos = good(asked(R"({"type": "video", "fps": 2, )" + part + "}")).videos;
    REQUIRE(videos.size() == 1);
    CHECK(videos[0].file.path == "a.mp4");
    CHECK(videos[0].fps == 2);
  }
  CHECK(good(asked(R"({"type": "video", "base64": "AAAA"})")).videos[0].file.path == "data:;base64,AAAA");
  CHECK(
      says(asked(R"({"type": "image", "image": "a.png", "path": "b.png"})"), "both 'image' and 'path', and they dif"));
  CHECK(says(asked(R"({"type": "video", "path": "a.mp4", "nframes": 8})"), "'nframes'"));
}

TEST_CASE("Media in parts and in the record's list of the same kind are refused: the list's would be bound to others") {
  const std::string own = R"({"type": "image", "image": "b.png"})", bare = R"({"type": "image"})",
                    list = R"("images": ["a.png"], )", why = "has images in parts of its turns and under 'images' too";
  CHECK(says(asked(bare + "," + own, list), why));
  CHECK(says(asked(own + R"(, {"type": "text", "text": "<image>"})", list), why));
  CHECK(says(asked(R"({"type": "image", "path": "b.png"})", list), why));
  CHECK(good(asked(own, R"("images": [], "image": null, )")).images[0].path == "b.png");
  CHECK(good(asked(bare, list)).images[0].path == "a.png");
  const std::string clip = R"({"type": "video", "video": "b.mp4"})";
  CHECK(says(asked(clip + R"(, {"type": "video"})", R"("videos": ["a.mp4"], )"),
             "has videos in parts of its turns and under 'videos' too"));
  CHECK(good(asked(clip + "," + bare, list)).videos[0].file.path == "b.mp4");
}

TEST_CASE("A part that is not understood says what is wrong with it") {
  CHECK(says(asked(R"({"type": "text", "content": "q"})"), "a part of type 'text' without 'text'"));
  CHECK(says(asked(R"({"type": "text", "text": null})"), "a part of type 'text' without 'text'"));
  CHECK(says(asked(R"({"type": "text", "text": 3})"), "whose 'text' is a number"));
  CHECK(says(asked(R"("q")"), "turn 1 has a string in its list of parts; parts are objects with 'type'"));
  CHECK(says(asked(R"({"text": "q"})"), "turn 1 has a part without 'type'"));
  CHECK(says(asked(R"({"type": "text", "text": "q", "image": "a.png"})"), "type 'text' with 'image', which is not re"));
  CHECK(
      says(asked(R"({"type": "image", "image": "a.png", "text": "q"})"), "type 'image' with 'text', which is not re"));
  CHECK(good(asked(R"({"type": "text", "text": "q", "image": null, "video": null})")).turns[0].text == "q");
}

TEST_CASE("Sizes beside an image are refused wherever it is written") {
  for (const std::string key : {"min_pixels", "max_pixels", "resized_height", "resized_width"}) {
    const std::string set = "\"" + key + "\": 56";
    CHECK(says(asked(R"({"type": "image", "image": "a.png", )" + set + "}"), "has an image with '" + key + "'"));
    CHECK(says(asked(R"({"type": "image_url", "image_url": {"url": "a.png", )" + set + "}}"), "with '" + key + "'"));
    CHECK(says(asked(R"({"type": "image"})", R"("images": [{"path": "a.png", )" + set + "}], "), "with '" + key + "'"));
    CHECK(says(asked(R"({"type": "image"})", R"("image": "a.png", )" + set + ", "), "key '" + key + "' stands beside"));
    CHECK(good(asked(R"({"type": "text", "text": "q"})", set + ", ")).images.empty());
    CHECK(good(asked(R"({"type": "image", "image": "a.png", ")" + key + "\": null}")).images.size() == 1);
  }
}

TEST_CASE(
    "What stands beside an image or a video and neither names nor describes it is refused wherever it is written") {
  const std::string crop = R"("crop": [0, 0, 8, 8])";
  CHECK(says(asked(R"({"type": "image", "image": "a.png", )" + crop + "}"),
             "turn 1 has an image with 'crop', which is not read; valid: the image as it is to be seen, or columns: "
             "{ignored: crop}"));
  CHECK(says(asked(R"({"type": "image_url", "image_url": {"url": "a.png", )" + crop + "}}"), "with 'crop'"));
  CHECK(says(asked(R"({"type": "image"})", R"("images": [{"path": "a.png", )" + crop + "}], "), "with 'crop'"));
  CHECK(says(asked(R"({"type": "video", "video": "a.mp4", "segment": [0, 1]})"), "has a video with 'segment'"));
  CHECK(says(asked(R"({"type": "video_url", "video_url": {"url": "a.mp4", "start": 1}})"), "has a video with 'start'"));
  CHECK(says(asked(R"({"type": "video"})", R"("videos": [{"path": "a.mp4", "end": 3}], )"), "has a video with 'end'"));
  CHECK(says(asked(R"({"type": "video"})", R"("videos": ["a.mp4"], "max_frames": 4, )"), "'max_frames' stands beside"));
  CHECK(says(asked(R"({"type": "video", "video": "a.mp4", "do_sample_frames": false})"), "with 'do_sample_frames'"));
  for (const std::string key :
       {R"("trim": [0, 1])", R"("options": {"video_start": 1})", R"("video_kwargs": {"fps": 1})"})
    CHECK(says(asked(R"({"type": "video", "video": "a.mp4", )" + key + "}"), "has a video with '"));
  for (const std::string key :
       {R"("images_kwargs": {"max_pixels": 9})", R"("cropBox": [1])", R"("do_center_crop": true)",
        R"("do_resize": false)", R"("options": {"a": {"crop": [1]}})"})
    CHECK(says(asked(R"({"type": "image", "image": "a.png", )" + key + "}"), "has an image with '"));
  CHECK(good(asked(R"({"type": "image", "image": "a.png", "clip_score": 0.3, "frame_id": 7, "do_resize": true})"))
            .images.size() == 1);
  CHECK(good(asked(R"({"type": "video", "video": "a.mp4", "do_sample_frames": true, "raw_fps": 25})")).videos.size() ==
        1);
  const std::string described =
      R"("detail": "high", "width": 4, "mime_type": "image/png", "crop": null, "box": [], "flip": false, "rotation": 0,
         "caption": "A cat.", "cache_control": {"type": "x"}, "total_frames": 8, "license": {"start": 3}, "page": 2)";
  CHECK(good(asked(R"({"type": "image_url", "image_url": {"url": "a.png", )" + described + "}}")).images.size() == 1);
  CHECK(
      good(asked(R"({"type": "image", "image": "a.png", )" + crop + "}"), {{{"ignored", "crop"}}, {}}).images.size() ==
      1);
  CHECK(good(asked(R"({"type": "video_url", "video_url": {"url": "a.mp4"}, "fps": 2, "id": 7})")).videos[0].fps == 2);
  const std::string inner = R"({"type": "video_url", "video_url": {"url": "a.mp4", "fps": 2)";
  CHECK(good(asked(inner + "}}")).videos[0].fps == 2);
  CHECK(good(asked(inner + R"(}, "fps": 2})")).videos[0].fps == 2);
  CHECK(says(asked(inner + R"(, "start": 3}})"), "has a video with 'start'"));
  CHECK(says(asked(inner + R"(}, "fps": 3})"), "'fps' is said twice, and they differ"));
  CHECK(good(asked(inner + R"(}, "fps": 3})"), {{{"ignored", "fps"}}, {}}).videos[0].fps == 0);
}

TEST_CASE("Numbers of parts must be those in which the record's images are taken") {
  const auto numbered = [](int a, int b) {
    return asked(R"({"type": "image", "index": )" + std::to_string(a) + R"(}, {"type": "text", "text": "and"},
                     {"type": "image", "text": null, "index": )" +
                     std::to_string(b) + "}",
                 R"("images": ["a.png", "b.png"], )");
  };
  CHECK(good(numbered(0, 1)).turns[0].text == "<image>and<image>");
  CHECK(good(numbered(1, 2)).images.size() == 2);
  CHECK(
      says(numbered(1, 0), "has a part of type 'image' whose 'index' is 0.0 in place 1, counted from 0, but images "));
  CHECK(says(numbered(0, 0), "whose 'index' is 0.0 in place 1"));
  const auto with = [](const std::string& first, const std::string& second) {
    return asked(R"({"type": "image")" + first + R"(}, {"type": "image")" + second + "}",
                 R"("images": ["a.png", "b.png"], )");
  };
  CHECK(says(with(R"(, "index": "1")", R"(, "index": "0")"), "whose 'index' is 0.0 in place 1"));
  CHECK(says(with(R"(, "index": 1)", ""), "whose 'index' is 1.0 in place 0"));
  CHECK(good(with("", R"(, "index": 1)")).images.size() == 2);
  CHECK(good(with(R"(, "index": "left")", R"(, "index": "a")")).images.size() == 2);
  CHECK(good(numbered(1, 0), {{{"ignored", "index"}}, {}}).images.size() == 2);
  const std::string turn = R"([{"type": "image", "index": 1}]}, {"role": "assistant", "content": "a"})";
  CHECK(says(
      R"({"images": ["a.png", "b.png"], "messages": [{"role": "user", "content": )" + turn +
          R"(, {"role": "user", "content": [{"type": "image", "index": 0}]}, {"role": "assistant", "content": "b"}]})",
      "whose 'index' is 0.0 in place 1"));
  CHECK(good(asked(R"({"type": "image", "image": "a.png", "index": 5})")).images.size() == 1);
}

TEST_CASE("A list of nulls is no list of images or videos") {
  CHECK(
      good(asked(R"({"type": "text", "text": "q"})", R"("images": [null], "videos": [null, null], )")).images.empty());
  CHECK(says(asked(R"({"type": "image"})", R"("images": [null, "a.png"], )"), "key 'images' holds null"));
}

}  // namespace
}  // namespace troupe
