#include "driver/journal/journal.h"

#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <future>

using namespace troupe;
using namespace troupe::driver;

TEST_CASE("A journal can be read by its owner only, also one that was made before with a wider mode") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("troupe_journal_mode_" + std::to_string(::getpid()));
  fs::create_directory(folder);
  const fs::path path = folder / "journal.sqlite";
  for (int opening = 0; opening < 2; ++opening) {
    auto journal = Journal::open(path);
    REQUIRE(journal.ok());
    (*journal)->record_job({"j1", "a", "/runs/a", "waiting", 1, 0}, nullptr);
    for (const auto& entry : fs::directory_iterator(folder)) {
      INFO(entry.path());
      CHECK((entry.status().permissions() & fs::perms::all) == (fs::perms::owner_read | fs::perms::owner_write));
    }
    journal->reset();
    fs::permissions(path, fs::perms(0644));
  }
  fs::remove_all(folder);
  REQUIRE(Journal::open(":memory:").ok());
  CHECK_FALSE(fs::exists(":memory:"));
}

TEST_CASE("Every opening begins a later term and finds what was journalled before") {
  const std::string path = std::filesystem::temp_directory_path() / ("troupe_journal_" + std::to_string(::getpid()));
  {
    auto journal = Journal::open(path);
    REQUIRE(journal.ok());
    CHECK((*journal)->term() == Term(1));
    (*journal)->record_job({"j1", "name'; DROP TABLE job; --", "/runs/a", "waiting", 1, 0}, nullptr);
    (*journal)->record_grant("j1", Generation(2), 7, nullptr);
    (*journal)->record_state("j1", "running", nullptr);
  }
  {
    auto journal = Journal::open(path);
    REQUIRE(journal.ok());
    CHECK((*journal)->term() == Term(2));
    const auto jobs = (*journal)->jobs();
    REQUIRE(jobs.ok());
    REQUIRE(jobs->size() == 1);
    CHECK((*jobs)[0].name == "name'; DROP TABLE job; --");
    CHECK((*jobs)[0].generation == 2);
    CHECK((*jobs)[0].run_through == 7);
    CHECK((*jobs)[0].state == "running");
  }
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix);
}

TEST_CASE("A write's completion comes after the write") {
  auto journal = Journal::open(":memory:");
  REQUIRE(journal.ok());
  std::promise<bool> done;
  (*journal)->record_job({"j", "n", "f", "s", 1, 3}, [&](Status status) { done.set_value(status.ok()); });
  CHECK(done.get_future().get());
  CHECK((*journal)->jobs()->size() == 1);
}

TEST_CASE("A write that finds no room on the disk says so") {
  const std::string path =
      std::filesystem::temp_directory_path() / ("troupe_journal_full_" + std::to_string(::getpid()));
  auto journal = Journal::open(path);
  REQUIRE(journal.ok());
  rlimit usual{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &usual) == 0);
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{1, usual.rlim_max};  // no file of this process grows any more
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &tight) == 0);
  std::promise<Status> done;
  (*journal)->record_job({"j", "n", "f", "s", 1, 3}, [&](Status status) { done.set_value(std::move(status)); });
  const Status status = done.get_future().get();
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &usual) == 0);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.find("journal") != std::string::npos);
  journal->reset();
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix);
}

TEST_CASE("A journal that cannot be opened names its path") {
  const auto journal = Journal::open("/nonexistent/folder/journal");
  REQUIRE_FALSE(journal.ok());
  CHECK(journal.error().message.find("/nonexistent/folder/journal") != std::string::npos);
}

TEST_CASE("A journal that a living driver holds is refused to a second one, whose try begins no term") {
  const std::string path =
      std::filesystem::temp_directory_path() / ("troupe_journal_held_" + std::to_string(::getpid()));
  {
    auto first = Journal::open(path);
    REQUIRE(first.ok());
    CHECK((*first)->term() == Term(1));
    const auto second = Journal::open(path);
    REQUIRE_FALSE(second.ok());
    CHECK(second.error().code == ErrorCode::kFailedPrecondition);
    CHECK(second.error().message.find(path) != std::string::npos);
  }
  auto next = Journal::open(path);
  REQUIRE(next.ok());
  CHECK((*next)->term() == Term(2));
  next->reset();
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix);
}
