#include "actors/data/chat_layout.h"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

const std::vector<Turn> kChat = {{Role::kUser, "<image>\nWhat?"},
                                 {Role::kAssistant, "A cat.<image>"},
                                 {Role::kUser, "And?"},
                                 {Role::kAssistant, ""},
                                 {Role::kUser, "?"},
                                 {Role::kAssistant, "No.", 0},
                                 {Role::kUser, "!"},
                                 {Role::kAssistant, "Yes."}};

std::vector<std::string> learned(const ChatText& chat) {
  std::vector<std::string> out;
  for (const auto& [begin, end] : chat.learned) out.push_back(chat.text.substr(begin, end - begin));
  return out;
}

TEST_CASE("A chat as text is what the template of the form writes") {
  const std::vector<Turn> two(kChat.begin(), kChat.begin() + 2);
  CHECK(as_text(lay_out(two, "Be kind.", Supervise::kAll)).text ==
        "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>\nWhat?"
        "<|im_end|>\n<|im_start|>assistant\nA cat.<image><|im_end|>\n");
  std::vector<Turn> own = two;
  own.insert(own.begin(), {Role::kSystem, ""});
  CHECK(as_text(lay_out(own, "Be kind.", Supervise::kAll)).text.starts_with("<|im_start|>system\n<|im_end|>\n<|im_"));
  CHECK(as_text(lay_out({}, std::nullopt, Supervise::kAll)).text.empty());
}

TEST_CASE("Learned are the answers with the ends of their turns, but empty ones and those marked otherwise") {
  CHECK(learned(as_text(lay_out(kChat, std::nullopt, Supervise::kAll))) ==
        std::vector<std::string>{"A cat.<image><|im_end|>", "Yes.<|im_end|>"});
  CHECK(learned(as_text(lay_out(kChat, "x", Supervise::kLast))) == std::vector<std::string>{"Yes.<|im_end|>"});
}

}  // namespace
}  // namespace troupe
