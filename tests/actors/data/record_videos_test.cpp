#include "actors/data/record_videos.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "actors/data/media_names.h"
#include "actors/data/placeholders.h"
#include "tests/actors/data/parsed_record.h"

namespace troupe {
namespace {

using namespace testing;

using Paths = std::vector<std::string>;

Paths paths_of(const std::vector<RecordMedium>& media) {
  Paths paths;
  for (const auto& medium : media) paths.push_back(medium.path);
  return paths;
}

std::string with(const std::string& keys, const std::string& question) {
  return "{" + keys + R"("conversations": [{"from": "human", "value": ")" + question +
         R"("}, {"from": "gpt", "value": "y"}]})";
}

TEST_CASE("A video is a file, or a list of frames, under both keys and in all spellings") {
  for (const char* key : {"video", "videos"}) {
    const std::string name = "\"" + std::string(key) + "\": ";
    CHECK(good(with(name + R"("a.mp4", )", "<video>x")).videos[0].file.path == "a.mp4");
    CHECK(good(with(name + R"({"path": "a.mp4"}, )", "<video>x")).videos[0].file.path == "a.mp4");
    CHECK(good(with(name + R"({"bytes": "AAAA"}, )", "<video>x")).videos[0].file.path == "data:;base64,AAAA");
    const auto two = good(with(name + R"(["a.mp4", "b.mkv"], )", "<video><video>")).videos;
    REQUIRE(two.size() == 2);
    CHECK(two[1].file.path == "b.mkv");
    const auto lists =
        good(with(name + R"([["a.png", {"path": "b.png"}], ["c.png"], "d.mp4"], )", "<video>, <video>, <video>"))
            .videos;
    REQUIRE(lists.size() == 3);
    CHECK(!lists[0].is_file());
    CHECK(paths_of(lists[0].frames) == Paths{"a.png", "b.png"});
    CHECK(paths_of(lists[1].frames) == Paths{"c.png"});
    CHECK(lists[2].file.path == "d.mp4");
  }
  for (const char* none : {R"("video": null, )", R"("videos": [], )", R"("video": "", )"})
    CHECK(good(with(none, "x")).videos.empty());
  const auto named =
      good(with(R"("clips": "a.mp4", "rate": 3, )", "<video>"), {{{"videos", "clips"}, {"fps", "rate"}}, {}});
  CHECK(named.videos[0].file.path == "a.mp4");
}

TEST_CASE("Frames a second stand beside a list of frames; a file knows its own") {
  CHECK(good(with(R"("videos": [["a.png"], ["b.png"]], "fps": 3, )", "<video><video>")).videos[1].fps == 3);
  CHECK(good(with(R"("videos": [["a.png"], ["b.png"]], "fps": [3, 0.5], )", "<video><video>")).videos[1].fps == 0.5);
  CHECK(good(with(R"("videos": "a.mp4", "fps": "29.97", )", "<video>")).videos[0].fps == 0);
  CHECK(good(with(R"("videos": [["a.png"]], )", "<video>")).videos[0].fps == 0);
  CHECK(good(with(R"("videos": [["a.png"]], "sample_fps": 5, )", "<video>")).videos[0].fps == 5);
  CHECK(says(with(R"("videos": [["a.png"]], "fps": 1, "sample_fps": 5, )", "<video>"), "both 'fps' and 'sample_fps'"));
  CHECK(says(with(R"("videos": ["a.mp4"], "video_fps": 5, )", "<video>"), "key 'video_fps' stands beside a video"));
  CHECK(says(with(R"("video": ["a.png", "b.png"], "videos": [["a.png", "b.png"]], )", "<video>"), "they differ"));
  CHECK(says(with(R"("videos": [["a.png"]], "fps": [1, 2], )", "<video>"), "key 'fps' has 2 numbers for 1 video"));
  for (const char* fps : {"0", "-1", "\"2\"", "1001", "[true]"})
    CHECK(says(with(R"("videos": [["a.png"]], "fps": )" + std::string(fps) + ", ", "<video>"), "key 'fps' is "));
}

