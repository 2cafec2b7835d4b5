#include "actors/host/checkpointing.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <future>

#include "actors/checkpoint/model_io.h"
#include "tests/actors/host/small_job.h"

using namespace troupe;
using namespace troupe::testing;

namespace {
struct Hosts {
  MemoryKvStore store;
  LocalControl first_control{small_assignment(0, {{0}, {1}}, 2), &store},
      second_control{small_assignment(1, {{0}, {1}}, 2), &store};
  std::unique_ptr<JobContext> first =
      small_job(first_control, small_spec(1), make_random_batch({1, 4, 4, 3}, small_config(), 1));
  std::unique_ptr<JobContext> second =
      small_job(second_control, small_spec(1), make_random_batch({1, 4, 4, 3}, small_config(), 1));
  /// Each host has `own` bytes to write and sees that much free.
  std::pair<Status, Status> agree(int64_t step, int64_t own, uint64_t first_free, uint64_t second_free) {
    auto other = std::async(std::launch::async, [&] { return agree_on_space(*second, step, own, second_free); });
    const Status mine = agree_on_space(*first, step, own, first_free);
    return {mine, other.get()};
  }
};
}  // namespace

TEST_CASE(
    "whether a checkpoint fits is decided alike on all hosts, from what all of them write and the leader sees free") {
  Hosts hosts;
  const auto [first, second] = hosts.agree(3, 4 << 20, 8 << 20, 0);
  CHECK(first.ok());
  CHECK(second.ok());
  const auto [no, neither] = hosts.agree(6, 4 << 20, (8 << 20) - 1, UINT64_MAX);
  REQUIRE_FALSE(no.ok());
  REQUIRE_FALSE(neither.ok());
  CHECK(no.error().code == ErrorCode::kResourceExhausted);
  CHECK(no.error().message == neither.error().message);
  CHECK(no.error().message.find("step 6 takes 8 MiB, but 8 MiB") != std::string::npos);
}

TEST_CASE("what a rank says it will write is what it writes") {
  LocalControl control(small_assignment(0, {{0}, {0}}, 1));
  const auto job = small_job(control, small_spec(1), make_random_batch({1, 4, 4, 3}, small_config(), 1));
  job->assignment.run_folder = (std::filesystem::temp_directory_path() / "troupe-checkpointing-test").string();
  auto boundary = Boundary::create(*job);
  REQUIRE(boundary.ok());
  std::vector<std::unique_ptr<Actor>> actors;
  actors.push_back(std::make_unique<TextActor>(*job, 1, 0, **boundary));
  REQUIRE(actors[0]->set_up().ok());
  const int64_t said = rank_state_bytes(actors[0]->store(), *actors[0]->optimizer());
  const std::string path = job->assignment.run_folder + "/text-0.safetensors";
  REQUIRE(save_rank_state(actors[0]->store(), *actors[0]->optimizer(), path).ok());
  const auto written = static_cast<int64_t>(std::filesystem::file_size(path));
  std::filesystem::remove_all(job->assignment.run_folder);
  CHECK(said > 0);
  CHECK(written > said);
  CHECK(written < said + 32 * 1024);  // the header
}
