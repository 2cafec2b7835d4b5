#include "base/config/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <sstream>

#include "base/config/variables.h"

namespace troupe {
namespace {

constexpr size_t kMaxNodes = 1'000'000;
constexpr size_t kMaxShown = 60;  // characters of a list or mapping in a message
constexpr size_t kMaxDepth = 64;  // the parser and everything that walks a tree recurse

/// Builds the tree from the parser's events.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string origin, Diagnostics& diagnostics) : origin_(std::move(origin)), diagnostics_(diagnostics) {}
  YamlNode take_root() { return std::move(root_); }
  bool overflow() const { return nodes_ > kMaxNodes; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { place(leaf(mark, YamlKind::kNull), anchor); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto it = anchors_.find(anchor);
    if (it == anchors_.end()) {
      diagnostics_.add(at(mark), "an alias refers to the value that it stands in");
      place(leaf(mark, YamlKind::kNull), 0);
      return;
    }
    nodes_ += count(it->second);
    if (!overflow()) place(it->second, 0);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (value.find('\0') != std::string::npos) throw YAML::ParserException(mark, "holds a zero byte");
    YamlNode n = leaf(mark, YamlKind::kScalar);
    n.text = value;
    n.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    place(std::move(n), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, leaf(mark, YamlKind::kSequence), anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, leaf(mark, YamlKind::kMap), anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    bool has_key = false, key_is_word = true;
    std::string key;
    SourcePlace key_place;
  };

  SourcePlace at(const YAML::Mark& mark) const { return {origin_, mark.line + 1}; }
  YamlNode leaf(const YAML::Mark& mark, YamlKind kind) {
    ++nodes_;
    YamlNode n;
    n.kind = kind;
    n.place = at(mark);
    return n;
  }
  static size_t count(const YamlNode& n) {
    size_t total = 1;
    for (const auto& e : n.entries) total += count(e.value);
    for (const auto& i : n.items) total += count(i);
    return total;
  }
  void open(const YAML::Mark& mark, YamlNode n, YAML::anchor_t anchor) {
    if (stack_.size() >= kMaxDepth)
      throw YAML::ParserException(mark, "nested deeper than " + std::to_string(kMaxDepth) + " levels");
    Frame frame;
    frame.node = std::move(n);
    frame.anchor = anchor;
    stack_.push_back(std::move(frame));
  }
  void close() {
    Frame done = std::move(stack_.back());
    stack_.pop_back();
    place(std::move(done.node), done.anchor);
  }
  void place(YamlNode n, YAML::anchor_t anchor) {
    if (anchor) anchors_[anchor] = n;
    if (stack_.empty()) {
      root_ = std::move(n);
      return;
    }
    Frame& top = stack_.back();
    if (top.node.kind == YamlKind::kSequence) {
      top.node.items.push_back(std::move(n));
    } else if (!top.has_key) {
      take_key(top, n);
    } else {
      top.has_key = false;
      if (!top.key_is_word) return;  // said already
      // An empty value has no mark of its own: it stands on its key's line.
      if (n.kind == YamlKind::kNull) n.place = top.key_place;
      if (const YamlNode* first = top.node.find(top.key))
        diagnostics_.add_key(top.key_place, top.key,
                             "occurs twice; it is already on line " + std::to_string(first->place.line));
      else
        top.node.entries.push_back({top.key, top.key_place, std::move(n)});
    }
  }
  void take_key(Frame& top, const YamlNode& n) {
    top.has_key = true;
    top.key_place = n.place;
    top.key = n.text;
    top.key_is_word = n.kind == YamlKind::kScalar;
    if (n.kind != YamlKind::kScalar) {
      diagnostics_.add(n.place, "a key must be a plain word, not " + n.describe());
    }
  }

  std::string origin_;
  Diagnostics& diagnostics_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
  YamlNode root_;
  size_t nodes_ = 0;
};

/// Feeds the first document to `builder`; false when a second one follows.
bool parse_document(const std::string& text, TreeBuilder& builder) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  parser.HandleNextDocument(builder);
  Diagnostics ignored;
  TreeBuilder rest("", ignored);
  return !parser.HandleNextDocument(rest);
}

void set_places(YamlNode& node, const SourcePlace& place) {
  node.place = place;
  for (YamlEntry& e : node.entries) {
    e.place = place;
    set_places(e.value, place);
  }
  for (YamlNode& i : node.items) set_places(i, place);
}

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> parts;
  std::stringstream in(path);
  for (std::string part; std::getline(in, part, '.');) parts.push_back(part);
  return parts;
}

/// Steps into `part` of `node`, making a map entry when needed; null when `node` cannot hold it.
YamlNode* descend(YamlNode& node, const std::string& part, const SourcePlace& place) {
  if (node.kind == YamlKind::kSequence) {
    const bool number = !part.empty() && part.size() < 7 &&
                        std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c); });
    if (!number || std::stoul(part) >= node.items.size()) return nullptr;
    return &node.items[std::stoul(part)];
  }
  if (node.kind == YamlKind::kNull) {
    node.kind = YamlKind::kMap;
    node.place = place;
  }
  if (!node.is_map()) return nullptr;
  if (YamlNode* found = node.find(part)) return found;
  node.entries.push_back({part, place, YamlNode{}});
  node.entries.back().value.place = place;
  return &node.entries.back().value;
}

/// As the file would have it, on one line, without what cannot be told from its events (comments, quotes' kind).
std::string flow_text(const YamlNode& node) {
  std::string out;
  switch (node.kind) {
    case YamlKind::kNull:
      return "null";
    case YamlKind::kScalar:
      return node.quoted ? "\"" + node.text + "\"" : node.text;
    case YamlKind::kMap:
      for (const YamlEntry& e : node.entries) out += (out.empty() ? "" : ", ") + e.key + ": " + flow_text(e.value);
      return "{" + out + "}";
    case YamlKind::kSequence:
      for (const YamlNode& i : node.items) out += (out.empty() ? "" : ", ") + flow_text(i);
      break;
  }
  return "[" + out + "]";
}

