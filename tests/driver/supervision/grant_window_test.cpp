#include "driver/supervision/grant_window.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

using std::chrono::milliseconds;
using troupe::driver::GrantState;
using troupe::driver::GrantWindow;
using troupe::driver::StepSamples;

namespace {
/// A clock that stands: no pace is known, and the window is the smallest.
constexpr GrantWindow::Time kStart{milliseconds(0)};
}  // namespace

TEST_CASE("Nothing is granted until every host has prepared the step") {
  GrantWindow window(3, 4, 1);
  CHECK_FALSE(window.prepared(0, 5));
  CHECK_FALSE(window.prepared(1, 2));
  const auto grant = window.prepared(2, 9);
  REQUIRE(grant);
  CHECK(grant->run_through == 2);
}

TEST_CASE("Grants run at most a window beyond the slowest host's last step") {
  GrantWindow window(2, 4, 1);
  window.prepared(0, 100);
  const auto grant = window.prepared(1, 100);
  REQUIRE(grant);
  CHECK(grant->run_through == 4);
  CHECK_FALSE(window.done(0, 3, kStart));
  const auto next = window.done(1, 2, kStart);
  REQUIRE(next);
  CHECK(next->run_through == 6);
}

TEST_CASE("Reports that arrive late or twice change nothing") {
  GrantWindow window(1, 4, 1);
  window.prepared(0, 10);
  window.done(0, 5, kStart);
  CHECK(window.state().run_through == 9);
  CHECK_FALSE(window.done(0, 2, kStart));
  CHECK_FALSE(window.prepared(0, 1));
  CHECK(window.state().run_through == 9);
  CHECK(window.done_by_all() == 5);
}

TEST_CASE("A resumed job is granted from its first step on") {
  GrantWindow window(1, 4, 11);
  CHECK(window.state().run_through == 10);
  const auto grant = window.prepared(0, 30);
  REQUIRE(grant);
  CHECK(grant->run_through == 14);
}

TEST_CASE("A stop is set at the first step that no grant covers") {
  GrantWindow window(1, 4, 1);
  window.prepared(0, 100);
  const auto grant = window.stop(true);
  REQUIRE(grant);
  CHECK(grant->stop_after == 5);
  CHECK(grant->save_at == 5);
  CHECK(grant->run_through == 4);
  window.done(0, 4, kStart);
  CHECK(window.state().run_through == 5);
  CHECK_FALSE(window.done(0, 5, kStart));
  CHECK_FALSE(window.stop(false));
  CHECK(window.state() == GrantState{5, 5, 5});
}

TEST_CASE("What any host cannot read of a step stands in every grant that covers the step, until all have done it") {
  GrantWindow window(2, 2, 1);
  window.prepared(0, 3, {{2, {4, 9}}, {3, {5}}});
  window.prepared(1, 1);
  const auto grant = window.prepared(1, 2, {{2, {4, 7}}});
  REQUIRE(grant);
  CHECK(grant->run_through == 2);
  CHECK(grant->left_out == StepSamples{{2, {4, 7, 9}}});  // step 3 is not whole before host 1 has seen it
  window.prepared(1, 3, {{2, {100}}});                    // said late: the step may run already
  window.done(0, 1, kStart);
  const auto next = window.done(1, 1, kStart);
  REQUIRE(next);
  CHECK(next->left_out == StepSamples{{2, {4, 7, 9}}, {3, {5}}});
  window.prepared(0, 4);
  window.prepared(1, 4);
  window.done(0, 2, kStart);
  const auto last = window.done(1, 2, kStart);
  REQUIRE(last);
  CHECK(last->left_out == StepSamples{{3, {5}}});
}

