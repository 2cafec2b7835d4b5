#include "actors/parquet/row_pool.h"

#include <catch2/catch.hpp>
#include <thread>

namespace troupe {
namespace {

/// What was asked of a file.
struct Asked {
  std::mutex mutex;
  int cursors = 0, alive = 0;
  std::vector<int64_t> rows;
};

/// Rows whose object is their number; row `broken` cannot be read.
class NumberRows final : public RowFile {
 public:
  NumberRows(std::vector<int64_t> begins, Asked& asked, int64_t bytes = 1, int64_t broken = -1)
      : begins_(std::move(begins)), asked_(asked), bytes_(bytes), broken_(broken) {}
  const std::vector<int64_t>& group_begins() const override { return begins_; }
  std::unique_ptr<RowCursor> cursor(int group) const override { return std::make_unique<Cursor>(*this, group); }

 private:
  class Cursor final : public RowCursor {
   public:
    Cursor(const NumberRows& file, int group) : file_(file), group_(static_cast<size_t>(group)) {
      const std::lock_guard lock(file_.asked_.mutex);
      ++file_.asked_.cursors;
      ++file_.asked_.alive;
    }
    ~Cursor() override {
      const std::lock_guard lock(file_.asked_.mutex);
      --file_.asked_.alive;
    }
    Result<std::shared_ptr<const Row>> read(int64_t row) override {
      if (row < file_.begins_[group_] || row >= file_.begins_[group_ + 1]) return internal_error("not of this group");
      if (row == file_.broken_) return data_loss("broken");
      const std::lock_guard lock(file_.asked_.mutex);
      file_.asked_.rows.push_back(row);
      return std::shared_ptr<const Row>(new Row{row, file_.bytes_});
    }

   private:
    const NumberRows& file_;
    size_t group_;
  };
  std::vector<int64_t> begins_;
  Asked& asked_;
  int64_t bytes_, broken_;
};

int64_t number(RowPool& pool, int64_t row, int file = 0) {
  const auto read = pool.row(file, row);
  REQUIRE(read.ok());
  return (*read)->object.get<int64_t>();
}

}  // namespace

TEST_CASE("Rows in order take one cursor a group, and groups without rows none") {
  Asked asked;
  RowPool pool({std::make_shared<NumberRows>(std::vector<int64_t>{0, 10, 10, 30}, asked)});
  for (int64_t row = 0; row < 30; ++row) CHECK(number(pool, row) == row);
  CHECK(asked.cursors == 2);
  CHECK_FALSE(pool.row(0, 30).ok());
  CHECK_FALSE(pool.row(0, -1).ok());
}

TEST_CASE("A row that was read lately is not read again") {
  Asked asked;
  RowPool pool({std::make_shared<NumberRows>(std::vector<int64_t>{0, 1000}, asked)});
  for (int i = 0; i < 3; ++i) CHECK(number(pool, 7) == 7);
  CHECK(asked.rows.size() == 1);
  for (int64_t row = 8; row < 8 + static_cast<int64_t>(RowPool::kMostRows); ++row) number(pool, row);
  number(pool, 7);
  CHECK(asked.rows.back() == 7);
}

TEST_CASE("Rows that are large are not kept beyond the limit") {
  Asked asked;
  RowPool pool({std::make_shared<NumberRows>(std::vector<int64_t>{0, 10}, asked, RowPool::kKeptBytes / 2)});
  for (const int64_t row : {0, 1, 2, 1, 2}) number(pool, row);
  CHECK(asked.rows == std::vector<int64_t>{0, 1, 2});
  number(pool, 0);
  CHECK(asked.rows.back() == 0);
}

TEST_CASE("A jump ahead goes on with the nearest cursor, and so many cursors stay as the limit says") {
  Asked asked;
  RowPool pool({std::make_shared<NumberRows>(std::vector<int64_t>{0, 5000}, asked)});
  number(pool, 100);
  number(pool, 4000);
  CHECK(asked.cursors == 1);
  number(pool, 50);  // nobody stands before it
  CHECK(asked.cursors == 2);
  for (int64_t row = 49; row > 20; --row) number(pool, row);
  CHECK(asked.alive == static_cast<int>(RowPool::kMostCursors));
}

TEST_CASE("A cursor that failed is not used again, and the files do not mix") {
  Asked first, second;
  RowPool pool({nullptr, std::make_shared<NumberRows>(std::vector<int64_t>{0, 9}, first, 1, 3),
                std::make_shared<NumberRows>(std::vector<int64_t>{0, 9}, second)});
  number(pool, 2, 1);
  const auto broken = pool.row(1, 3);
  REQUIRE_FALSE(broken.ok());
  CHECK(broken.error().message == "broken");
  CHECK(first.alive == 0);
  number(pool, 4, 1);
  CHECK(first.cursors == 2);
  number(pool, 3, 2);
  CHECK(second.rows == std::vector<int64_t>{3});
}

TEST_CASE("Threads that read different rows at once get their own") {
  Asked asked;
  RowPool pool({std::make_shared<NumberRows>(std::vector<int64_t>{0, 400, 800}, asked)});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int64_t row = t; row < 800; row += 3) {
        const auto read = pool.row(0, row);
        wrong += !read.ok() || (*read)->object != row;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace troupe
