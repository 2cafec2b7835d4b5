#pragma once

#include <string>
#include <vector>

#include "base/config/job_spec.h"
#include "base/config/variables.h"
#include "base/model/model_config.h"
#include "base/result.h"

/// Job specs as text: reading with exact complaints, overriding, writing back. Pure except for the checks that look at
/// files. Every complaint reads "FILE:LINE: key 'a.b': value ... is not valid; valid: ...", all of a file's complaints
/// in one error, a line each. InvalidArgument or NotFound: the request is refused.
namespace troupe {

/// Reads the file, applies `overrides` ("a.b=value"), expands `${VAR}` from `environment`, resolves paths against the
/// file's folder, and checks everything that can be known without running: keys, types, sizes that must divide, the
/// model folder and its head counts, data paths. Takes no device and writes nothing.
Result<JobSpec> load_job_spec(const std::string& path, const std::vector<std::string>& overrides = {},
                              const Environment& environment = process_environment());

/// The same for a text that is to lie at `path`; whether there is a file makes no difference.
Result<JobSpec> load_job_spec_text(const std::string& text, const std::string& path,
                                   const std::vector<std::string>& overrides = {},
                                   const Environment& environment = process_environment());

/// Parses a resolved spec (what job_spec_to_yaml wrote): keys, types and sizes are checked, no file is looked at.
Result<JobSpec> parse_job_spec(const std::string& text, const std::string& origin);

/// The spec with every default written out; parse_job_spec reads it back as the same value.
std::string job_spec_to_yaml(const JobSpec& spec);

/// Head counts against the groups' meshes, each component by its own numbers.
Status check_heads(const JobSpec& spec, const ModelConfig& config);

/// Steps that are to be dumped or traced against the last one, when `steps` are known: none may lie behind it.
Status check_steps(const JobSpec& spec, int64_t steps);

/// The folder, or the nearest existing folder above it, can be written to.
Status check_writable(const std::string& folder);

}  // namespace troupe
