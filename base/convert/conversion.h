#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/convert/foreign_config.h"
#include "base/convert/spec_draft.h"

/// From a training configuration of another project to a job spec that trains the same.
namespace troupe::convert {

struct ConvertOptions {
  std::optional<ForeignTool> tool;  // whose the file is; told by its keys or its command when not given
  std::string working_folder;       // where that tool would run; relative paths of the file are below it. Absolute
  std::string command_folder;       // where this program runs. Absolute
  std::string output;               // the spec's file, absolute; "": nobody knows yet
  std::string model;                // a folder instead of the file's model, as given; "": none
  int64_t devices = 0;              // data-parallel ranks; 0: as the file says, else one
  int64_t global_batch = 0;         // samples of a step instead of the file's; 0: none
  bool full = false;                // adapters and the like become training of all weights
};

/// A foreign key and what became of it.
struct ConvertedKey {
  std::string key;
  SourcePlace place;
  std::string text;  // carried: keys and values of the spec; dropped and unknown: why
};

struct Conversion {
  ForeignTool tool = ForeignTool::kLlamaFactory;
  std::string file;  // the foreign one
  std::string yaml;  // the spec, the report in comments at its head
  std::vector<ConvertedKey> carried, dropped, unknown;
  std::vector<Remark> remarks;        // what a person should know
  std::vector<std::string> defaults;  // "KEY: VALUE", written because the tool takes them silently
};

/// Reads `file`, and makes the spec of it. Everything that Troupe cannot train as it is asked is refused at once, with
/// file, line, key, value and what would be valid (InvalidArgument). What comes out was read by the spec's own reader,
/// with its looks at model and data; it is as `troupe plan` wants it. Writes nothing.
Result<Conversion> convert_config(const std::string& file, const ConvertOptions& options);

}  // namespace troupe::convert
