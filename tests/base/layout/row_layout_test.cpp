#include "base/layout/row_layout.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <random>

#include "base/mesh/mesh.h"

using namespace troupe;

namespace {

using Random = std::mt19937_64;

int64_t pick(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

std::vector<int64_t> iota_rows(int64_t begin, int64_t end) {
  std::vector<int64_t> rows(static_cast<size_t>(end - begin));
  std::iota(rows.begin(), rows.end(), begin);
  return rows;
}

/// Window order: reading order cut into runs that are shuffled, as the encoder's window permutation does to merged
/// rows.
std::vector<int64_t> window_order(Random& random, int64_t total) {
  std::vector<std::vector<int64_t>> windows;
  for (int64_t begin = 0; begin < total;) {
    const int64_t end = std::min(total, begin + pick(random, 1, 16));
    windows.push_back(iota_rows(begin, end));
    begin = end;
  }
  std::shuffle(windows.begin(), windows.end(), random);
  std::vector<int64_t> rows;
  for (const auto& window : windows) rows.insert(rows.end(), window.begin(), window.end());
  return rows;
}

/// Balanced: sizes differ by at most one. Otherwise at random places, many ranks empty.
RowLayout cut(Random& random, const std::vector<int64_t>& rows, int ranks, bool balanced) {
  if (balanced) return stripe_layout(rows, ranks);
  std::vector<int64_t> borders{0, static_cast<int64_t>(rows.size())};
  for (int i = 1; i < ranks; ++i) borders.push_back(pick(random, 0, static_cast<int64_t>(rows.size())));
  std::sort(borders.begin(), borders.end());
  RowLayout layout;
  for (size_t i = 0; i + 1 < borders.size(); ++i)
    layout.ranks.push_back({{rows.begin() + borders[i], rows.begin() + borders[i + 1]}});
  return layout;
}

/// The smaller cases are many, the larger few.
int64_t random_total(Random& random, int trial) {
  if (trial % 500 == 0) return pick(random, 50000, 100000);
  return trial % 20 == 0 ? pick(random, 0, 5000) : pick(random, 0, 300);
}

/// Values of a layout's rows: buffers[rank][local] = 1000 + row.
std::vector<std::vector<int64_t>> tagged(const RowLayout& layout) {
  std::vector<std::vector<int64_t>> buffers;
  for (const auto& rank : layout.ranks) {
    buffers.emplace_back();
    for (const int64_t row : rank.rows) buffers.back().push_back(1000 + row);
  }
  return buffers;
}

std::vector<std::vector<int64_t>> empty_like(const RowLayout& layout) {
  std::vector<std::vector<int64_t>> buffers;
  for (const auto& rank : layout.ranks) buffers.emplace_back(rank.rows.size(), -1);
  return buffers;
}

/// Carries a piece out; false when it writes a row a second time or an index is out of range.
bool deliver(const ReshardPiece& piece, const std::vector<std::vector<int64_t>>& from,
             std::vector<std::vector<int64_t>>& to) {
  const auto& source = from[static_cast<size_t>(piece.producer)];
  auto& target = to[static_cast<size_t>(piece.consumer)];
  if (piece.source.size() != piece.target.size() || !std::is_sorted(piece.target.begin(), piece.target.end()))
    return false;
  for (size_t i = 0; i < piece.source.size(); ++i) {
    const auto s = static_cast<size_t>(piece.source[i]), t = static_cast<size_t>(piece.target[i]);
    if (s >= source.size() || t >= target.size() || target[t] != -1) return false;
    target[t] = source[s];
  }
  return true;
}

/// What one random pair must fulfil; the name of what it does not, or "".
std::string violated(const RowLayout& producer, const RowLayout& consumer, const ReshardPlan& plan, int64_t total,
                     bool balanced) {
  auto forward = empty_like(consumer);
  const auto produced = tagged(producer);
  std::map<int, int64_t> sent, received;
  int64_t moved = 0;
  for (size_t i = 0; i < plan.pieces.size(); ++i) {
    const auto& piece = plan.pieces[i];
    if (piece.source.empty()) return "an empty piece";
    if (i > 0 && std::pair(plan.pieces[i - 1].producer, plan.pieces[i - 1].consumer) >=
                     std::pair(piece.producer, piece.consumer))
      return "order";
    if (!deliver(piece, produced, forward)) return "a row delivered twice or out of order";
    const auto rows = static_cast<int64_t>(piece.source.size());
    moved += rows;
    sent[piece.producer] += rows;
    received[piece.consumer] += rows;
  }
  if (forward != tagged(consumer)) return "a row missing or in the wrong place";
  if (moved != total) return "rows moved differ from 1.0 x T";
  if (balanced) {
    const auto producers = static_cast<int64_t>(producer.ranks.size()),
               consumers = static_cast<int64_t>(consumer.ranks.size());
    for (const auto& [rank, rows] : sent) {
      if (rows > total / producers + 1) return "a producer above its fair share";
    }
    for (const auto& [rank, rows] : received) {
      if (rows > total / consumers + 1) return "a consumer above its fair share";
    }
  }
  auto backward = empty_like(producer);
  for (const auto& piece : plan.pieces) {
    const ReshardPiece mirror = reversed(piece);
    if (!deliver(mirror, forward, backward)) return "the mirror delivers twice or out of order";
    const ReshardPiece again = reversed(mirror);
    if (again.source != piece.source || again.target != piece.target || again.producer != piece.producer)
      return "the mirror's mirror";
  }
  if (backward != produced) return "rows that do not come back";
  return "";
}

}  // namespace

TEST_CASE("any pair of layouts: every row delivered once, 1.0 x T moved, fair shares, backward the exact mirror") {
  Random random(20260601);
  for (int trial = 0; trial < 10000; ++trial) {
    const int64_t total = random_total(random, trial);
    const bool balanced = trial % 2 == 0;
    const auto producer = cut(random, window_order(random, total), static_cast<int>(pick(random, 1, 16)), balanced);
    const auto consumer = cut(random, iota_rows(0, total), static_cast<int>(pick(random, 1, 16)), balanced);
    const auto plan = plan_reshard(producer, consumer);
    INFO("trial " << trial << ", " << total << " rows, " << producer.ranks.size() << " -> " << consumer.ranks.size());
    REQUIRE(plan.ok());
    REQUIRE(violated(producer, consumer, *plan, total, balanced) == "");
  }
}

TEST_CASE("only rows that both layouts hold are moved") {
  const RowLayout producer{0, {{{4, 1}}, {{2}}}}, consumer{0, {{{2, 9}}, {{1}}}};
  const auto plan = plan_reshard(producer, consumer).value();
  REQUIRE(plan.pieces.size() == 2);
  CHECK((plan.pieces[0].producer == 0 && plan.pieces[0].consumer == 1));
  CHECK(plan.pieces[0].source == std::vector<int64_t>{1});
  CHECK(plan.pieces[0].target == std::vector<int64_t>{0});
  CHECK((plan.pieces[1].producer == 1 && plan.pieces[1].consumer == 0));
  CHECK(plan.of_consumer(0) == std::vector<const ReshardPiece*>{&plan.pieces[1]});
  CHECK(plan.of_producer(0) == std::vector<const ReshardPiece*>{&plan.pieces[0]});
  CHECK(plan.of_producer(5).empty());
}

TEST_CASE("a row with two holders is refused with the row, the side and the ranks") {
  const RowLayout good{0, {{{0, 1, 2}}}}, twice{0, {{{0}}, {{1, 2}}, {{2}}}};
  const auto message = plan_reshard(good, twice).error().message;
  CHECK(message.find("row 2") != std::string::npos);
  CHECK(message.find("consumer") != std::string::npos);
  CHECK(message.find("ranks 1 and 2") != std::string::npos);
  CHECK(plan_reshard(twice, good).error().message.find("producer") != std::string::npos);
}

TEST_CASE("no rows and no ranks are plans of nothing") {
  CHECK(plan_reshard({0, {{}, {}}}, {0, {{}}}).value().pieces.empty());
  CHECK(plan_reshard({}, {}).value().pieces.empty());
}

TEST_CASE("stripes of a replicated consumer are contiguous, in order and differ by at most one row") {
  const auto layout = stripe_layout({7, 5, 6, 9, 8}, 3);
  REQUIRE(layout.ranks.size() == 3);
  CHECK(layout.ranks[0].rows == std::vector<int64_t>{7, 5});
  CHECK(layout.ranks[1].rows == std::vector<int64_t>{6, 9});
  CHECK(layout.ranks[2].rows == std::vector<int64_t>{8});
  CHECK(stripe_layout({}, 2).ranks.size() == 2);
  CHECK(stripe_layout({3}, 2).total_rows() == 1);
}
