#include "actors/checkpoint/export_carried_files.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/model/processor_config.h"
#include "tests/actors/checkpoint/tiny_folder.h"

using namespace troupe;
using namespace troupe::testing;
namespace fs = std::filesystem;

namespace {

struct Carried {
  TinyFolder folder;
  ExportOptions options;
  std::string target;
  Carried() : target(folder.other("carried")) {
    options.source_folder = folder.path();
    fs::create_directories(target);
  }
  void add(const std::string& name, const std::string& text) const {
    std::ofstream(folder.path() + "/" + name) << text;
  }
  nlohmann::json json(const std::string& name) const { return nlohmann::json::parse(bytes_of(target + "/" + name)); }
};

}  // namespace

TEST_CASE("everything but weights is carried along unchanged") {
  Carried c;
  c.add("chat_template.jinja", "{{ messages }}");
  fs::create_directories(c.folder.path() + "/additional_chat_templates");
  c.add("additional_chat_templates/tool_use.jinja", "{{ tools }}");
  c.add("pytorch_model.bin", "old weights");
  c.add("model.safetensors.index.json", "{}");
  c.add(".cache", "hidden");
  REQUIRE(checkpoint::carry_files(c.options, c.target, nullptr).ok());
  for (const char* name : {"config.json", "tokenizer.json", "preprocessor_config.json", "chat_template.jinja",
                           "additional_chat_templates/tool_use.jinja"})
    CHECK(bytes_of(c.target + "/" + name) == bytes_of(c.folder.path() + "/" + name));
  for (const char* name : {"pytorch_model.bin", "model.safetensors", "model.safetensors.index.json", ".cache"})
    CHECK_FALSE(fs::exists(c.target + "/" + name));
}

TEST_CASE("pixel limits are written where each kind of processor reads them") {
  Carried c;
  c.options.min_pixels = 784;
  c.options.max_pixels = 50176;
  SECTION("plain keys") {
    REQUIRE(checkpoint::carry_files(c.options, c.target, nullptr).ok());
    CHECK(c.json("preprocessor_config.json")["min_pixels"] == 784);
    CHECK(c.json("preprocessor_config.json")["max_pixels"] == 50176);
    CHECK(c.json("preprocessor_config.json")["patch_size"] == 14);
  }
  SECTION("sizes by edge") {
    c.add("preprocessor_config.json", R"({"size": {"shortest_edge": 1, "longest_edge": 2}})");
    REQUIRE(checkpoint::carry_files(c.options, c.target, nullptr).ok());
    CHECK(c.json("preprocessor_config.json") ==
          nlohmann::json::parse(R"({"size": {"shortest_edge": 784, "longest_edge": 50176}})"));
  }
  SECTION("inside the processor's own file") {
    fs::remove(c.folder.path() + "/preprocessor_config.json");
    c.add("processor_config.json", R"({"image_processor": {"size": {"shortest_edge": 1, "longest_edge": 2}}})");
    REQUIRE(checkpoint::carry_files(c.options, c.target, nullptr).ok());
    CHECK(c.json("processor_config.json")["image_processor"]["size"]["longest_edge"] == 50176);
  }
  SECTION("in both files, so that readers of either see the same") {
    c.add("preprocessor_config.json", R"({"min_pixels": 1, "max_pixels": 2})");
    c.add("processor_config.json", R"({"image_processor": {"size": {"shortest_edge": 3, "longest_edge": 4}}})");
    REQUIRE(checkpoint::carry_files(c.options, c.target, nullptr).ok());
    CHECK(c.json("preprocessor_config.json")["max_pixels"] == 50176);
    CHECK(read_processor_config(c.target)->max_pixels == 50176);
    CHECK(image_processor_warning(c.target).empty());
  }
}

TEST_CASE("settings of videos are written where the video processor reads them") {
  Carried c;
  c.options.video.fps = 1.5;
  c.options.video.max_frames = 12;
  c.options.video.max_pixels = 50176;
  const auto carry = [&] { REQUIRE(checkpoint::carry_files(c.options, c.target, nullptr).ok()); };
  SECTION("beside the image processor's file, which stays as it is") {
    carry();
    CHECK(bytes_of(c.target + "/preprocessor_config.json") == bytes_of(c.folder.path() + "/preprocessor_config.json"));
    CHECK(c.json("video_preprocessor_config.json") ==
          nlohmann::json{
              {"min_pixels", 3136}, {"max_pixels", 50176}, {"patch_size", 14}, {"fps", 1.5}, {"max_frames", 12}});
  }
  SECTION("in their own file") {
    c.add("video_preprocessor_config.json", R"({"size": {"shortest_edge": 1, "longest_edge": 2}, "fps": 2})");
    carry();
    CHECK(c.json("video_preprocessor_config.json") ==
          nlohmann::json::parse(
              R"({"size": {"shortest_edge": 1, "longest_edge": 50176}, "fps": 1.5, "max_frames": 12})"));
  }
  SECTION("inside the processor's own file") {
    c.add("processor_config.json", R"({"video_processor": {"fps": 2}})");
    carry();
    CHECK(c.json("processor_config.json")["video_processor"]["fps"] == 1.5);
    CHECK_FALSE(fs::exists(c.target + "/video_preprocessor_config.json"));
  }
}

TEST_CASE("limits of images do not become those of videos") {
  Carried c;
  c.options.max_pixels = 50176;
  REQUIRE(checkpoint::carry_files(c.options, c.target, nullptr).ok());
  CHECK(c.json("preprocessor_config.json")["max_pixels"] == 50176);
  CHECK(c.json("video_preprocessor_config.json")["max_pixels"] == 12845056);
}

TEST_CASE("a source without config.json is refused; one without tokenizer is not") {
  Carried c;
  fs::remove(c.folder.path() + "/tokenizer.json");
  CHECK(checkpoint::carry_files(c.options, c.target, nullptr).ok());
  fs::remove(c.folder.path() + "/config.json");
  CHECK_FALSE(checkpoint::carry_files(c.options, c.target, nullptr).ok());
}
