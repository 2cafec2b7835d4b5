#include "base/layout/row_layout.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/mesh/mesh.h"

namespace troupe {
namespace {

/// Where a row lies in a layout.
struct Place {
  int64_t row, local;
  int rank;
};

/// All places of a layout by ascending row; an error when a row has two.
Result<std::vector<Place>> places_of(const RowLayout& layout, const char* side) {
  std::vector<Place> places;
  places.reserve(static_cast<size_t>(layout.total_rows()));
  for (size_t rank = 0; rank < layout.ranks.size(); ++rank) {
    const auto& rows = layout.ranks[rank].rows;
    for (size_t i = 0; i < rows.size(); ++i)
      places.push_back({rows[i], static_cast<int64_t>(i), static_cast<int>(rank)});
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.row < b.row; });
  const auto twice =
      std::adjacent_find(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.row == b.row; });
  if (twice == places.end()) return places;
  return invalid_argument(std::string("row ") + std::to_string(twice->row) + " occurs twice in the " + side +
                          " layout, on ranks " + std::to_string(twice->rank) + " and " +
                          std::to_string((twice + 1)->rank) + "; each row has exactly one holder");
}

}  // namespace

int64_t RowLayout::total_rows() const {
  int64_t total = 0;
  for (const RankRows& rank : ranks) total += static_cast<int64_t>(rank.rows.size());
  return total;
}

std::vector<const ReshardPiece*> ReshardPlan::of_producer(int rank) const {
  std::vector<const ReshardPiece*> found;
  for (const auto& piece : pieces) {
    if (piece.producer == rank) found.push_back(&piece);
  }
  return found;
}

std::vector<const ReshardPiece*> ReshardPlan::of_consumer(int rank) const {
  std::vector<const ReshardPiece*> found;
  for (const auto& piece : pieces) {
    if (piece.consumer == rank) found.push_back(&piece);
  }
  return found;
}

Result<ReshardPlan> plan_reshard(const RowLayout& producer, const RowLayout& consumer) {
  TROUPE_ASSIGN(const std::vector<Place> sources, places_of(producer, "producer"));
  TROUPE_ASSIGN(const std::vector<Place> targets, places_of(consumer, "consumer"));
  // For each consumer rank and local row: where it comes from. Walking it in order makes every piece ascending in
  // target.
  std::vector<std::vector<const Place*>> wanted(consumer.ranks.size());
  for (size_t rank = 0; rank < wanted.size(); ++rank) wanted[rank].assign(consumer.ranks[rank].rows.size(), nullptr);
  auto source = sources.begin();
  for (const Place& target : targets) {
    while (source != sources.end() && source->row < target.row) ++source;
    if (source == sources.end()) break;
    if (source->row == target.row)
      wanted[static_cast<size_t>(target.rank)][static_cast<size_t>(target.local)] = &*source;
  }
  const size_t producers = producer.ranks.size(), consumers = consumer.ranks.size();
  std::vector<ReshardPiece> table(producers * consumers);
  for (size_t to = 0; to < consumers; ++to) {
    for (size_t local = 0; local < wanted[to].size(); ++local) {
      const Place* from = wanted[to][local];
      if (from == nullptr) continue;
      ReshardPiece& piece = table[static_cast<size_t>(from->rank) * consumers + to];
      piece.source.push_back(from->local);
      piece.target.push_back(static_cast<int64_t>(local));
    }
  }
  ReshardPlan plan;
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].source.empty()) continue;
    table[i].producer = static_cast<int>(i / consumers);
    table[i].consumer = static_cast<int>(i % consumers);
    plan.pieces.push_back(std::move(table[i]));
  }
  return plan;
}

ReshardPiece reversed(const ReshardPiece& piece) {
  std::vector<size_t> order(piece.source.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return piece.source[a] < piece.source[b]; });
  ReshardPiece mirror{piece.consumer, piece.producer, {}, {}};
  mirror.source.reserve(order.size());
  mirror.target.reserve(order.size());
  for (const size_t i : order) {
    mirror.source.push_back(piece.target[i]);
    mirror.target.push_back(piece.source[i]);
  }
  return mirror;
}

RowLayout stripe_layout(const std::vector<int64_t>& rows, int tp) {
  RowLayout layout;
  const auto total = static_cast<int64_t>(rows.size());
  for (int i = 0; i < tp; ++i) {
    layout.ranks.push_back(
        {std::vector<int64_t>(rows.begin() + cut_begin(total, tp, i), rows.begin() + cut_begin(total, tp, i + 1))});
  }
  return layout;
}

}  // namespace troupe
