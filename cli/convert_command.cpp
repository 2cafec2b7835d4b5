#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/convert/conversion.h"
#include "base/convert/report.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"

namespace troupe::cli {
namespace {

namespace fs = std::filesystem;

/// Looked at before anything is read: a file that is there stays, and nothing is written over what is read.
Status check_output(const ConvertOptionsGiven& given) {
  if (given.output.empty()) return {};
  std::error_code error;
  if (fs::equivalent(given.file, given.output, error))
    return invalid_argument("--output " + given.output + ": is the file that is read; valid: another file");
  if (fs::is_directory(given.output, error))
    return invalid_argument("--output " + given.output + ": is a folder; valid: a file");
  if (fs::exists(given.output, error) && !given.force)
    return invalid_argument("--output " + given.output + ": is there already; valid: another file, or --force");
  const fs::path folder = fs::absolute(given.output).parent_path();
  if (!fs::is_directory(folder, error))
    return invalid_argument("--output " + given.output + ": there is no folder '" + folder.string() + "'");
  return {};
}

Result<convert::ConvertOptions> options_of(const ConvertOptionsGiven& given) {
  convert::ConvertOptions options;
  if (!given.tool.empty()) {
    options.tool = convert::tool_of_word(given.tool);
    if (!options.tool)
      return invalid_argument("--from " + given.tool + ": is not known; valid: llama-factory, ms-swift");
  }
  options.command_folder = fs::current_path().string();
  options.working_folder =
      fs::absolute(given.working_dir.empty() ? "." : given.working_dir).lexically_normal().string();
  std::error_code error;
  if (!fs::is_directory(options.working_folder, error))
    return invalid_argument("--working-dir " + given.working_dir +
                            ": is no folder; valid: the one that the tool runs in");
  if (!given.output.empty()) options.output = fs::absolute(given.output).lexically_normal().string();
  options.model = given.model;
  options.devices = given.devices;
  options.global_batch = given.global_batch;
  options.full = given.full;
  return options;
}

Status write_spec(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  return out ? Status() : Status(invalid_argument("--output " + path + ": cannot be written"));
}

Status convert_file(const ConvertOptionsGiven& given) {
  TROUPE_RETURN_IF_ERROR(check_output(given));
  TROUPE_ASSIGN(const convert::ConvertOptions options, options_of(given));
  TROUPE_ASSIGN(const convert::Conversion made, convert::convert_config(given.file, options));
  if (!given.output.empty()) TROUPE_RETURN_IF_ERROR(write_spec(given.output, made.yaml));
  std::fprintf(stderr, "%s", convert::report_text(made).c_str());
  if (given.json)
    std::printf(
        "%s\n",
        convert::report_json(made, given.output).dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  else if (given.output.empty())
    std::printf("%s", made.yaml.c_str());
  return {};
}

}  // namespace

int convert_command(const ConvertOptionsGiven& options) {
  const Status status = convert_file(options);
  return status.ok() ? kExitDone : report(status.error(), options.json);
}

}  // namespace troupe::cli