TEST_CASE("A wrong number of video placeholders is refused with both counts") {
  CHECK(says(with(R"("video": ["a.mp4", "b.mp4"], )", "<video>"),
             "1 <video> placeholder in the user turns, but 2 videos"));
  CHECK(says(with(R"("videos": ["a.png", {"path": "b.JPG"}], )", "<video>"),
             "1 <video> placeholder in the user turns, but 2 videos; valid: as many, each where its video belongs; a "
             "video of frames is written as a list of them "
             "inside of the list of videos"));
  CHECK_FALSE(says(with(R"("videos": ["a.mp4", ["b.png"]], )", "<video>"), "is written as"));
  CHECK(says(with(R"("image": "a.png", "video": "a.mp4", )", "<image>"),
             "0 <video> placeholders in the user turns, but 1 video"));
  CHECK(says(with("", "<video>"), "1 <video> placeholder in the user turns, but 0 videos"));
  CHECK(says(with(R"("image": "a.png", )", "<video>"), "0 <image> placeholders in the user turns, but 1 image"));
  CHECK(good(with("", "x <video").substr(0)).videos.empty());
}

TEST_CASE("Images and videos of one record are bound in reading order, each list by itself") {
  const auto record =
      good(with(R"("images": ["a.png", "b.png"], "videos": ["c.mp4", "d.mp4"], )", "<video> <image><video> x <image>"));
  std::string order;
  for (const auto& medium : media_in_order(record.turns))
    order += medium.video ? record.videos[medium.number].file.path[0] : record.images[medium.number].path[0];
  CHECK(order == "cadb");
}

TEST_CASE("In a record with videos alone <image> may stand for them") {
  const auto record = good(with(R"("video": "a.mp4", )", "<image>\\nWhat?"));
  CHECK(record.turns[0].text == "<video>\nWhat?");
  CHECK(says(with(R"("video": "a.mp4", )", "<image><image>"), "2 <video> placeholders"));
  CHECK(says(with(R"("video": "a.mp4", )", "<image><video>"), "1 <image> placeholder in the user turns, but 0 images"));
}

std::string parts(const std::string& list, const std::string& keys = "") {
  return "{" + keys + R"("messages": [{"role": "user", "content": )" + list +
         R"(}, {"role": "assistant", "content": "y"}]})";
}

TEST_CASE("A part of a turn is a video, by a path, a list of frames or the record's list") {
  const auto file = good(parts(R"([{"type": "text", "text": "x "}, {"type": "video", "video": "a.mp4", "fps": 1.5}])"));
  CHECK(file.videos[0].file.path == "a.mp4");
  CHECK(file.videos[0].fps == 1.5);
  CHECK(file.turns[0].text == "x <video>");
  const auto frames = good(parts(R"([{"type": "video", "video": ["a.png", "b.png"], "sample_fps": 4}])"));
  CHECK(paths_of(frames.videos[0].frames) == Paths{"a.png", "b.png"});
  CHECK(frames.videos[0].fps == 4);
  CHECK(good(parts(R"([{"type": "video_url", "video_url": {"url": "a.mp4"}}])")).videos[0].file.path == "a.mp4");
  CHECK(good(parts(R"([{"type": "video"}])", R"("videos": ["b.mp4"], )")).videos[0].file.path == "b.mp4");
  CHECK(says(parts(R"([{"type": "video", "video": "a.mp4", "nframes": 8}])"), "'nframes'"));
  CHECK(says(parts(R"([{"type": "video", "video": []}])"), "without frames"));
  CHECK(says(parts(R"([{"type": "audio", "audio": "a.wav"}])"), "'audio'"));
  CHECK(says(
      R"({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": [{"type": "video", "video": "a.mp4"}]}]})",
      "only questions may"));
}

TEST_CASE("In a row videos and frames may be bytes, and bytes of a video under a key that is not read are refused") {
  using nlohmann::json;
  const auto bytes = [](const std::string& text) { return json::binary({text.begin(), text.end()}); };
  const json turns = json::array({{{"from", "human"}, {"value", "<video><video>"}}, {{"from", "gpt"}, {"value", "y"}}});
  const json file{{"bytes", bytes("mp4")}, {"path", "a.mp4"}}, frames = json::array({bytes("png"), bytes("gif")});
  Record record;
  REQUIRE(parse_row({{"conversations", turns}, {"videos", json::array({file, frames})}}, record).ok());
  REQUIRE(record.videos.size() == 2);
  CHECK(record.videos[0].is_file());
  CHECK(record.videos[0].file.path == "a.mp4");
  CHECK(*record.videos[0].file.bytes == "mp4");
  CHECK(*record.videos[1].frames[1].bytes == "gif");
  Record alone;
  const json one = json::array({{{"from", "human"}, {"value", "<video>"}}, {{"from", "gpt"}, {"value", "y"}}});
  REQUIRE(parse_row({{"conversations", one}, {"video", bytes("mkv")}}, alone).ok());
  CHECK(*alone.videos[0].file.bytes == "mkv");
  Record unread;
  const json text = json::array({{{"from", "human"}, {"value", "x"}}, {{"from", "gpt"}, {"value", "y"}}});
  for (const json& clip : {bytes("\x1A\x45\xDF\xA3"), json{{"clip", bytes("\x1A\x45\xDF\xA3")}}, bytes("FLV\1")}) {
    const Status refused = parse_row({{"conversations", text}, {"clip", clip}}, unread);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message.find("key 'clip' names videos but is not read") != std::string::npos);
  }
}

