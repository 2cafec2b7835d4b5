#pragma once

#include <map>
#include <string>

#include "base/config/job_spec_parser.h"
#include "base/convert/conversion.h"
#include "base/json_text.h"
#include "base/model/model_config.h"
#include "base/model/parameter.h"
#include "base/regular_file.h"
#include "base/safetensors/safetensors_writer.h"
#include "tests/scratch_folder.h"

namespace troupe::convert {

/// A folder that another tool runs in: a small model with weights in `model`, records in `train.jsonl`, and
/// `data/dataset_info.json` with the data sets `chat` and, of at most 7 samples, `few`.
class ToolFolder {
 public:
  ToolFolder() {
    const std::string shapes = std::string(TROUPE_SOURCE_DIR) + "/examples/shapes";
    std::filesystem::copy(shapes + "/model", scratch_.path("model"));
    scratch_.write("train.jsonl", "{}\n");
    scratch_.write("data/chat.json", "[]");
    scratch_.write("data/dataset_info.json",
                   R"({"chat": {"file_name": "chat.json"}, "few": {"file_name": "chat.json", "num_samples": 7},
                       "far": {"hf_hub_url": "a/b"}})");
    const auto config = read_model_config(scratch_.path("model"));
    std::vector<TensorSpec> tensors;
    for (const ParameterDecl& p : model_parameters(*config, false))
      tensors.push_back({p.name, FileDType::kBf16, p.shape});
    auto writer = SafetensorsWriter::create(scratch_.path("model/model.safetensors"), tensors);
    uint64_t bytes = 0;
    for (const ParameterDecl& p : model_parameters(*config, false)) bytes += 2 * static_cast<uint64_t>(p.elements());
    const std::string zeros(bytes, '\0');
    weights_ = (*writer)->append(zeros.data(), zeros.size()).ok() && (*writer)->finish().ok();
    options.working_folder = options.command_folder = scratch_.path();
    options.output = scratch_.path("job.yaml");
  }

  std::string path(const std::string& name) const { return scratch_.path(name); }
  std::string write(const std::string& name, const std::string& text) const { return scratch_.write(name, text); }
  bool has_weights() const { return weights_; }

  /// The conversion of a text, as the file `name`, or its complaint.
  Result<Conversion> convert(const std::string& text, const std::string& name = "foreign.yaml") const {
    return convert_config(write(name, text), options);
  }
  /// The spec that comes out, as its own reader has it.
  Result<JobSpec> spec(const std::string& text, const std::string& name = "foreign.yaml") const {
    TROUPE_ASSIGN(const Conversion made, convert(text, name));
    return load_job_spec_text(made.yaml, options.output);
  }
  /// What is complained of, without the folder's name; "(accepted)" when nothing is.
  std::string complaint(const std::string& text, const std::string& name = "foreign.yaml") const {
    const auto made = convert(text, name);
    if (made.ok()) return "(accepted)";
    std::string message = made.error().message;
    for (size_t at; (at = message.find(scratch_.path() + "/")) != std::string::npos;)
      message.erase(at, scratch_.path().size() + 1);
    return message;
  }

  ConvertOptions options;

 private:
  ScratchFolder scratch_;
  bool weights_ = false;
};

/// Why a key was dropped; "" when it was not.
inline std::string dropped(const Conversion& made, const std::string& key) {
  for (const auto* keys : {&made.dropped, &made.unknown})
    for (const ConvertedKey& k : *keys)
      if (k.key == key) return k.text;
  return "";
}

/// What a key became; "" when it did not carry over.
inline std::string carried(const Conversion& made, const std::string& key) {
  for (const ConvertedKey& k : made.carried)
    if (k.key == key) return k.text;
  return "";
}

}  // namespace troupe::convert
