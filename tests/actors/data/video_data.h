#pragma once

#include "actors/data/block_cache.h"
#include "tests/actors/data/index_data.h"

namespace troupe::fixture {

inline std::string video_record(const std::string& id, const std::string& frames, const std::string& more = "") {
  return R"({"id": ")" + id + R"(", "videos": [)" + frames + "], " + more +
         R"("conversations": [{"from": "human", "value": "<video>\nWhat?"}, {"from": "gpt", "value": "It is a cat."}]})" +
         "\n";
}

inline constexpr const char* kTemplate =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% else %}{% for p in "
    "m.content %}{% if p.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% elif p.type == 'video' "
    "%}<|vision_start|><|video_pad|><|vision_end|>{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif "
    "%}<|im_end|>\n{% endfor %}";

/// Pictures of one size under four names, and a template that knows videos.
struct Frames : IndexData {
  std::unique_ptr<BlockCache> cache = std::move(BlockCache::open(scratch.path("cache"), int64_t{1} << 40)).value();
  IndexProgress last;
  Frames() {
    for (const char* name : {"f0.png", "f1.png", "f2.png", "f3.png"})
      std::filesystem::copy(scratch.path("pictures/rgb.png"), scratch.path("pictures/" + std::string(name)));
    write_template(kTemplate);
    run.cache = cache.get();
    run.progress = [this](const IndexProgress& progress) { last = progress; };
  }
  std::string bad(const std::string& line) {
    const auto made = index({source(line)});
    REQUIRE(made.bad.size() == 1);
    return made.bad[0].reason;
  }
};

inline constexpr const char* kThree = R"(["f0.png", "f1.png", "f2.png"])";

}  // namespace troupe::fixture