TEST_CASE("Settings beside a video are read or refused wherever it is written") {
  const auto part = [](const std::string& keys, const std::string& beside) {
    return R"({"messages": [{"role": "user", "content": [{"type": "video")" + keys +
           R"(}, {"type": "text", "text": "x"}]}, {"role": "assistant", "content": "y"}])" + beside + "}";
  };
  CHECK(says(part(R"(, "nframes": 8)", R"(, "videos": ["a.mp4"])"), "'nframes'"));
  CHECK(says(part(R"(, "fps": 8)", R"(, "videos": ["a.mp4"])"), "'fps' and no video"));
  CHECK(good(part(R"(, "video": ["a.png", "b.png"])", R"(, "fps": 4)")).videos[0].fps == 4);
  CHECK(good(part(R"(, "video": ["a.png", "b.png"], "fps": 2)", R"(, "fps": 4)")).videos[0].fps == 2);
  CHECK(good(with(R"("videos": [{"path": "a.mp4", "fps": 0.5}], )", "<video>")).videos[0].fps == 0.5);
  CHECK(says(with(R"("videos": [{"path": "a.mp4", "video_start": 3}], )", "<video>"), "'video_start'"));
  CHECK(says(with(R"("videos": [["a.png"]], "fps": 1e-39, )", "<video>"), "from 0.001 to 1000"));
  CHECK(says(with(R"("videos": ["a.mp4"], "video_start": 3, )", "<video>"), "key 'video_start' stands beside a video"));
  CHECK(good(with(R"("video_start": 3, )", "x")).videos.empty());
  CHECK(says(part(R"(, "video": "a.mp4", "fps": 1, "sample_fps": 2)", ""), "'fps' and 'sample_fps', and they differ"));
}

TEST_CASE("A file under a key that is not read is refused also inside of an object") {
  CHECK(says(with(R"("clip": {"bytes": null, "path": "a.mp4"}, )", "x"), "key 'clip' names videos"));
  CHECK(says(with(R"("clip": "http://a/b.mp4?t=1", )", "x"), "key 'clip' names videos"));
  CHECK(says(with(R"("clip": "a.MPG", )", "x"), "key 'clip' names videos"));
  CHECK(says(with(R"("photo": {"bytes": null, "path": "a.png"}, )", "x"), "key 'photo' names pictures"));
}

TEST_CASE("What holds no video is refused by its key") {
  CHECK(says(with(R"("videos": [[]], )", "<video>"), "key 'videos' holds a video without frames"));
  CHECK(says(with(R"("videos": [3], )", "<video>"), "key 'videos'"));
  CHECK(says(with(R"("video": 3, )", "x"), "key 'video' is a number"));
  CHECK(says(with(R"("video": "a.mp4", "videos": "b.mp4", )", "<video>"), "differ"));
  CHECK(says(with(R"("audio": "a.wav", )", "x"), "'audio'"));
}

TEST_CASE("Videos beside a record are its own, in the archive's order with its pictures") {
  Record record;
  REQUIRE(parse_record_with_media(with("", "What?"),
                                  [] {
                                    return MediaBeside{{"k.png", "k.mp4"}, ""};
                                  },
                                  record, {}, {})
              .ok());
  CHECK(record.turns[0].text == "<image>\n<video>\nWhat?");
  CHECK(record.videos[0].file.path == "k.mp4");
  Record frames;
  bool looked = false;
  const auto beside = [&] {
    looked = true;
    return MediaBeside{{"k.png"}, ""};
  };
  REQUIRE(parse_record_with_media(with(R"("video": [["k.png"]], )", "<video>"), beside, frames, {}, {}).ok());
  CHECK_FALSE(looked);
  CHECK(frames.images.empty());
  CHECK(is_video_name("a/B.WebM"));
  CHECK_FALSE(is_video_name(".mp4"));
  CHECK_FALSE(is_video_name("a.mp4.txt"));
  CHECK(is_unread_picture_name("a/B.AVIF"));
  CHECK_FALSE(is_picture_name(".png"));
}

}  // namespace
}  // namespace troupe
