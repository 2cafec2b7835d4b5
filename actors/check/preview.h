#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "actors/data/sample_reader.h"
#include "base/data/sample_index.h"

/// A sample as it is trained on, for a person to read.
namespace troupe {

/// A run of a sample's text: what is supervised and what is not, or an image or a video.
struct PreviewPart {
  enum class Kind { kText, kSupervised, kImage } kind = Kind::kText;
  std::string text;    // kImage: its name for a person
  IndexedImage image;  // kImage
  RecordVideo medium;  // kImage: where to find it; a picture as the one frame of a video
  float weight = 1;    // kSupervised: what the answer counts in the loss
};

struct Preview {
  std::string id;
  int64_t tokens = 0, supervised = 0;
  std::vector<PreviewPart> parts;
};

/// Tokenizes the sample as training does and reads its tokens back. Errors name the sample.
Result<Preview> preview_sample(const SampleReader& reader, const SampleView& sample, int64_t merge);

/// A picture's path as a person wants to read it: of a data URI only what stands before its bytes.
std::string picture_name(const std::string& path);
/// A grid in patches, of a video with its length before it.
std::string grid_text(const IndexedImage& image);
/// What stands before an answer that does not count 1: "[counts 0.5] "; else empty.
std::string weight_note(const PreviewPart& part);

/// `colour`: supervised text in green; else between >> and <<.
std::string preview_text(const Preview& preview, int64_t merge, bool colour);

/// The same for a program: id, tokens, supervised, and parts, each with `text` and `supervised` or with `image`.
nlohmann::ordered_json preview_json(const Preview& preview, int64_t merge);

/// One self-contained page: the report, the bad records, and the previews with a thumbnail of each image that can be
/// decoded.
Result<std::string> html_page(const std::string& title, const std::string& report, const std::vector<std::string>& bad,
                              const std::vector<std::pair<int, Preview>>& previews, const SampleReader* reader,
                              int64_t merge);

}  // namespace troupe
