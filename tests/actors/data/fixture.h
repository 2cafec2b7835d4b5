#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/model/model_config.h"
#include "tests/scratch_folder.h"

/// The files that make_fixture.py wrote, and scratch folders for tests that write their own.
namespace troupe::fixture {

inline std::string path(const std::string& name) {
  return std::string(TROUPE_SOURCE_DIR) + "/tests/actors/data/fixture/" + name;
}

inline std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline nlohmann::json json(const std::string& name) { return nlohmann::json::parse(contents(path(name))); }

/// The configuration of the model that the fixture's tokenizer belongs to.
inline ModelConfig model_config() {
  const auto tokens = json("chats.json").at("tokens");
  ModelConfig config;
  config.image_token = tokens.at("<|image_pad|>");
  config.video_token = tokens.at("<|video_pad|>");
  config.vision_start_token = tokens.at("<|vision_start|>");
  config.vision_end_token = tokens.at("<|vision_end|>");
  config.text.vocabulary = 1000;
  return config;
}

using Scratch = ScratchFolder;

}  // namespace troupe::fixture
