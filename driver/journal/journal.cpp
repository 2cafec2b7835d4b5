#include "driver/journal/journal.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace troupe::driver {
namespace {

constexpr char kSchema[] =
    "PRAGMA locking_mode=EXCLUSIVE;"  // until it is closed or the process ends
    "PRAGMA journal_mode=WAL;"
    "CREATE TABLE IF NOT EXISTS term(value INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS job(id TEXT PRIMARY KEY, name TEXT, run_folder TEXT, state TEXT, generation INTEGER, "
    "run_through INTEGER);";

Error failure(sqlite3* database, const std::string& what) {
  return internal_error("journal: " + what + ": " + sqlite3_errmsg(database));
}

std::string text_of(sqlite3_stmt* statement, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  return text ? text : "";
}

/// A thread of its own carries out the writes.
class SqliteJournal final : public Journal {
 public:
  explicit SqliteJournal(sqlite3* database) : database_(database) {}
  ~SqliteJournal() override;
  /// Takes the file and begins a term; once, before all else.
  Status start(const std::string& path);
  Term term() const override { return term_; }
  void record_job(JournalledJob job, Done done) override;
  void record_grant(const std::string& job, Generation generation, int64_t run_through, Done done) override;
  void record_state(const std::string& job, const std::string& state, Done done) override;
  Result<std::vector<JournalledJob>> jobs() override;

 private:
  struct Write {
    std::string sql;
    std::vector<std::string> values;
    Done done;
  };
  Status execute(const std::string& sql, const std::vector<std::string>& values);
  Status begin_term();
  void enqueue(Write write);
  void run();

  sqlite3* database_;
  Term term_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Write> queue_;
  bool closing_ = false, busy_ = false;
  std::thread thread_;
};

Status SqliteJournal::start(const std::string& path) {
  sqlite3_busy_timeout(database_, 2000);
  const int code = sqlite3_exec(database_, kSchema, nullptr, nullptr, nullptr);
  if (code == SQLITE_BUSY)
    return make_error(ErrorCode::kFailedPrecondition, "journal " + path + " is held by another driver that is running");
  if (code != SQLITE_OK) return failure(database_, path);
  TROUPE_RETURN_IF_ERROR(begin_term());
  thread_ = std::thread([this] { run(); });
  return {};
}

SqliteJournal::~SqliteJournal() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  sqlite3_close(database_);
}

Status SqliteJournal::begin_term() {
  TROUPE_RETURN_IF_ERROR(execute("INSERT INTO term(value) SELECT 1 + COALESCE(MAX(value), 0) FROM term", {}));
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, "SELECT MAX(value) FROM term", -1, &statement, nullptr) != SQLITE_OK)
    return failure(database_, "term");
  if (sqlite3_step(statement) == SQLITE_ROW) term_ = Term(static_cast<uint64_t>(sqlite3_column_int64(statement, 0)));
  sqlite3_finalize(statement);
  return {};
}

Status SqliteJournal::execute(const std::string& sql, const std::vector<std::string>& values) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) return failure(database_, sql);
  for (size_t i = 0; i < values.size(); ++i)
    sqlite3_bind_text(statement, static_cast<int>(i) + 1, values[i].c_str(), -1, SQLITE_TRANSIENT);
  const int code = sqlite3_step(statement);
  sqlite3_finalize(statement);
  if (code != SQLITE_DONE && code != SQLITE_ROW) return failure(database_, sql);
  return {};
}

void SqliteJournal::record_job(JournalledJob job, Done done) {
  enqueue(
      {"INSERT OR REPLACE INTO job VALUES(?, ?, ?, ?, CAST(? AS INTEGER), CAST(? AS INTEGER))",
       {job.id, job.name, job.run_folder, job.state, std::to_string(job.generation), std::to_string(job.run_through)},
       std::move(done)});
}

void SqliteJournal::record_grant(const std::string& job, Generation generation, int64_t run_through, Done done) {
  enqueue({"UPDATE job SET generation = CAST(? AS INTEGER), run_through = CAST(? AS INTEGER) WHERE id = ?",
           {std::to_string(generation.value), std::to_string(run_through), job},
           std::move(done)});
}

void SqliteJournal::record_state(const std::string& job, const std::string& state, Done done) {
  enqueue({"UPDATE job SET state = ? WHERE id = ?", {state, job}, std::move(done)});
}

void SqliteJournal::enqueue(Write write) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(write));
  }
  changed_.notify_all();
}

void SqliteJournal::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Write write = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    Status status = execute(write.sql, write.values);
    if (write.done) write.done(std::move(status));
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

Result<std::vector<JournalledJob>> SqliteJournal::jobs() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && !busy_; });
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_,
                         "SELECT id, name, run_folder, state, generation, run_through FROM job ORDER BY rowid", -1,
                         &statement, nullptr) != SQLITE_OK)
    return failure(database_, "jobs");
  std::vector<JournalledJob> jobs;
  while (sqlite3_step(statement) == SQLITE_ROW) {
    JournalledJob job{text_of(statement, 0), text_of(statement, 1), text_of(statement, 2), text_of(statement, 3)};
    job.generation = static_cast<uint32_t>(sqlite3_column_int64(statement, 4));
    job.run_through = sqlite3_column_int64(statement, 5);
    jobs.push_back(std::move(job));
  }
  sqlite3_finalize(statement);
  return jobs;
}

/// Mode 0600 from the first byte; SQLite gives its -wal and -shm the mode of the database. What cannot be made is
/// reported when SQLite opens it. An existing file is not opened here: closing it would drop the locks that this
/// process holds on it.
void keep_private(const std::string& path) {
  const int created = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (created >= 0) ::close(created);
  for (const char* suffix : {"", "-wal", "-shm"}) ::chmod((path + suffix).c_str(), 0600);
}

}  // namespace

Result<std::unique_ptr<Journal>> Journal::open(const std::string& path) {
  if (path != ":memory:") keep_private(path);
  sqlite3* database = nullptr;
  if (sqlite3_open(path.c_str(), &database) != SQLITE_OK) {
    Error error = failure(database, "cannot open " + path);
    sqlite3_close(database);
    return error;
  }
  auto journal = std::make_unique<SqliteJournal>(database);
  TROUPE_RETURN_IF_ERROR(journal->start(path));
  return std::unique_ptr<Journal>(std::move(journal));
}

}  // namespace troupe::driver
