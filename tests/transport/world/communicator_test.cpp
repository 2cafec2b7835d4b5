#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>

#include "tests/transport/world/ranks.h"

using namespace troupe;
using troupe::testing::expect;
using troupe::testing::run_ranks;

namespace {

const AxisSet kTp{Axis::kTp};

Mesh tp_mesh(int size) { return Mesh().set(Axis::kTp, size); }

/// What rank r holds: small integers that differ by rank and place, exact in every dtype under test.
at::Tensor tagged(int rank, int64_t rows, int64_t columns, at::ScalarType type) {
  return at::arange(rows * columns, at::TensorOptions().dtype(at::kLong))
      .remainder(7)
      .add(rank)
      .view({rows, columns})
      .to(type);
}

at::Tensor tagged_sum(int ranks, int64_t rows, int64_t columns, at::ScalarType type) {
  at::Tensor sum = at::zeros({rows, columns}, at::TensorOptions().dtype(type));
  for (int r = 0; r < ranks; ++r) sum.add_(tagged(r, rows, columns, type));
  return sum;
}

}  // namespace

TEST_CASE("all_reduce sums exactly in every dtype, below and above the one-round size, and with no elements at all") {
  const int size = GENERATE(2, 3, 4);
  const auto errors = run_ranks(tp_mesh(size), {kTp}, [size](World& world) {
    Communicator& over = world.over(kTp);
    for (const auto type : {at::kFloat, at::kBFloat16, at::kDouble, at::kLong}) {
      for (const int64_t rows : {0, 1, 5, 3001}) {
        at::Tensor tensor = tagged(over.rank(), rows, 13, type);
        over.all_reduce_sum(tensor);
        expect(at::equal(tensor, tagged_sum(size, rows, 13, type)),
               "the sum of all ranks, rows " + std::to_string(rows));
        tensor = tagged(over.rank(), rows, 13, type);
        over.all_reduce_max(tensor);
        expect(at::equal(tensor, tagged(size - 1, rows, 13, type)), "the largest of all ranks");
      }
    }
  });
  CHECK(errors == std::vector<std::string>());
}

TEST_CASE("all_reduce of floats that round gives every rank the same bits, again on a second run") {
  constexpr int size = 4;
  std::vector<at::Tensor> first(size), second(size);
  for (auto* results : {&first, &second}) {
    const auto errors = run_ranks(tp_mesh(size), {kTp}, [results](World& world) {
      Communicator& over = world.over(kTp);
      at::Tensor tensor = at::arange(50000, at::TensorOptions().dtype(at::kFloat)).mul(0.1234567 + over.rank()).sin();
      over.all_reduce_sum(tensor);
      (*results)[static_cast<size_t>(over.rank())] = tensor;
    });
    REQUIRE(errors == std::vector<std::string>());
  }
  for (size_t r = 0; r < size; ++r) {
    CHECK(at::equal(first[r], first[0]));
    CHECK(at::equal(second[r], first[0]));
  }
}

TEST_CASE("sums of bf16 round once, not after every addition") {
  constexpr int size = 4;
  const auto errors = run_ranks(tp_mesh(size), {kTp}, [](World& world) {
    Communicator& over = world.over(kTp);
    // 256 + 1 + 1 + 1 = 259 rounds to 260 in bf16; added one by one, each 1 is lost.
    at::Tensor small = at::full({3}, over.rank() == 0 ? 256 : 1, at::TensorOptions().dtype(at::kBFloat16));
    at::Tensor large = at::full({100000}, over.rank() == 0 ? 256 : 1, at::TensorOptions().dtype(at::kBFloat16));
    over.all_reduce_sum(small);
    over.all_reduce_sum(large);
    expect(small.eq(260).all().item<bool>() && large.eq(260).all().item<bool>(), "260");
  });
  CHECK(errors == std::vector<std::string>());
}

TEST_CASE("all_gather and reduce_scatter are each other's mirror") {
  const int size = GENERATE(2, 3);
  const auto errors = run_ranks(tp_mesh(size), {kTp}, [size](World& world) {
    Communicator& over = world.over(kTp);
    for (const int64_t rows : {0, 1, 6}) {
      const at::Tensor in = tagged(over.rank(), rows, 5, at::kFloat);
      at::Tensor out = at::empty({rows * size, 5}, in.options());
      over.all_gather(out, in);
      for (int r = 0; r < size; ++r)
        expect(at::equal(out.narrow(0, r * rows, rows), tagged(r, rows, 5, at::kFloat)), "rank's part");
      at::Tensor back = at::empty_like(in);
      over.reduce_scatter_sum(back, out);
      expect(at::equal(back, in.mul(size)), "size times the part, for all ranks gave the same");
    }
  });
  CHECK(errors == std::vector<std::string>());
}

