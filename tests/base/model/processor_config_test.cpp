#include "base/model/processor_config.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/scratch_folder.h"

namespace troupe {
namespace {

ProcessorConfig read(const std::string& name, const std::string& text) {
  const ScratchFolder scratch;
  scratch.write(name, text);
  const auto config = read_processor_config(scratch.path("."));
  REQUIRE(config.ok());
  return *config;
}

TEST_CASE("Both spellings of the pixel limits are read") {
  for (const char* text :
       {R"({"min_pixels": 10, "max_pixels": 20})", R"({"size": {"shortest_edge": 10, "longest_edge": 20}})",
        R"({"min_pixels": 10, "size": {"longest_edge": 20}})",
        R"({"min_pixels": 10, "max_pixels": 20, "size": {"shortest_edge": 1, "longest_edge": 2}})",
        R"({"min_pixels": 10, "max_pixels": 20, "size": {"min_pixels": 1, "max_pixels": 2}})"}) {
    const auto config = read("preprocessor_config.json", text);
    CHECK(config.min_pixels == 10);
    CHECK(config.max_pixels == 20);
  }
  CHECK(read("processor_config.json", R"({"image_processor": {"min_pixels": 10, "image_mean": [0.5, 0.5, 0.5]}})")
            .mean[1] == 0.5);
}

TEST_CASE("The image_processor of processor_config.json goes before preprocessor_config.json, as in transformers") {
  const ScratchFolder folder;
  folder.write("preprocessor_config.json", R"({"min_pixels": 10, "max_pixels": 20, "image_std": 2})");
  const auto most = [&](const std::string& together) {
    folder.write("processor_config.json", together);
    const auto config = read_processor_config(folder.path());
    REQUIRE(config.ok());
    return config->max_pixels.value_or(0);
  };
  CHECK(most("{}") == 20);
  CHECK(most(R"({"image_processor": null})") == 20);
  CHECK(most(R"({"image_processor": {"size": {"shortest_edge": 10, "longest_edge": 30}}})") == 30);
  CHECK(most(R"({"image_processor": {}})") == 0);  // its defaults, and nothing of the other file
}

TEST_CASE("Two image processor files that make different pixels or grids are a warning with what differs") {
  const ScratchFolder folder;
  folder.write("preprocessor_config.json", R"({"min_pixels": 10, "max_pixels": 20, "image_std": 2, "patch_size": 14})");
  const auto warning = [&](const std::string& together) {
    folder.write("processor_config.json", together);
    const std::string text = image_processor_warning(folder.path());
    return text.empty() ? "none" : text.substr(folder.path().size() + 1);
  };
  CHECK(warning(R"({"image_processor": {"size": {"shortest_edge": 10, "longest_edge": 30}}})") ==
        "processor_config.json: its image_processor is the one that transformers takes; preprocessor_config.json holds "
        "another one (max_pixels, image_std), which is not used");
  // The same in other words, and what changes neither.
  CHECK(warning(R"({"image_processor": {"size": {"shortest_edge": 10, "longest_edge": 20}, "image_std": [2, 2, 2],
                                        "merge_size": 2, "do_resize": true, "data_format": "channels_first"}})") ==
        "none");
  CHECK(warning(R"({"video_processor": {"max_pixels": 1}})") == "none");
  folder.write("preprocessor_config.json", R"({"do_resize": false})");
  CHECK(warning(R"({"image_processor": {}})").ends_with("holds another one, which is not used"));
}

TEST_CASE("A processor file that cannot be looked at is an error, not none") {
  const ScratchFolder folder;
  std::filesystem::create_symlink("processor_config.json", folder.path("processor_config.json"));
  CHECK_FALSE(read_processor_config(folder.path()).ok());
  CHECK(image_processor_warning(folder.path()).empty());
}

TEST_CASE("A folder without a processor file gives the published defaults") {
  const auto config = read("other.json", "{}");
  CHECK_FALSE(config.min_pixels);
  CHECK(config.mean[0] == Approx(0.48145466));
  CHECK(config.deviation[2] == Approx(0.27577711));
}

TEST_CASE("Patch sizes that differ from the model's are refused with both numbers") {
  const auto config = read("preprocessor_config.json", R"({"patch_size": 16})");
  const auto status = config.check_against(VisionConfig{}, "FOLDER");
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.find("patch_size 16") != std::string::npos);
  CHECK(status.error().message.find("14") != std::string::npos);
}

TEST_CASE("A file that is not understood is named") {
  const ScratchFolder scratch;
  scratch.write("preprocessor_config.json", R"({"image_mean": ["a"]})");
  const auto config = read_processor_config(scratch.path("."));
  REQUIRE_FALSE(config.ok());
  CHECK(config.error().message.find("preprocessor_config.json") != std::string::npos);
}

