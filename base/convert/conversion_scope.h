#pragma once

#include "base/convert/conversion.h"
#include "base/convert/foreign_paths.h"
#include "base/convert/foreign_values.h"
#include "base/convert/spec_draft.h"

namespace troupe::convert {

/// What every part of a conversion works on; all of it outlives the parts. What is refused goes to the diagnostics of
/// `values`.
struct ConversionScope {
  const ForeignValues& values;
  const ConvertOptions& options;
  const ForeignPaths& paths;          // of the foreign file
  const ForeignPaths& command_paths;  // of this command line
  SpecDraft& draft;
};

/// The keys of LLaMA-Factory that carry over.
void convert_llama_factory(const ConversionScope& scope);
/// The keys of ms-swift that carry over.
void convert_ms_swift(const ConversionScope& scope);

}  // namespace troupe::convert
