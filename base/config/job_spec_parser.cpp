#include "base/config/job_spec_parser.h"

#include <filesystem>

#include "base/config/job_spec_reader.h"
#include "base/config/key_table.h"
#include "base/regular_file.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// From tree to spec; every stage adds to the diagnostics, and later stages run only on values that earlier ones found
/// whole.
Result<JobSpec> spec_from_tree(YamlNode& tree, const fs::path& file, const Environment& environment, bool look_at_files,
                               Diagnostics& found) {
  // A text that is no YAML leaves nothing to judge; doubled keys do.
  if (!found.empty() && tree.entries.empty()) return found.to_status().error();
  expand_variables(tree, environment, found);
  job_spec_keys().check(tree, found);
  if (!tree.is_map()) return found.to_status().error();
  const Section root(&tree, "", {tree.place.origin, 1}, found);
  JobSpec spec = read_job_spec(root, file.parent_path().string());
  if (spec.name.empty()) spec.name = file.stem().string();
  check_relations(spec, root);
  if (look_at_files) check_files(spec, root);
  TROUPE_RETURN_IF_ERROR(found.to_status());
  return spec;
}

KeyPlaces places_of(const YamlNode& tree, const JobSpec& spec) {
  KeyPlaces places(tree);
  for (const auto& [section, sources] :
       {std::pair("data", &spec.data.sources), std::pair("eval", &spec.eval.sources)}) {
    const YamlNode* written = tree.find(section);
    const YamlNode* list = written ? written->find("sources") : nullptr;
    // A dataset_info.json is one item of the file and several sources of the spec.
    if (list && list->items.size() != sources->size()) places.forget_items(std::string(section) + ".sources");
  }
  return places;
}

}  // namespace

Result<JobSpec> load_job_spec(const std::string& path, const std::vector<std::string>& overrides,
                              const Environment& environment) {
  TROUPE_ASSIGN(const std::string text, read_text_file(path));
  return load_job_spec_text(text, path, overrides, environment);
}

Result<JobSpec> load_job_spec_text(const std::string& text, const std::string& path,
                                   const std::vector<std::string>& overrides, const Environment& environment) {
  Diagnostics found;
  YamlNode tree = parse_yaml(text, path, found);
  if (tree.is_map())
    for (const std::string& option : overrides) apply_override(tree, option, found);
  const fs::path file = fs::absolute(path).lexically_normal();
  TROUPE_ASSIGN(JobSpec spec, spec_from_tree(tree, file, environment, true, found));
  spec.file = file.string();
  spec.places = places_of(tree, spec);
  return spec;
}

Result<JobSpec> parse_job_spec(const std::string& text, const std::string& origin) {
  Diagnostics found;
  YamlNode tree = parse_yaml(text, origin, found);
  return spec_from_tree(tree, fs::absolute(origin).lexically_normal(), {}, false, found);
}

}  // namespace troupe
