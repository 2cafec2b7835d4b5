#include "proto/page/progress_page.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

using namespace troupe;

TEST_CASE("A page that nobody has written to is not valid") {
  auto page = ProgressPage::create();
  REQUIRE(page.ok());
  CHECK_FALSE((*page)->read().valid);
}

TEST_CASE("What one mapping publishes another reads, long instructions cut") {
  auto worker = ProgressPage::create();
  REQUIRE(worker.ok());
  auto host = ProgressPage::open(::dup((*worker)->fd()));
  REQUIRE(host.ok());
  (*host)->publish(7, std::string(100, 'x').c_str(), 1, 3);
  const Progress progress = (*worker)->read();
  CHECK(progress.valid);
  CHECK(progress.step == 7);
  CHECK(progress.group == 1);
  CHECK(progress.rank == 3);
  CHECK(progress.instruction == std::string(63, 'x'));
}

TEST_CASE("A reader never sees half of one publication and half of another") {
  auto page = ProgressPage::create();
  REQUIRE(page.ok());
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int64_t step = 1; !stop; ++step)
      (*page)->publish(step, std::to_string(step).c_str(), static_cast<int>(step % 1000),
                       static_cast<int>(step % 1000));
  });
  int seen = 0;
  while (seen < 20000) {
    const Progress progress = (*page)->read();
    if (!progress.valid) continue;
    ++seen;
    if (progress.instruction != std::to_string(progress.step) || progress.group != progress.step % 1000)
      FAIL("torn at step " << progress.step);
  }
  stop = true;
  writer.join();
  CHECK(seen == 20000);
}

TEST_CASE("A descriptor that is no page is refused") {
  const int fd = ::open("/dev/null", O_RDWR);
  CHECK_FALSE(ProgressPage::open(fd).ok());
  ::close(fd);
}