TEST_CASE("In any order of reports grants only grow and never pass what was prepared") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    GrantWindow window(3, 2, 1);
    int64_t prepared[3] = {}, done[3] = {}, before = 0, stop = -1;
    for (int event = 0; event < 60; ++event) {
      const int host = static_cast<int>(random() % 3);
      if (random() % 30 == 0) {
        window.stop(true);
        if (stop < 0) stop = window.state().stop_after;
      } else if (random() % 2 == 0) {
        prepared[host] += random() % 3;
        window.prepared(host, prepared[host]);
      } else {
        done[host] = std::min(done[host] + 1, window.state().run_through);
        window.done(host, done[host], kStart);
      }
      const GrantState& state = window.state();
      REQUIRE(state.run_through >= before);
      REQUIRE(state.run_through <= *std::min_element(prepared, prepared + 3));
      REQUIRE(state.run_through <= *std::min_element(done, done + 3) + 2);
      REQUIRE(state.stop_after == stop);
      if (stop >= 0) REQUIRE(state.run_through <= stop);
      before = state.run_through;
    }
  }
}

TEST_CASE("The window becomes what the hosts do in its span, and shrinks when they slow down") {
  GrantWindow window(2, 4, 1, milliseconds(1000));
  window.prepared(0, 1 << 20);
  window.prepared(1, 1 << 20);
  auto now = kStart;
  int64_t step = 0;
  const auto run = [&](milliseconds each, int steps) {
    for (int i = 0; i < steps && step < window.state().run_through; ++i) {
      now += each;
      ++step;
      for (int host : {0, 1}) window.done(host, step, now);
    }
  };
  run(milliseconds(2), 4000);
  REQUIRE(step == 4000);
  CHECK(window.window() == Approx(500).margin(2));  // 1 s of 2 ms steps
  CHECK(window.state().run_through - step <= 502);
  CHECK(window.state().run_through - step >= 250);
  run(milliseconds(100), 700);
  CHECK(window.window() == Approx(10).margin(1));
  CHECK(window.state().run_through - step <= 12);
}

TEST_CASE("One quick start is no pace: the window grows by doubling") {
  GrantWindow window(1, 4, 1);
  window.prepared(0, 1000);
  window.done(0, 1, kStart);
  window.done(0, 4, kStart + milliseconds(20));
  CHECK(window.window() == 8);
}

TEST_CASE("With small advances held back no host ever waits for a grant that could be given") {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    GrantWindow window(3, 4, 1);
    int64_t prepared[3] = {}, done[3] = {};
    auto now = kStart;
    int published = 0;
    for (int event = 0; event < 4000; ++event) {
      now += milliseconds(random() % 3);
      const int host = static_cast<int>(random() % 3);
      prepared[host] = std::max(prepared[host], done[host] + 64);
      bool granted = window.prepared(host, prepared[host]).has_value();
      done[host] = std::min(done[host] + 1, window.state().run_through);
      granted = window.done(host, done[host], now).has_value() || granted;
      published += granted ? 1 : 0;
      // Everybody has done everything: what is prepared must have been granted.
      if (*std::max_element(done, done + 3) == window.state().run_through)
        REQUIRE(window.state().run_through == std::min(*std::min_element(prepared, prepared + 3),
                                                       *std::min_element(done, done + 3) + window.window()));
    }
    CHECK(published < 2000);
  }
}

TEST_CASE("Whenever a stop is asked for, it lies behind every grant that was given and is reached by all hosts") {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    GrantWindow window(3, 4, 1);
    int64_t done[3] = {}, published = 0, stop = -1;
    auto now = kStart;
    const int ask_at = static_cast<int>(random() % 900);
    for (int event = 0; event < 1000000 && (stop < 0 || *std::min_element(done, done + 3) < stop); ++event) {
      now += std::chrono::microseconds(random() % 400);
      const int host = static_cast<int>(random() % 3);
      if (event == ask_at) {
        const auto grant = window.stop(true);
        REQUIRE(grant);
        stop = grant->stop_after;
        REQUIRE(stop == published + 1);  // no host can have run it
        REQUIRE(grant->save_at == stop);
        published = grant->run_through;
      }
      // A host runs only what was published.
      done[host] = std::min(done[host] + 1 + static_cast<int64_t>(random() % 5), published);
      for (const auto& grant : {window.prepared(host, done[host] + 100), window.done(host, done[host], now)})
        if (grant) published = grant->run_through;
    }
    REQUIRE(*std::min_element(done, done + 3) == stop);
    REQUIRE(*std::max_element(done, done + 3) == stop);
  }
}