TEST_CASE("ragged collectives carry uneven rows, none included") {
  constexpr int size = 3;
  const auto errors = run_ranks(tp_mesh(size), {kTp}, [](World& world) {
    Communicator& over = world.over(kTp);
    const auto me = static_cast<size_t>(over.rank());
    for (const std::vector<int64_t>& rows : {std::vector<int64_t>{4, 0, 7}, {0, 0, 0}, {0, 0, 5}, {1, 1, 1}}) {
      const int64_t total = rows[0] + rows[1] + rows[2];
      at::Tensor all = at::empty({total, 3}, at::TensorOptions().dtype(at::kFloat));
      over.all_gather_rows(all, tagged(over.rank(), rows[me], 3, at::kFloat), rows);
      std::vector<at::Tensor> parts;
      for (int r = 0; r < size; ++r) parts.push_back(tagged(r, rows[static_cast<size_t>(r)], 3, at::kFloat));
      expect(at::equal(all, at::cat(parts)), "the rows of every rank");
      at::Tensor own = at::empty({rows[me], 3}, all.options());
      over.reduce_scatter_rows_sum(own, all, rows);
      expect(at::equal(own, parts[me].mul(size)), "the sum of own rows");
    }
  });
  CHECK(errors == std::vector<std::string>());
}

TEST_CASE("all_to_all_rows moves each pair's rows, zero between some pairs") {
  constexpr int size = 4;
  const auto errors = run_ranks(tp_mesh(size), {kTp}, [](World& world) {
    Communicator& over = world.over(kTp);
    const auto count = [](int from, int to) { return int64_t{(from * 3 + to * 5) % 4}; };
    std::vector<int64_t> send, receive;
    std::vector<at::Tensor> sent, wanted;
    for (int r = 0; r < size; ++r) {
      send.push_back(count(over.rank(), r));
      receive.push_back(count(r, over.rank()));
      sent.push_back(at::full({send.back(), 2}, over.rank() * 10 + r, at::TensorOptions().dtype(at::kLong)));
      wanted.push_back(at::full({receive.back(), 2}, r * 10 + over.rank(), at::TensorOptions().dtype(at::kLong)));
    }
    const at::Tensor expected = at::cat(wanted);
    at::Tensor out = at::empty_like(expected);
    over.all_to_all_rows(out, at::cat(sent), receive, send);
    expect(at::equal(out, expected), "rows in rank order");
  });
  CHECK(errors == std::vector<std::string>());
}

TEST_CASE("broadcast gives everyone the root's values") {
  const auto errors = run_ranks(tp_mesh(3), {kTp}, [](World& world) {
    Communicator& over = world.over(kTp);
    for (int root = 0; root < 3; ++root) {
      at::Tensor tensor = tagged(over.rank(), 4, 4, at::kBFloat16);
      over.broadcast(tensor, root);
      expect(at::equal(tensor, tagged(root, 4, 4, at::kBFloat16)), "the root's values");
    }
  });
  CHECK(errors == std::vector<std::string>());
}

TEST_CASE("row counts that do not fit the tensors are refused before anything is sent") {
  const auto errors = run_ranks(tp_mesh(2), {kTp}, [](World& world) {
    at::Tensor out = at::zeros({4, 1}), in = at::zeros({1, 1});
    try {
      world.over(kTp).all_gather_rows(out, in, {2, 2});
    } catch (const ErrorException& e) {
      expect(e.error.code == ErrorCode::kInvalidArgument, "invalid_argument");
      expect(e.error.message.find("over tp") != std::string::npos, "the communicator's name");
      return;
    }
    expect(false, "a refusal");
  });
  CHECK(errors == std::vector<std::string>());
}

TEST_CASE("a communicator of one rank copies in to out") {
  const auto world = create_solo_world();
  Communicator& over = world->over(kTp);
  CHECK(over.size() == 1);
  const at::Tensor in = tagged(0, 3, 2, at::kFloat);
  at::Tensor out = at::zeros({3, 2});
  over.all_gather_rows(out, in, {3});
  CHECK(at::equal(out, in));
  out.zero_();
  over.reduce_scatter_sum(out, in);
  CHECK(at::equal(out, in));
  over.all_reduce_sum(out);
  CHECK(at::equal(out, in));
}
