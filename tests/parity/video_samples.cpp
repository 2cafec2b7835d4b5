#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "actors/data/dataset.h"
#include "actors/data/index_builder.h"
#include "base/model/model_config.h"

namespace {

using nlohmann::json;

troupe::VideoSpec video_spec(const json& given) {
  troupe::VideoSpec spec;
  if (given.contains("fps")) spec.fps = given["fps"].get<double>();
  const auto read = [&](const char* key, std::optional<int64_t>& out) {
    if (given.contains(key)) out = given[key].get<int64_t>();
  };
  read("min_frames", spec.min_frames);
  read("max_frames", spec.max_frames);
  read("min_pixels", spec.min_pixels);
  read("max_pixels", spec.max_pixels);
  return spec;
}

troupe::Status print_samples(const std::string& model, const std::string& records, const std::string& out,
                             const json& video) {
  TROUPE_ASSIGN(const troupe::ModelConfig config, troupe::read_model_config(model));
  troupe::DataSpec spec;
  spec.video = video_spec(video);
  spec.max_sample_tokens = 1'000'000;
  const std::vector<troupe::DataSource> sources{{records, {}, 1, -1}};
  TROUPE_ASSIGN(auto index, troupe::build_sample_index(spec, sources, model, config));
  for (const auto& bad : index.bad) std::fprintf(stderr, "%s\n", bad.to_string().c_str());
  TROUPE_ASSIGN(const auto data, troupe::open_dataset(spec, sources, model, config, std::move(index)));
  const auto& samples = data->index().samples;
  for (size_t s = 0; s < samples.size(); ++s) {
    TROUPE_ASSIGN(const auto tokens, data->tokens(static_cast<int64_t>(s)));
    json grids = json::array();
    std::ofstream file(out + "/" + std::string(samples[s].id) + ".f32", std::ios::binary);
    for (size_t i = 0; i < tokens.images.size(); ++i) {
      const auto& image = tokens.images[i];
      grids.push_back({{"grid", {image.t, image.h, image.w}}, {"video", image.is_video()}, {"seconds", image.seconds}});
      TROUPE_ASSIGN(const auto patches, data->patches(static_cast<int64_t>(s), static_cast<int>(i)));
      file.write(static_cast<const char*>(patches.const_data_ptr()), static_cast<std::streamsize>(patches.nbytes()));
    }
    const json line{{"id", samples[s].id},
                    {"ids", tokens.ids},
                    {"supervised", tokens.supervised},
                    {"positions", tokens.positions},
                    {"media", grids}};
    std::printf("%s\n", line.dump().c_str());
  }
  return {};
}

}  // namespace

/// video_samples MODEL RECORDS OUT [VIDEO]: a line for each sample of a file of records, its patches in OUT/ID.f32.
/// VIDEO: the spec's data.video as JSON. For videos.py.
int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const troupe::Status done =
      print_samples(argv[1], argv[2], argv[3], argc > 4 ? json::parse(argv[4]) : json::object());
  if (!done.ok()) std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
  return done.ok() ? 0 : 1;
}
