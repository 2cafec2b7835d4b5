#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "actors/optim/optimizer.h"
#include "tests/actors/nn/tiny_model.h"
#include "transport/world/posted_line.h"

// Collectives of buckets go on beside the passes: shown with a world of two ranks whose other rank is a stand-in that
// answers when a test lets it.

using namespace troupe;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

const std::map<std::string, double> kRates = {{"text", 1e-2}, {"vision", 2e-3}, {"merger", 5e-3}};

/// Collectives of a pair of ranks that hold the same; each call asks `answer` first.
class PairCommunicator final : public Communicator {
 public:
  explicit PairCommunicator(std::function<void()> answer) : answer_(std::move(answer)) {}
  int size() const override { return 2; }
  int rank() const override { return 0; }
  void reduce_scatter_sum(at::Tensor& out, const at::Tensor& in) override {
    answer_();
    out.copy_(in.narrow(0, 0, out.numel())).mul_(2);
  }
  void all_reduce_sum(at::Tensor& tensor) override {
    answer_();
    tensor.mul_(2);
  }
  void all_gather(at::Tensor& out, const at::Tensor& in) override {
    answer_();
    out.narrow(0, in.numel(), in.numel()).copy_(in);
  }
  void all_reduce_max(at::Tensor&) override { refuse(); }
  void all_gather_rows(at::Tensor&, const at::Tensor&, const std::vector<int64_t>&) override { refuse(); }
  void reduce_scatter_rows_sum(at::Tensor&, const at::Tensor&, const std::vector<int64_t>&) override { refuse(); }
  void all_to_all_rows(at::Tensor&, const at::Tensor&, const std::vector<int64_t>&,
                       const std::vector<int64_t>&) override {
    refuse();
  }
  void broadcast(at::Tensor&, int) override { refuse(); }

 private:
  static void refuse() { throw ErrorException(internal_error("no bucket needs this collective")); }
  std::function<void()> answer_;
};

class PairWorld final : public World {
 public:
  explicit PairWorld(std::function<void()> answer) : communicator_(std::move(answer)) { mesh_.set(Axis::kDp, 2); }
  const Mesh& mesh() const override { return mesh_; }
  int rank() const override { return 0; }
  Communicator& over(AxisSet) override { throw ErrorException(internal_error("buckets are moved on the second line")); }
  Communicator& posted_over(AxisSet) override { return communicator_; }
  int64_t post(std::function<void()> work) override { return line_.post(std::move(work)); }
  void wait_posted(int64_t number) override { line_.wait(number); }
  void abort() override {}

 private:
  Mesh mesh_;
  PairCommunicator communicator_;
  PostedLine line_;  // last: its thread uses the rest
};

/// Lets collectives through one by one.
class Turnstile {
 public:
  void let(int more) {
    const std::lock_guard lock(mutex_);
    allowed_ += more;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, 30s, [&] { return passed_ < allowed_; }))
      throw ErrorException(deadline_exceeded("a collective was never let through: somebody waits for it too early"));
    ++passed_;
    changed_.notify_all();
  }
  int passed() {
    const std::lock_guard lock(mutex_);
    return passed_;
  }
  void wait_until_passed(int count) {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, 30s, [&] { return passed_ >= count; }));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int allowed_ = 0, passed_ = 0;
};

ModelConfig deep_model() {
  ModelConfig config = testing::tiny_model();
  config.text.layers = 8;
  return config;
}

struct Rank {
  explicit Rank(const std::function<void()>& answer, int zero = 1, int64_t most_bucket_elements = 6000)
      : world(answer),
        store(deep_model(), options()),
        optimizer(create_group_optimizer(store, world, {}, zero, most_bucket_elements)) {}
  static ParameterStoreOptions options() {
    ParameterStoreOptions o;
    o.components = {"text"};
    o.pad_to = 2;
    return o;
  }
  static std::string layer(int i) { return "model.layers." + std::to_string(i); }
  /// As a decoder's backward pass: calls `work` for each layer, then says that it is done with it.
  void backward(const std::function<void()>& work) {
    for (int i = 7; i >= 0; --i) {
      work();
      store.gradients_final_from(store.index_of(layer(i) + ".self_attn.q_proj.weight"));
    }
  }
  void last_backward(const std::function<void()>& work) {
    optimizer->reduce_when_final(true);
    backward(work);
    optimizer->reduce_when_final(false);
  }
  /// As a forward pass.
  void forward(const std::function<void()>& work) {
    for (int i = 0; i < 8; ++i) {
      store.about_to_use(store.index_of(i < 7 ? layer(i + 1) + ".input_layernorm.weight" : "model.norm.weight"));
      work();
    }
    store.about_to_use(static_cast<int>(store.parameters().size()) - 1);
  }
  void update_and_gather() {
    for (int bucket = optimizer->bucket_count() - 1; bucket >= 0; --bucket) {
      optimizer->update_bucket(bucket, {1, kRates, 1.0});
      optimizer->post_gather(bucket);
    }
  }

