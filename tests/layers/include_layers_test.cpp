#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

// The layers of docs/architecture.md, held against the includes of the tree.

namespace fs = std::filesystem;

namespace {

const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"base", {}},
    {"proto", {"base"}},
    {"transport", {"base", "proto"}},
    {"actors", {"base", "proto", "transport"}},
    {"worker", {"base", "proto"}},
    {"driver", {"base", "proto"}},
    {"client", {"base", "proto"}},
    {"cli", {"base", "proto", "driver", "worker", "client"}},
    {"examples", {"base", "proto", "client"}},
};

struct Confined {
  std::regex header;
  std::regex place;
  std::string what;
};

const std::vector<Confined>& confined() {
  static const std::vector<Confined> rules = {
      {std::regex("^yaml-cpp/"), std::regex("^base/config/"), "yaml-cpp"},
      {std::regex("^uc[pst]/"), std::regex("^transport/ucx/"), "UCX"},
      {std::regex("^archive(_entry)?\\.h$"), std::regex("^actors/sources/"), "libarchive"},
      {std::regex("^(arrow|parquet)/"), std::regex("^actors/parquet/"), "Arrow"},
      {std::regex("^lib(av[a-z]+|sw[a-z]+)/"), std::regex("^actors/video/ffmpeg/"), "FFmpeg"},
      {std::regex("^sqlite3\\.h$"), std::regex("^driver/journal/"), "SQLite"},
      {std::regex("^torch/torch\\.h$"), std::regex("^$"), "torch/torch.h"},
      {std::regex(".*c10d/ProcessGroup.*"), std::regex("^transport/world/"), "process groups"},
      {std::regex("^(ATen|c10|torch)/.*"), std::regex("^(actors|transport)/"), "LibTorch"},
      {std::regex("^grpcpp/.*"), std::regex("^(proto|actors|worker|driver|client|cli)/rpc/"), "gRPC"},
      {std::regex("^(cuda_runtime|cuda)\\.h$"), std::regex("^(actors/(kernels|optim)|transport)/"), "CUDA"},
  };
  return rules;
}

struct Include {
  std::string file, header;
  int line;
  bool quoted;
};

std::vector<Include> includes_of(const fs::path& root, const std::string& layer) {
  static const std::regex pattern("^\\s*#\\s*include\\s*([<\"])([^>\"]+)[>\"].*");
  std::vector<Include> found;
  for (const auto& entry : fs::recursive_directory_iterator(root / layer)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp" && extension != ".cu" && extension != ".cuh") continue;
    std::ifstream in(entry.path());
    std::string text;
    for (int line = 1; std::getline(in, text); ++line) {
      std::smatch match;
      if (std::regex_match(text, match, pattern))
        found.push_back({fs::relative(entry.path(), root).string(), match[2], line, match[1] == "\""});
    }
  }
  return found;
}

std::vector<std::string> complaints(const fs::path& root) {
  std::vector<std::string> found;
  for (const auto& [layer, allowed] : kMayInclude) {
    if (!fs::exists(root / layer)) continue;
    for (const Include& i : includes_of(root, layer)) {
      const std::string place = i.file + ":" + std::to_string(i.line) + " includes " + i.header;
      const std::string target = i.header.substr(0, i.header.find('/'));
      if (i.quoted && kMayInclude.contains(target) && target != layer && !allowed.contains(target))
        found.push_back(place + ": against the layers");
      for (const Confined& rule : confined())
        if (std::regex_match(i.header, std::regex(".*")) && std::regex_search(i.header, rule.header) &&
            !std::regex_search(i.file, rule.place))
          found.push_back(place + ": " + rule.what + " outside its folder");
    }
  }
  return found;
}

}  // namespace

TEST_CASE("no include goes against the layers, and third-party headers stay in their folders") {
  const auto found = complaints(TROUPE_SOURCE_DIR);
  for (const std::string& complaint : found) UNSCOPED_INFO(complaint);
  CHECK(found.empty());
}

TEST_CASE("the scan sees a back edge and a stray header") {
  const fs::path root = fs::temp_directory_path() / "troupe-include-layers-test";
  fs::remove_all(root);
  fs::create_directories(root / "base");
  fs::create_directories(root / "driver/plan");
  std::ofstream(root / "base/a.h") << "#include \"driver/plan/b.h\"\n#include <vector>\n";
  std::ofstream(root / "driver/plan/b.h") << "#  include <ATen/ATen.h>\n";
  const auto found = complaints(root);
  fs::remove_all(root);
  REQUIRE(found.size() == 2);
  CHECK(found[0].find("base/a.h:1") == 0);
  CHECK(found[1].find("LibTorch outside its folder") != std::string::npos);
}