std::string complaint(const std::string& text, const std::string& name = "preprocessor_config.json") {
  const ScratchFolder scratch;
  scratch.write(name, text);
  const auto config = read_processor_config(scratch.path("."));
  return config.ok() ? "(accepted)" : config.error().message.substr(config.error().message.find(name));
}

TEST_CASE("Rescaling and normalising that the file switches off are off") {
  const auto plain =
      read("preprocessor_config.json", R"({"do_normalize": false, "image_mean": [1, 2, 3], "rescale_factor": 0.5})");
  CHECK(plain.mean == std::array<double, 3>{0, 0, 0});
  CHECK(plain.deviation == std::array<double, 3>{1, 1, 1});
  CHECK(plain.rescale == 0.5);
  const auto raw = read("preprocessor_config.json", R"({"do_rescale": false, "rescale_factor": 0.5, "image_std": 2})");
  CHECK(raw.rescale == 1);
  CHECK(raw.deviation == std::array<double, 3>{2, 2, 2});
}

TEST_CASE("What the image path does not do is refused with file, key, value and what is valid") {
  CHECK(complaint(R"({"do_resize": false})") ==
        "preprocessor_config.json: key 'do_resize': value false is not valid; valid: true");
  CHECK(complaint(R"({"do_convert_rgb": false})").find("key 'do_convert_rgb': value false") != std::string::npos);
  CHECK(complaint(R"({"image_processor": {"resample": 2}})", "processor_config.json") ==
        "processor_config.json: key 'image_processor.resample': value 2 is not valid; valid: 3 (bicubic)");
  CHECK(complaint(R"({"image_processor_type": "CLIPImageProcessor"})") ==
        "preprocessor_config.json: key 'image_processor_type': value \"CLIPImageProcessor\" is not valid; valid: "
        "Qwen2VLImageProcessor, Qwen2VLImageProcessorFast, Qwen2VLImageProcessorPil, Qwen2_5_VLImageProcessor");
  CHECK(complaint(R"({"image_processor_type": "Qwen2VLImageProcessorFast"})") == "(accepted)");
  CHECK(complaint(R"({"resample": 3, "do_resize": true, "do_convert_rgb": true, "do_normalize": null})") ==
        "(accepted)");
}

TEST_CASE("A mean, deviation, factor or size that no picture can be made with is refused") {
  const std::string three = "three numbers above 0, or one for all channels";
  CHECK(complaint(R"({"image_std": [0, 0, 0]})") ==
        "preprocessor_config.json: key 'image_std': value [0,0,0] is not valid; valid: " + three);
  for (const char* value : {"[1, 1]", "[1, 1, 1, 1]", "0", "[1, null, 1]", "\"a\"", "{}", "-1"})
    CHECK(complaint(std::string("{\"image_std\": ") + value + "}").find("key 'image_std'") != std::string::npos);
  CHECK(complaint(R"({"image_mean": [0.5]})") ==
        "preprocessor_config.json: key 'image_mean': value [0.5] is not valid; valid: three numbers, or one for all "
        "channels");
  CHECK(complaint(R"({"image_mean": [1e999, 0, 0]})").find("is not valid JSON") != std::string::npos);
  for (const char* value : {"0", "-0.1", "\"x\"", "[1]"})
    CHECK(complaint(std::string("{\"rescale_factor\": ") + value + "}").find("valid: a number above 0") !=
          std::string::npos);
  for (const char* value : {"0", "-1", "1.5", "\"x\"", "99999999999"})
    CHECK(complaint(std::string("{\"size\": {\"shortest_edge\": 1, \"longest_edge\": ") + value + "}}")
              .find("key 'longest_edge'") != std::string::npos);
  for (const char* value :
       {"\"big\"", "[]", "50176", "{}", "{\"height\": 10, \"width\": 10}", "{\"min_pixels\": 10, \"max_pixels\": 20}",
        "{\"longest_edge\": 20}", "{\"shortest_edge\": null, \"longest_edge\": 20}",
        "{\"shortest_edge\": 1, \"longest_edge\": 20, \"max_pixels\": 30}"})
    CHECK(complaint(std::string("{\"size\": ") + value + "}").find("key 'size': value ") != std::string::npos);
  CHECK(complaint(R"({"do_rescale": "no"})").find("valid: true, false") != std::string::npos);
  CHECK(complaint("[]").find("is not a JSON object") != std::string::npos);
}

}  // namespace
}  // namespace troupe
