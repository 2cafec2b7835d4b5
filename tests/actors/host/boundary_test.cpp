#include "actors/host/boundary.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <catch2/catch.hpp>
#include <future>
#include <mutex>
#include <thread>

#include "tests/actors/host/small_job.h"

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr int64_t kWidth = 24;
constexpr std::chrono::seconds kPatience{30};

/// Rows whose every element is the row's id, so that a row that lands in the wrong place shows.
at::Tensor tagged(const std::vector<int64_t>& ids, float offset) {
  at::Tensor rows = at::empty({static_cast<int64_t>(ids.size()), kWidth}, at::kFloat);
  for (size_t i = 0; i < ids.size(); ++i)
    rows.narrow(0, static_cast<int64_t>(i), 1).fill_(static_cast<float>(ids[i]) + offset);
  return rows;
}

struct Layout {
  std::string name;
  int vdp, sp, tdp, tp;
  bool sequence;
  std::vector<std::vector<int>> group_slots;
  int slots;
  int grid_h = 6, grid_w = 10;  // patches; a merged grid of 3 x 5: windows that fill no rank count evenly
};

struct Faults {
  std::mutex mutex;
  std::vector<std::string> list;
  void add(const std::string& fault) {
    const std::lock_guard lock(mutex);
    list.push_back(fault);
  }
};

struct Moved {
  std::mutex mutex;
  int64_t wire = 0, local = 0;
  uint64_t copied_bytes = 0;
};

/// What one slot does: every actor on it sends its rows, receives its rows, and sends gradients back.
void run_slot(const Layout& layout, int self, KvStore& store, Faults& faults, Moved& moved) {
  const auto check = [&](const Status& s) {
    if (!s.ok()) faults.add("slot " + std::to_string(self) + ": " + s.error().to_string());
    return s.ok();
  };
  LocalControl control(small_assignment(self, layout.group_slots, layout.slots), &store);
  BatchShape shape;
  shape.images = 6;
  shape.grid_h = layout.grid_h;
  shape.grid_w = layout.grid_w;
  shape.text = 5;
  JobSpec spec = small_spec(6);
  spec.groups[0].mesh.set(Axis::kDp, layout.vdp).set(Axis::kSp, layout.sp);
  spec.groups[1].mesh.set(Axis::kDp, layout.tdp).set(Axis::kTp, layout.tp);
  spec.groups[1].tp_sequence = layout.sequence;
  const auto job = small_job(control, spec, make_random_batch(shape, small_config(), 3));
  auto made = Boundary::create(*job);
  if (!check(made.status())) return;
  Boundary& boundary = **made;
  BatchPlanner planner(job->data->index(), job->training_samples, batch_plan_options(job->spec, job->config.vision, 6));
  const StepPlan plan = planner.plan(1);
  boundary.begin_step(plan, job->data->index(), false);
  const auto ranks_here = [&](size_t group) {
    std::vector<int> ranks;
    for (size_t r = 0; r < layout.group_slots[group].size(); ++r)
      if (layout.group_slots[group][r] == self) ranks.push_back(static_cast<int>(r));
    return ranks;
  };
  const auto feeds = plan.feeds();
  for (int rank : ranks_here(0))
    for (int u = 0; u < plan.vision_units(); ++u)
      for (int m : feeds[static_cast<size_t>(u)]) {
        const RowLayout rows = producer_layout(job->config.vision, plan, u, job->group(0).mesh);
        if (!check(boundary.send({u, m, false}, rank, tagged(rows.ranks[static_cast<size_t>(rank)].rows, 0)))) return;
      }
  for (int rank : ranks_here(1))
    for (int m = 0; m < plan.text_units(); ++m) {
      const RowLayout wanted = consumer_layout(plan, job->data->index(), 2, m, job->group(1).mesh, layout.sequence);
      at::Tensor rows = at::full({boundary.consumer_row_count(rank, m), kWidth}, -1.0, at::kFloat);
      for (int u = 0; u < plan.vision_units(); ++u)
        if (std::binary_search(feeds[static_cast<size_t>(u)].begin(), feeds[static_cast<size_t>(u)].end(), m))
          if (!check(boundary.receive({u, m, false}, rank, rows))) return;
      if (!rows.equal(tagged(wanted.ranks[static_cast<size_t>(rank)].rows, 0)))
        faults.add("wrong rows at text rank " + std::to_string(rank));
      for (int u = 0; u < plan.vision_units(); ++u)
        if (!check(boundary.send({u, m, true}, rank, tagged(wanted.ranks[static_cast<size_t>(rank)].rows, 0.5F))))
          return;
    }
  for (int rank : ranks_here(0))
    for (int u = 0; u < plan.vision_units(); ++u) {
      const RowLayout rows = producer_layout(job->config.vision, plan, u, job->group(0).mesh);
      const auto& mine = rows.ranks[static_cast<size_t>(rank)].rows;
      at::Tensor gradient = at::full({static_cast<int64_t>(mine.size()), kWidth}, -1.0, at::kFloat);
      for (int m : feeds[static_cast<size_t>(u)])
        if (!check(boundary.receive({u, m, true}, rank, gradient))) return;
      if (!gradient.equal(tagged(mine, 0.5F))) faults.add("wrong gradients at vision rank " + std::to_string(rank));
    }
  if (!check(boundary.close(kPatience))) return;
  const BoundaryCounters counters = boundary.take_counters();
  const std::lock_guard lock(moved.mutex);
  moved.wire += counters.wire_rows;
  moved.local += counters.in_process_rows;
  moved.copied_bytes += boundary.copied_bytes();
}

}  // namespace