  PairWorld world;
  ParameterStore store;
  std::unique_ptr<GroupOptimizer> optimizer;
};

/// Computing, for so long.
void work_for(std::chrono::milliseconds time) {
  for (const auto end = Clock::now() + time; Clock::now() < end;) std::this_thread::yield();
}

double seconds_of(const std::function<void()>& run) {
  const auto begin = Clock::now();
  run();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

TEST_CASE("a bucket is reduced while the backward pass of earlier layers goes on") {
  for (const int zero : {0, 1}) {
    Turnstile gate;
    Rank rank([&] { gate.pass(); }, zero);
    REQUIRE(rank.optimizer->bucket_count() >= 4);
    int layers = 0;
    rank.last_backward([&] {
      // Behind two layers the first buckets are on their way: they end now, with six layers still to come.
      if (++layers != 3) return;
      gate.let(1);
      gate.wait_until_passed(1);
    });
    CHECK(layers == 8);
    gate.let(1000);
    rank.optimizer->post_reduce(rank.optimizer->bucket_count() - 1);
    rank.optimizer->wait_reduced();
    CHECK(gate.passed() == rank.optimizer->bucket_count());
  }
}

TEST_CASE("no bucket is posted by a backward pass that is not the last") {
  Turnstile gate;
  gate.let(1000);
  Rank rank([&] { gate.pass(); });
  rank.backward([] {});
  rank.optimizer->wait_reduced();
  CHECK(gate.passed() == 0);
  rank.optimizer->reduce_gradients();  // a rank whose last pass was empty posts them all
  CHECK(gate.passed() == rank.optimizer->bucket_count());
  rank.optimizer->reduce_gradients();  // and in the next step again
  CHECK(gate.passed() == 2 * rank.optimizer->bucket_count());
}

TEST_CASE("buckets are posted in one order and each with its own sums, however far the pass has told") {
  const auto reduced = [](const std::function<void(Rank&)>& post) {
    Rank rank([] {});
    for (LocalParameter& p : rank.store.parameters()) p.gradient.fill_(static_cast<double>(p.offset % 97));
    post(rank);
    rank.optimizer->post_reduce(rank.optimizer->bucket_count() - 1);
    rank.optimizer->wait_reduced();
    return rank.optimizer->norm_part().squared;
  };
  const double all = reduced([](Rank&) {});
  CHECK(all > 0);
  CHECK(reduced([](Rank& rank) { rank.last_backward([] {}); }) == all);
  CHECK(reduced([](Rank& rank) {
          rank.optimizer->reduce_when_final(true);
          rank.store.gradients_final_from(rank.store.index_of("model.layers.5.self_attn.q_proj.weight"));
          rank.optimizer->reduce_when_final(false);
        }) == all);
}

TEST_CASE("a forward pass waits for the weights of the layer that it comes to, and for no others") {
  Turnstile gate;
  Rank rank([&] { gate.pass(); });
  gate.let(rank.optimizer->bucket_count());
  rank.optimizer->reduce_gradients();
  const int reduced = gate.passed(), buckets = rank.optimizer->bucket_count();
  rank.update_and_gather();  // returns though no gather can end
  CHECK(gate.passed() == reduced);
  gate.let(2);
  int layers = 0;
  rank.forward([&] {
    // The embedding and the first layer have come; the others are let through once the pass has used them.
    if (++layers == 1) {
      gate.wait_until_passed(reduced + 2);
      gate.let(buckets - 2);
    }
  });
  CHECK(layers == 8);
  CHECK(gate.passed() == reduced + buckets);
}

TEST_CASE("an optimizer may end while its collectives are under way") {
  Turnstile gate;
  Rank rank([&] { gate.pass(); });
  rank.last_backward([] {});
  rank.optimizer.reset();
  gate.let(1000);
}

TEST_CASE("with slow collectives a step takes about the longer of computing and communicating, not their sum") {
  // 8 layers of 20 ms backward and 10 ms forward; a collective of 10 ms for each bucket.
  Rank rank([] { std::this_thread::sleep_for(10ms); }, 1, 2000);  // the stand-in for a slow network
  const int buckets = rank.optimizer->bucket_count();
  const auto backward = [] { work_for(20ms); };
  const auto forward = [] { work_for(10ms); };
  const double apart = seconds_of([&] {
    rank.backward(backward);
    rank.optimizer->reduce_gradients();
    rank.update_and_gather();
    rank.optimizer->wait_gathered();
    rank.forward(forward);
  });
  const double beside = seconds_of([&] {
    rank.last_backward(backward);
    rank.optimizer->post_reduce(buckets - 1);
    rank.optimizer->wait_reduced();
    rank.update_and_gather();
    rank.forward(forward);
  });
  const double computing = 8 * 0.03, communicating = 2 * 0.01 * buckets;
  INFO(buckets << " buckets: apart " << apart << " s, beside " << beside << " s");
  CHECK(apart >= computing + communicating);
  CHECK(beside < 0.8 * apart);
  CHECK(beside >= std::max(computing, communicating));
}
