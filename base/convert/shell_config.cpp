#include "base/convert/shell_config.h"

#include <algorithm>

#include "base/convert/shell_words.h"

namespace troupe::convert {
namespace {

const std::vector<std::string> kWrappers{"nohup", "env", "exec", "time", "export"};
const std::vector<std::string> kHarmless{"set", "echo", "mkdir", "sleep", "export", "true", ":", "date"};
constexpr const char* kValid = "valid: NAME=VALUE, export, and one `swift sft --key value ...`";

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// The words of a command from its program on.
std::vector<ShellWord> program_of(const ShellCommand& command) {
  auto first = command.words.begin();
  while (first != command.words.end() && contains(kWrappers, first->text)) ++first;
  return {first, command.words.end()};
}

bool is_trainer(const std::string& program) {
  return program == "swift" || program == "llamafactory-cli" || program == "lmf" || program == "megatron";
}

YamlNode scalar(const std::string& text, const SourcePlace& place) {
  YamlNode node;
  node.kind = YamlKind::kScalar;
  node.text = text;
  node.place = place;
  return node;
}

class CommandReader {
 public:
  CommandReader(const std::string& file, Diagnostics& found) : found_(found) { config_.file = file; }

  void add_variable(const ShellWord& name, const std::string& value) {
    std::erase_if(config_.entries, [&](const YamlEntry& e) { return e.key == name.text; });  // the last one counts
    const SourcePlace place{config_.file, name.line};
    config_.entries.push_back({name.text, place, scalar(value, place)});
  }

  void add_command(const std::vector<ShellWord>& words) {
    const std::string& program = words[0].text;
    const std::string verb = words.size() > 1 ? words[1].text : "";
    const SourcePlace place{config_.file, words[0].line};
    if (trained_) return found_.add(place, "has a second training command; valid: a script with one");
    trained_ = true;
    const bool swift = program == "swift" && verb == "sft";
    const bool factory = (program == "llamafactory-cli" || program == "lmf") && verb == "train";
    if (!swift && !factory)
      return found_.add(place, "'" + program + " " + verb +
                                   "' trains in another way than Troupe; valid: swift sft, llamafactory-cli train");
    config_.tool = swift ? ForeignTool::kMsSwift : ForeignTool::kLlamaFactory;
    add_arguments({words.begin() + 2, words.end()});
  }

  ForeignConfig take() { return std::move(config_); }
  bool trained() const { return trained_; }

 private:
  void add_arguments(const std::vector<ShellWord>& words) {
    for (size_t i = 0; i < words.size();) {
      const SourcePlace place{config_.file, words[i].line};
      if (words[i].text.rfind("--", 0) != 0) {
        found_.add(place, "'" + words[i].text + "' is no --key; valid: --key value, or a file of its own to convert");
        return;
      }
      std::string key = words[i].text.substr(2);
      std::vector<YamlNode> values;
      if (const size_t equals = key.find('='); equals != std::string::npos) {
        values.push_back(scalar(key.substr(equals + 1), place));
        key = key.substr(0, equals);
      }
      std::replace(key.begin(), key.end(), '-', '_');
      for (++i; i < words.size() && words[i].text.rfind("--", 0) != 0; ++i)
        values.push_back(scalar(words[i].text, {config_.file, words[i].line}));
      add_argument(key, place, std::move(values));
    }
  }

  void add_argument(const std::string& key, const SourcePlace& place, std::vector<YamlNode> values) {
    const auto twice =
        std::find_if(config_.entries.begin(), config_.entries.end(), [&](const YamlEntry& e) { return e.key == key; });
    if (twice != config_.entries.end())
      return found_.add_key(place, key, "occurs twice; it is already on line " + std::to_string(twice->place.line));
    YamlNode value = scalar("true", place);
    if (values.size() == 1)
      value = std::move(values[0]);
    else if (values.size() > 1) {
      value = {};
      value.kind = YamlKind::kSequence;
      value.place = place;
      value.items = std::move(values);
    }
    config_.entries.push_back({key, place, std::move(value)});
  }

  Diagnostics& found_;
  ForeignConfig config_;
  bool trained_ = false;
};

}  // namespace

Result<ForeignConfig> read_shell_config(const std::string& text, const std::string& file) {
  Diagnostics found;
  CommandReader reader(file, found);
  for (const ShellCommand& command : read_shell_commands(text, file, found)) {
    const std::vector<ShellWord> words = program_of(command);
    const bool exported = !command.words.empty() && command.words[0].text == "export";
    const bool trains = !words.empty() && is_trainer(words[0].text);
    if (exported || trains)
      for (const auto& [name, value] : command.assignments) reader.add_variable(name, value);
    if (trains)
      reader.add_command(words);
    else if (!words.empty() && !exported && !contains(kHarmless, words[0].text))
      found.add({file, words[0].line}, "has the command '" + words[0].text + "', which is not read; " + kValid);
  }
  TROUPE_RETURN_IF_ERROR(found.to_status());
  if (!reader.trained()) return invalid_argument(file + ": has no training command; " + kValid);
  return reader.take();
}

bool looks_like_shell(const std::string& text) {
  if (text.rfind("#!", 0) == 0) return true;
  Diagnostics ignored;
  const auto commands = read_shell_commands(text, "", ignored);
  return std::any_of(commands.begin(), commands.end(), [](const ShellCommand& command) {
    const std::vector<ShellWord> words = program_of(command);
    return words.size() > 1 && is_trainer(words[0].text);
  });
}

}  // namespace troupe::convert