TEST_CASE("integer-tagged rows and gradients reach their places for every pair of layouts, and each row moves once") {
  const std::vector<Layout> layouts = {
      {"colocated 1:1", 1, 1, 1, 1, false, {{0}, {0}}, 1},
      {"colocated 2:2", 1, 2, 1, 2, false, {{0, 1}, {0, 1}}, 2},
      {"disjoint 3:2", 1, 3, 1, 2, false, {{0, 1, 2}, {3, 4}}, 5},
      {"disjoint 3:2, large", 1, 3, 1, 2, false, {{0, 1, 2}, {3, 4}}, 5, 54, 90},
      {"disjoint 1:4 sequence", 1, 1, 1, 4, true, {{0}, {1, 2, 3, 4}}, 5},
      {"partial overlap, lanes", 2, 2, 2, 1, false, {{0, 1, 2, 3}, {3, 4}}, 5},
  };
  for (const Layout& layout : layouts) {
    MemoryKvStore store;
    Faults faults;
    Moved moved;
    std::vector<std::thread> slots;
    for (int s = 0; s < layout.slots; ++s) slots.emplace_back([&, s] { run_slot(layout, s, store, faults, moved); });
    for (std::thread& t : slots) t.join();
    INFO(layout.name);
    for (const std::string& fault : faults.list) UNSCOPED_INFO(fault);
    CHECK(faults.list.empty());
    CHECK(moved.wire + moved.local == 6 * layout.grid_h / 2 * layout.grid_w / 2);
    if (layout.slots == 1) CHECK(moved.wire == 0);
    if (layout.name.starts_with("disjoint")) CHECK(moved.local == 0);
    if (layout.grid_h > 6) CHECK(moved.copied_bytes == 0);  // packed where the receiver reads them
  }
}

TEST_CASE("numbers of one group reach every rank of another") {
  MemoryKvStore store;
  std::vector<std::vector<double>> got(3);
  std::vector<std::thread> slots;
  for (int s = 0; s < 3; ++s)
    slots.emplace_back([&, s] {
      LocalControl control(small_assignment(s, {{0, 1}, {2}}, 3), &store);
      JobSpec spec = small_spec(1);
      spec.groups[0].mesh.set(Axis::kSp, 2);
      const auto job = small_job(control, spec, make_random_batch({1, 4, 4, 3}, small_config(), 1));
      auto boundary = Boundary::create(*job);
      if (!boundary.ok()) return;
      BatchPlanner planner(job->data->index(), job->training_samples,
                           batch_plan_options(job->spec, job->config.vision, 1));
      const StepPlan plan = planner.plan(1);
      (*boundary)->begin_step(plan, job->data->index(), false);
      const int group = s < 2 ? 0 : 1, rank = s < 2 ? s : 0;
      const Status sent = (*boundary)->send_numbers(group, rank, 1 - group, {10.0 + group, 0.25});
      auto numbers = (*boundary)->receive_numbers(1 - group, group, rank, 2);
      const Status closed = (*boundary)->close(kPatience);
      if (sent.ok() && numbers.ok() && closed.ok()) got[static_cast<size_t>(s)] = *numbers;
    });
  for (std::thread& t : slots) t.join();
  CHECK(got[0] == std::vector<double>{11.0, 0.25});
  CHECK(got[1] == std::vector<double>{11.0, 0.25});
  CHECK(got[2] == std::vector<double>{10.0, 0.25});
}

TEST_CASE("a boundary closes when every host has come to its end, and says so when one does not") {
  MemoryKvStore store;
  const auto open = [&](LocalControl& control, std::unique_ptr<JobContext>& job) {
    job = small_job(control, small_spec(1), make_random_batch({1, 4, 4, 3}, small_config(), 1));
    return Boundary::create(*job);
  };
  LocalControl first_control(small_assignment(0, {{0}, {1}}, 2), &store),
      second_control(small_assignment(1, {{0}, {1}}, 2), &store);
  std::unique_ptr<JobContext> first_job, second_job;
  auto second_made = std::async(std::launch::async, [&] { return open(second_control, second_job); });
  auto first = open(first_control, first_job);
  auto second = second_made.get();
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  const Status alone = (*first)->close(std::chrono::milliseconds(50));
  REQUIRE_FALSE(alone.ok());
  CHECK(alone.error().code == ErrorCode::kDeadlineExceeded);
  CHECK(alone.error().message.find("1 of 2 hosts") != std::string::npos);
  CHECK((*second)->close(kPatience).ok());
}
