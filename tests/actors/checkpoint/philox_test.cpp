#include "actors/checkpoint/philox.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

using namespace troupe::checkpoint;

TEST_CASE("a stretch of a stream is the same however it is cut") {
  const uint64_t key = stream_key(3, "a");
  std::vector<float> whole(101), parts(101);
  fill_normal(key, 1000, 101, 2.0f, whole.data());
  for (int64_t at = 0; at < 101;) {
    const int64_t n = std::min<int64_t>(at % 5 + 1, 101 - at);
    fill_normal(key, 1000 + at, n, 2.0f, parts.data() + at);
    at += n;
  }
  CHECK(whole == parts);
}

TEST_CASE("streams differ by seed and by name") {
  CHECK(stream_key(1, "a") != stream_key(2, "a"));
  CHECK(stream_key(1, "a") != stream_key(1, "b"));
}

TEST_CASE("numbers have the moments and the independence of a standard normal") {
  constexpr int64_t kCount = 200000;
  std::vector<float> x(kCount);
  fill_normal(stream_key(5, "moments"), 0, kCount, 1.0f, x.data());
  double sum = 0, square = 0, fourth = 0, neighbours = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = x[i];
    sum += v;
    square += v * v;
    fourth += v * v * v * v;
    if (i > 0) neighbours += v * x[i - 1];
  }
  CHECK(std::abs(sum / kCount) < 0.01);
  CHECK(square / kCount == Approx(1.0).epsilon(0.02));
  CHECK(fourth / kCount == Approx(3.0).epsilon(0.05));
  CHECK(std::abs(neighbours / kCount) < 0.01);
}
