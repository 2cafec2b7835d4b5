#include "base/config/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cctype>
#include <sstream>

extern char** environ;

namespace troupe {
namespace {

constexpr size_t kMaxNodes = 1'000'000;
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

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::string expand_text(const std::string& text, const Environment& environment, const SourcePlace& place,
                        Diagnostics& diagnostics) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, 3, "$${") == 0) {
      out += "${";
      i += 3;
      continue;
    }
    if (text.compare(i, 2, "${") != 0) {
      out += text[i++];
      continue;
    }
    const size_t end = text.find('}', i);
    const std::string name = end == std::string::npos ? "" : text.substr(i + 2, end - i - 2);
    if (name.empty() || !std::all_of(name.begin(), name.end(), is_name_character)) {
      diagnostics.add(
          place,
          "value '" + text +
              "': '${' must be followed by a variable's name and '}' (write '$${' for the characters themselves)");
      return text;
    }
    const auto it = environment.find(name);
    if (it == environment.end()) {
      diagnostics.add(place, "value '" + text + "': the environment variable " + name + " is not set");
      return text;
    }
    out += it->second;
    i = end + 1;
  }
  return out;
}

}  // namespace

Environment process_environment() {
  Environment out;
  for (char** e = environ; e && *e; ++e) {
    const std::string pair = *e;
    const size_t at = pair.find('=');
    if (at != std::string::npos) out[pair.substr(0, at)] = pair.substr(at + 1);
  }
  return out;
}

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

std::string YamlNode::describe() const {
  switch (kind) {
    case YamlKind::kNull:
      return "nothing";
    case YamlKind::kMap:
      return "a mapping";
    case YamlKind::kSequence:
      return "a list";
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
    diagnostics.add({origin, e.mark.line + 1},
                    "is not valid YAML: " + e.msg + " (column " + std::to_string(e.mark.column + 1) + ")");
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

void expand_variables(YamlNode& node, const Environment& environment, Diagnostics& diagnostics) {
  if (node.kind == YamlKind::kScalar && node.text.find("${") != std::string::npos) {
    if (node.text.compare(0, 2, "${") == 0 && node.text.find('}') == node.text.size() - 1) node.quoted = false;
    node.text = expand_text(node.text, environment, node.place, diagnostics);
  }
  for (YamlEntry& e : node.entries) expand_variables(e.value, environment, diagnostics);
  for (YamlNode& i : node.items) expand_variables(i, environment, diagnostics);
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
