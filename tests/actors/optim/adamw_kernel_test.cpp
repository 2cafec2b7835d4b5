#include "actors/optim/adamw_kernel.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

using namespace troupe::optim;

namespace {

using Values = std::vector<float>;

const Values kWeights = {0.5f, -1.25f, 2.0f, 0.0f, 1e-3f, -3.0f};
const std::vector<Values> kGradients = {{0.1f, -0.2f, 0.3f, 0.0f, 1e-4f, 5.0f},
                                        {-0.4f, 0.25f, 0.0f, 1.0f, -1e-4f, -2.5f},
                                        {0.05f, 0.0f, -0.75f, 0.5f, 2e-5f, 0.125f}};
// torch.optim.AdamW (torch 2.11, lr 1e-2, betas 0.9 and 0.95, eps 1e-8), three steps with half of these gradients.
const Values kWithoutDecay = {0.499063313f, -1.24289346f, 1.98715174f, -0.015314512f, -0.00896999892f, -3.01493025f};
const Values kWithDecay = {0.491672844f, -1.22432864f, 1.95743525f, -0.0152777638f, -0.00888782553f, -2.97004175f};
const Values kExpAvg = {-0.0114500001f, 0.00315f, -0.0253500007f, 0.0700000003f, 5.50000095e-07f, 0.0962499976f};
const Values kExpAvgSq = {0.00204406283f, 0.00119343761f, 0.00804656278f, 0.0149999997f, 2.36562492e-10f, 0.356445312f};

void check_close(const Values& actual, const Values& expected, double tolerance) {
  for (size_t i = 0; i < expected.size(); ++i) CHECK(actual[i] == Approx(expected[i]).epsilon(tolerance).margin(1e-9));
}

uint16_t to_bf16(float v) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(v) >> 16);
}  // exact for values that bf16 holds
float from_bf16(uint16_t v) { return std::bit_cast<float>(static_cast<uint32_t>(v) << 16); }

}  // namespace

TEST_CASE("AdamW in fp32 agrees with torch.optim.AdamW") {
  for (const double decay : {0.0, 0.5}) {
    Values w = kWeights, m(6), v(6);
    for (size_t step = 0; step < 3; ++step)
      adamw_fp32(w.data(), kGradients[step].data(), m.data(), v.data(), 6,
                 adamw_scalars(1e-2, decay, 0.9, 0.95, 1e-8, 0.5, static_cast<int64_t>(step) + 1));
    check_close(w, decay == 0.0 ? kWithoutDecay : kWithDecay, 2e-6);
    check_close(m, kExpAvg, 2e-6);
    check_close(v, kExpAvgSq, 2e-6);
  }
}

TEST_CASE("with a master the update is the fp32 one and the weight its rounding") {
  Values master = kWeights, m(6), v(6);
  std::vector<uint16_t> w(6);
  for (size_t step = 0; step < 3; ++step)
    adamw_master_bf16(w.data(), master.data(), kGradients[step].data(), m.data(), v.data(), 6,
                      adamw_scalars(1e-2, 0.5, 0.9, 0.95, 1e-8, 0.5, static_cast<int64_t>(step) + 1));
  check_close(master, kWithDecay, 2e-6);
  for (size_t i = 0; i < 6; ++i) CHECK(std::abs(from_bf16(w[i]) - master[i]) <= std::abs(master[i]) / 256);
}

TEST_CASE("rounding to bf16 is to nearest, ties to even, and keeps infinity and NaN") {
  // Weights that an update with lr 0 leaves alone are only rounded.
  const Values input = {std::bit_cast<float>(0x3f808000u),
                        std::bit_cast<float>(0x3f818000u),
                        std::bit_cast<float>(0x3f808001u),
                        std::bit_cast<float>(0x3f807fffu),
                        INFINITY,
                        std::bit_cast<float>(0x7f800001u)};
  Values master = input, gradient(6), m(6), v(6);
  std::vector<uint16_t> w(6);
  adamw_master_bf16(w.data(), master.data(), gradient.data(), m.data(), v.data(), 6,
                    adamw_scalars(0, 0, 0.9, 0.95, 1e-8, 1, 1));
  CHECK(w[0] == 0x3f80);
  CHECK(w[1] == 0x3f82);
  CHECK(w[2] == 0x3f81);
  CHECK(w[3] == 0x3f80);
  CHECK(w[4] == 0x7f80);
  CHECK(std::isnan(from_bf16(w[5])));
}

TEST_CASE("with everything in bf16 a step is the fp32 step rounded") {
  const float weight = 0.5f, gradient = 0.25f;
  uint16_t w = to_bf16(weight), g = to_bf16(gradient), m = 0, v = 0;
  const AdamwScalars s = adamw_scalars(1e-2, 0.1, 0.9, 0.95, 1e-8, 1.0, 1);
  adamw_bf16(&w, &g, &m, &v, 1, s);
  Values fw = {weight}, fg = {gradient}, fm(1), fv(1);
  adamw_fp32(fw.data(), fg.data(), fm.data(), fv.data(), 1, s);
  CHECK(from_bf16(w) == Approx(fw[0]).epsilon(1.0 / 256));
  CHECK(from_bf16(w) < weight);
  CHECK(from_bf16(m) == Approx(fm[0]).epsilon(1.0 / 256));
  CHECK(from_bf16(v) == Approx(fv[0]).epsilon(1.0 / 256));
}

TEST_CASE("zero weights without gradient stay zero, as padding must") {
  Values w(3), g(3), m(3), v(3);
  for (int64_t step = 1; step <= 3; ++step)
    adamw_fp32(w.data(), g.data(), m.data(), v.data(), 3, adamw_scalars(1e-2, 0.5, 0.9, 0.95, 1e-8, 0.5, step));
  CHECK(w == Values(3));
}
