#include "actors/data/positions.h"
#include "actors/data/video_reader.h"
#include "tests/actors/data/video_data.h"

// Videos that are lists of frames, from records to an index.

namespace troupe {
namespace {

namespace fs = std::filesystem;
using fixture::Frames;
using fixture::kTemplate;
using fixture::kThree;
using fixture::video_record;

TEST_CASE("A list of frames is a video: two frames a t, the last one twice, seconds by the rate") {
  Frames data;
  const auto made = data.index({data.source(video_record("a", kThree) + video_record("b", kThree, R"("fps": 4, )") +
                                            fixture::record("c", "rgb.png") + "\n")});
  REQUIRE(made.bad.empty());
  const IndexedImage a = made.samples[0].images[0], b = made.samples[1].images[0], c = made.samples[2].images[0];
  CHECK(a.is_video());
  CHECK(a.t == 2);
  CHECK(a.seconds == 2.0F / 24);
  CHECK(b.seconds == 0.5F);
  CHECK_FALSE(c.is_video());
  CHECK(std::pair(a.h, a.w) == std::pair(c.h, c.w));  // the fixture's folder has one pair of limits for both
  CHECK(made.samples[0].tokens - made.samples[2].tokens == a.h * a.w / 4);
  data.spec.video.fps = 2;
  CHECK(data.index({data.scratch.path("records.jsonl")}).samples[0].images[0].seconds == 1);
}

TEST_CASE("Frames of different sizes, missing ones and files are refused by name") {
  Frames data;
  data.scratch.write("pictures/other.png", fixture::contents(fixture::path("pictures/orientation6.jpg")));
  CHECK(data.bad(video_record("a", R"(["f0.png", "other.png"])")).find("the frames of a video have one size") !=
        std::string::npos);
  CHECK(data.bad(video_record("a", R"(["f0.png", "gone.png"])"))
            .find("the video of 2 frames from 'f0.png' on: image 'gone.png'; caused by: cannot open") !=
        std::string::npos);
  CHECK(data.bad(video_record("a", R"("f0.png", "f1.png")")).find("2 videos") != std::string::npos);
  CHECK(data.bad(video_record("a", R"("f0.png")")).find("video 'f0.png' is a picture") != std::string::npos);
  CHECK(data.bad(video_record("a", R"("https://x/a.mp4")")).find("video 'https://x/a.mp4' is a URL") !=
        std::string::npos);
}

TEST_CASE("More than a video may have is refused before anything is decoded") {
  Frames data;
  data.spec.video.min_pixels = data.spec.video.max_pixels = int64_t{1} << 30;
  CHECK(data.bad(video_record("a", kThree)).find("more than the limit of 2^30 together") != std::string::npos);
  data.spec.video = {};
  std::string frames = "[";
  for (int i = 0; i < (1 << 16) + 1; ++i) frames += i > 0 ? R"(,"f0.png")" : R"("f0.png")";
  CHECK(data.bad(video_record("a", frames + "]")).find("65537 frames, more than the limit of 2^16") !=
        std::string::npos);
}

TEST_CASE("Of a video that is kept between runs each frame is looked for, and one that changed costs the record") {
  Frames data;
  const std::string file = data.source(video_record("a", kThree) + video_record("b", kThree, R"("fps": 4, )"));
  const auto first = data.index({file});
  CHECK(data.last.cached_blocks == 0);
  CHECK(data.index({file}).digest == first.digest);
  CHECK(data.last.cached_blocks == 1);
  data.scratch.write("pictures/f2.png", fixture::contents(fixture::path("pictures/orientation6.jpg")));
  const auto changed = data.index({file});
  CHECK(data.last.cached_blocks == 0);
  CHECK(changed.bad.size() == 2);
  data.scratch.write("pictures/f2.png", fixture::contents(fixture::path("pictures/rgb.png")));
  CHECK(data.index({file}).digest == first.digest);
  data.spec.video.fps = 3;
  CHECK(data.index({file}).digest != first.digest);
  fs::remove(data.scratch.path("pictures/f1.png"));
  CHECK(data.index({file}).bad.size() == 2);
}

TEST_CASE("An index keeps grids and seconds of videos") {
  Frames data;
  const auto made = data.index({data.source(video_record("b", kThree, R"("fps": 4, )"))});
  const std::string path = data.scratch.path("index");
  REQUIRE(made.write(path).ok());
  const auto back = SampleIndex::read(path);
  REQUIRE(back.ok());
  const IndexedImage image = back->samples[0].images[0];
  CHECK(image.is_video());
  CHECK(image.t == 2);
  CHECK(image.seconds == 0.5F);
}

TEST_CASE("A template that does not write videos makes records with videos bad, and no others") {
  Frames data;
  std::string without = kTemplate;
  without.erase(without.find("{% elif"), without.find("{% else %}{{ p") - without.find("{% elif"));
  data.scratch.write("model/chat_template.jinja", without);
  const auto made = data.index(
      {data.source(fixture::record("a", "rgb.png") + "\n" + video_record("b", kThree) + fixture::record("c") + "\n")});
  CHECK(made.samples.size() == 2);
  REQUIRE(made.bad.size() == 1);
  CHECK(made.bad[0].id == "b");
  CHECK(made.bad[0].reason.find("the chat template writes a chat with a video") == 0);
}

TEST_CASE("A folder whose video processor is not understood makes records with videos bad, and no others") {
  Frames data;
  data.scratch.write("model/video_preprocessor_config.json", R"({"num_frames": 4})");
  const auto made = data.index({data.source(fixture::record("a", "rgb.png") + "\n" + video_record("b", kThree))});
  CHECK(made.samples.size() == 1);
  REQUIRE(made.bad.size() == 1);
  CHECK(made.bad[0].reason.find("num_frames") != std::string::npos);
}

TEST_CASE("Positions of a video: rows as an image's, time by its seconds, what follows behind the longer side") {
  IndexedImage video{3, 4, 6, 1, MediumKind::kVideo, 0.7F};
  const auto positions = mrope_positions(1 + 18 + 2, {video}, 2, 2);
  REQUIRE(positions.size() == 21);
  const auto at = [&](size_t i) { return positions[i]; };
  using Row = std::array<int64_t, 3>;
  CHECK(at(0) == Row{0, 0, 0});
  CHECK(at(1) == Row{1, 1, 1});
  CHECK(at(6) == Row{1, 2, 3});
  CHECK(at(7) == Row{2, 1, 1});   // 1.4 cut off
  CHECK(at(13) == Row{3, 1, 1});  // 2.8 cut off
  CHECK(at(19) == Row{4, 4, 4});
  CHECK(at(20) == Row{5, 5, 5});
}

}  // namespace
}  // namespace troupe
