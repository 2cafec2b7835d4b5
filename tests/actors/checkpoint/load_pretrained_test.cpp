#include <ATen/TensorOperators.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "actors/checkpoint/model_io.h"
#include "actors/checkpoint/weight_slices.h"
#include "base/safetensors/model_folder.h"
#include "tests/actors/checkpoint/tiny_folder.h"

using namespace troupe;
using namespace troupe::testing;

namespace {

Status load_text(const TinyFolder& folder) {
  ParameterStore store(config_of(folder), store_options({"text"}, 1, 0));
  return load_pretrained(store, folder.path());
}

void check_refused(const TinyFolder& folder, const std::string& name) {
  const Status refused = load_text(folder);
  REQUIRE_FALSE(refused.ok());
  INFO(refused.error().to_string());
  CHECK(refused.error().message.find(name) != std::string::npos);
}

/// Private memory that this process has mapped, in bytes.
uint64_t private_bytes() {
  std::ifstream in("/proc/self/status");
  std::string word;
  while (in >> word)
    if (word == "VmData:") return in >> word ? std::stoull(word) * 1024 : 0;
  return 0;
}

}  // namespace

TEST_CASE("each tensor parallel rank gets exactly its slices and zero padding") {
  const TinyFolder folder;
  const ModelFolder weights = ModelFolder::open(folder.path()).value();
  for (const int tp : {1, 2, 3, 6}) {
    for (int rank = 0; rank < tp; ++rank) {
      ParameterStore store(config_of(folder), store_options({"text"}, tp, rank));
      store.buffers()[0].weights.zero_();
      REQUIRE(load_pretrained(store, folder.path()).ok());
      for (const LocalParameter& p : store.parameters()) {
        const FolderTensor* tensor = weights.find(p.decl.name);
        const at::Tensor whole = checkpoint::mapped_tensor(*tensor->file, *tensor->info);
        const int64_t held = p.slice.end - p.slice.begin;
        INFO(p.decl.name << " on rank " << rank << " of " << tp);
        CHECK(p.weight.narrow(p.slice.dim, 0, held).equal(whole.narrow(p.slice.dim, p.slice.begin, held)));
        CHECK_FALSE(p.weight.narrow(p.slice.dim, held, p.slice.padding).any().item<bool>());
      }
    }
  }
}

TEST_CASE("half and bf16 files are converted to the compute dtype") {
  for (const FileDType dtype : {FileDType::kF16, FileDType::kBf16}) {
    TinyFolderOptions options;
    options.dtype = dtype;
    const TinyFolder folder(options);
    const ModelFolder weights = ModelFolder::open(folder.path()).value();
    for (const at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
      ParameterStore store(config_of(folder), store_options({"vision", "merger"}, 1, 0, compute));
      REQUIRE(load_pretrained(store, folder.path()).ok());
      for (const LocalParameter& p : store.parameters()) {
        const FolderTensor* tensor = weights.find(p.decl.name);
        CHECK(p.weight.equal(checkpoint::mapped_tensor(*tensor->file, *tensor->info).to(compute)));
      }
    }
  }
}

TEST_CASE("masters keep what the file holds beyond bf16, on every rank and in every cut") {
  const TinyFolder folder;
  const ModelFolder weights = ModelFolder::open(folder.path()).value();
  const auto world = create_solo_world();
  for (int rank = 0; rank < 3; ++rank) {
    ParameterStore store(config_of(folder), store_options({"text"}, 3, rank, at::kBFloat16));
    const auto optimizer = create_group_optimizer(store, *world, {}, 0);
    REQUIRE(load_pretrained(store, folder.path(), optimizer.get()).ok());
    for (const OptimizerPiece& piece : optimizer->pieces()) {
      const LocalParameter& p = store.at(piece.name);
      const FolderTensor* tensor = weights.find(piece.name);
      const int64_t held = p.slice.end - p.slice.begin;
      const at::Tensor master = piece.master.view(p.weight.sizes());
      INFO(piece.name);
      CHECK(
          master.narrow(p.slice.dim, 0, held)
              .equal(checkpoint::mapped_tensor(*tensor->file, *tensor->info).narrow(p.slice.dim, p.slice.begin, held)));
      CHECK_FALSE(master.narrow(p.slice.dim, held, p.slice.padding).any().item<bool>());
      CHECK(p.weight.equal(master.to(at::kBFloat16)));
    }
  }
}

TEST_CASE("missing, unexpected and misshapen tensors are refused by name, in another group's component too") {
  TinyFolderOptions options;
  SECTION("missing") { options.leave_out = "visual.merger.mlp.2.bias"; }
  SECTION("unexpected") { options.extra = "model.layers.0.self_attn.q_norm.weight"; }
  SECTION("misshapen") {
    options.change = [](TensorInfo& info) {
      if (info.name == "model.layers.1.mlp.up_proj.weight") info.shape = {24, 31};
    };
  }
  const std::string name = !options.leave_out.empty() ? options.leave_out
                           : !options.extra.empty()   ? options.extra
                                                      : "model.layers.1.mlp.up_proj.weight";
  check_refused(TinyFolder(options), name);
}

TEST_CASE("a truncated file and a folder without weights are refused by path") {
  const TinyFolder folder;
  const std::string file = folder.path() + "/model.safetensors";
  SECTION("truncated") {
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 5);
    check_refused(folder, file);
  }
  SECTION("none") {
    std::filesystem::remove(file);
    check_refused(folder, folder.path());
  }
}

TEST_CASE("a load needs less than a fifth of its share in memory beside the weights") {
  TinyFolderOptions options;
  options.vocabulary = 200'000;
  const TinyFolder folder(options);
  const TinyFolder warm_up;  // threads and pools exist before anything is measured
  REQUIRE(load_text(warm_up).ok());
  for (const int tp : {1, 2}) {
    ParameterStore store(config_of(folder), store_options({"text"}, tp, 0, at::kBFloat16));
    const uint64_t share = store.buffers()[0].weights.nbytes();
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_DATA, &before) == 0);
    rlimit tight = before;
    tight.rlim_cur = private_bytes() + share / 5;
    REQUIRE(setrlimit(RLIMIT_DATA, &tight) == 0);
    const Status loaded = load_pretrained(store, folder.path());
    REQUIRE(setrlimit(RLIMIT_DATA, &before) == 0);
    INFO("share of " << share << " bytes" << (loaded.ok() ? "" : ": " + loaded.error().to_string()));
    CHECK(loaded.ok());
  }
}