std::string shortened(const std::string& text) {
  if (text.size() <= kMaxShown) return text;
  size_t end = kMaxShown - 4;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // not inside a character
  return text.substr(0, end) + "..." + text.back();
}

bool is_yaml(const std::string& text) {
  Diagnostics ignored;
  TreeBuilder builder("", ignored);
  try {
    return parse_document(text, builder);
  } catch (const YAML::Exception&) {
    return false;
  }
}

/// The variable whose braces are why the text is no YAML: with plain words for all variables it is, with this one not.
std::optional<VariablePlace> variable_in_braces(const std::string& text) {
  const std::vector<VariablePlace> variables = variables_in(text);
  auto words_but = [&](const VariablePlace* kept) {
    std::string out = text;
    for (const VariablePlace& v : variables)
      if (&v != kept) out.replace(v.at, v.length, v.length, 'x');
    return out;
  };
  if (variables.empty() || !is_yaml(words_but(nullptr))) return std::nullopt;
  for (const VariablePlace& v : variables)
    if (!is_yaml(words_but(&v))) return v;
  return std::nullopt;
}

void add_syntax_error(const std::string& text, const std::string& origin, const YAML::Exception& error,
                      Diagnostics& diagnostics) {
  if (const auto variable = variable_in_braces(text)) {
    const std::string name = text.substr(variable->at, variable->length);
    const auto at = text.begin() + static_cast<std::ptrdiff_t>(variable->at);
    return diagnostics.add(
        {origin, static_cast<int>(std::count(text.begin(), at, '\n')) + 1},
        "is not valid YAML: inside {...} and [...] a value with " + name + " needs quotes: \"" + name + "\"");
  }
  diagnostics.add({origin, error.mark.line + 1},
                  "is not valid YAML: " + error.msg + " (column " + std::to_string(error.mark.column + 1) + ")");
}

}  // namespace

const YamlNode* YamlNode::find(const std::string& key) const {
  for (const YamlEntry& e : entries)
    if (e.key == key) return &e.value;
  return nullptr;
}

YamlNode* YamlNode::find(const std::string& key) {
  for (YamlEntry& e : entries)
    if (e.key == key) return &e.value;
  return nullptr;
}

const SourcePlace& place_of_value(const YamlEntry& entry) {
  // The line of a value that has one, or another origin than its key: an option of the command line.
  const SourcePlace& value = entry.value.place;
  return value.line > 0 || value.origin != entry.place.origin ? value : entry.place;
}

std::string YamlNode::describe() const {
  switch (kind) {
    case YamlKind::kNull:
      return "nothing";
    case YamlKind::kMap:
      return shortened(flow_text(*this)) + " (a mapping)";
    case YamlKind::kSequence:
      return shortened(flow_text(*this)) + " (a list)";
    case YamlKind::kScalar:
      break;
  }
  return (quoted ? "\"" + text + "\"" : "'" + text + "'");
}

YamlNode parse_yaml(const std::string& text, const std::string& origin, Diagnostics& diagnostics) {
  TreeBuilder builder(origin, diagnostics);
  YamlNode empty;
  empty.kind = YamlKind::kMap;
  empty.place = {origin, 1};
  try {
    if (!parse_document(text, builder)) diagnostics.add({origin, 0}, "holds more than one YAML document; expected one");
  } catch (const YAML::Exception& e) {
    add_syntax_error(text, origin, e, diagnostics);
    return empty;
  }
  if (builder.overflow()) {
    diagnostics.add({origin, 0}, "its aliases expand to more than a million values");
    return empty;
  }
  YamlNode root = builder.take_root();
  if (root.kind == YamlKind::kNull) return empty;
  return root;
}

void apply_override(YamlNode& root, const std::string& option, Diagnostics& diagnostics) {
  const SourcePlace place{"--set " + option, 0};
  const size_t equals = option.find('=');
  const std::vector<std::string> path = split_path(option.substr(0, equals));
  const bool well_formed = equals != std::string::npos && !path.empty() &&
                           std::none_of(path.begin(), path.end(), [](const std::string& p) { return p.empty(); });
  if (!well_formed) {
    diagnostics.add(place, "expected --set KEY.KEY=VALUE, such as --set training.steps=100");
    return;
  }
  const std::string text = option.substr(equals + 1);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    const std::string key = option.substr(0, equals);
    diagnostics.add(place, "key '" + key + "': has no value; '" + key + "=null' removes it");
    return;
  }
  YamlNode value = parse_yaml(text, place.origin, diagnostics);
  set_places(value, place);
  YamlNode* node = &root;
  YamlNode* parent = nullptr;
  std::string walked;
  for (const std::string& part : path) {
    parent = node;
    node = descend(*node, part, place);
    if (!node) {
      diagnostics.add(place, "'" + walked + "' is " + parent->describe() + " and has no '" + part + "'");
      return;
    }
    walked += (walked.empty() ? "" : ".") + part;
  }
  const bool removed = value.kind == YamlKind::kNull || (text == "null" || text == "~");
  if (removed && parent->is_map()) {
    std::erase_if(parent->entries, [&](const YamlEntry& e) { return e.key == path.back(); });
    return;
  }
  *node = std::move(value);
  if (parent->is_map())
    for (YamlEntry& e : parent->entries)
      if (e.key == path.back()) e.place = place;
}

}  // namespace troupe
