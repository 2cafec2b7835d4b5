#include <ATen/TensorOperators.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "actors/checkpoint/model_io.h"
#include "tests/actors/checkpoint/tiny_folder.h"
#include "tests/actors/nn/tiny_model.h"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// One rank that trains on gradients made from the step's number.
struct Trainee {
  explicit Trainee(const ParameterStoreOptions& options) : store(tiny_model(), options), world(create_solo_world()) {
    initialise_random(store, 4);
    optimizer = create_group_optimizer(store, *world, {}, 1);
  }
  void step(int64_t number) {
    for (FlatBuffer& bucket : store.buffers()) {
      if (!bucket.trained) continue;
      bucket.gradients.copy_(bucket.weights).mul_(static_cast<double>(number)).add_(0.5);
    }
    optimizer->reduce_gradients();
    optimizer->update(number, {{"vision", 1e-2}, {"merger", 1e-2}, {"text", 1e-2}}, 1.0);
    optimizer->gather_weights();
  }
  at::Tensor weights() const { return const_cast<ParameterStore&>(store).buffers()[0].weights; }
  ParameterStore store;
  std::unique_ptr<World> world;
  std::unique_ptr<GroupOptimizer> optimizer;
};

struct Place {
  TinyFolder folder;
  std::string file = folder.other("checkpoint") + "/text-0.safetensors";
};

}  // namespace

TEST_CASE("a restored rank goes on bitwise as the one that was never stopped") {
  const Place place;
  ParameterStoreOptions options = store_options({"text"}, 2, 1, GENERATE(at::kFloat, at::kBFloat16));
  options.gradients_in_compute_dtype = options.compute_dtype == at::kBFloat16 && GENERATE(false, true);
  Trainee unbroken(options);
  unbroken.step(1);
  unbroken.step(2);
  REQUIRE(save_rank_state(unbroken.store, *unbroken.optimizer, place.file).ok());
  Trainee restored(options);
  REQUIRE(load_rank_state(restored.store, *restored.optimizer, place.file).ok());
  CHECK(restored.weights().equal(unbroken.weights()));
  unbroken.step(3);
  CHECK_FALSE(restored.weights().equal(unbroken.weights()));
  restored.step(3);
  CHECK(restored.weights().equal(unbroken.weights()));
}

TEST_CASE("frozen weights are not in the file") {
  const Place place;
  ParameterStoreOptions options = store_options({"vision", "merger"}, 1, 0);
  options.frozen = {"vision"};
  Trainee rank(options);
  REQUIRE(save_rank_state(rank.store, *rank.optimizer, place.file).ok());
  const auto file = SafetensorsFile::open(place.file).value();
  for (const TensorInfo& info : file->tensors()) CHECK(info.name.find("visual.merger.") != std::string::npos);
}

TEST_CASE("a file of another rank, dtype or component, or a cut one, is refused") {
  const Place place;
  Trainee saved(store_options({"text"}, 2, 0));
  REQUIRE(save_rank_state(saved.store, *saved.optimizer, place.file).ok());
  const auto refuses = [&](const ParameterStoreOptions& options) {
    Trainee other(options);
    const Status status = load_rank_state(other.store, *other.optimizer, place.file);
    return !status.ok() && status.error().message.find(place.file) != std::string::npos;
  };
  CHECK(refuses(store_options({"text"}, 2, 1)));
  CHECK(refuses(store_options({"text"}, 4, 0)));
  CHECK(refuses(store_options({"text"}, 2, 0, at::kBFloat16)));
  CHECK(refuses(store_options({"vision"}, 2, 0)));
  CHECK_FALSE(refuses(store_options({"text"}, 2, 0)));
  std::filesystem::resize_file(place.file, std::filesystem::file_size(place.file) - 8);
  CHECK(refuses(store_options({"text"}, 2, 0)));
}
