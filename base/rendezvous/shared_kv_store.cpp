#include "base/rendezvous/shared_kv_store.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <ctime>

namespace troupe {
namespace {
constexpr size_t kEntries = 128, kKeyBytes = 160, kValueBytes = 16384;

struct Entry {
  bool used;
  size_t bytes;
  char key[kKeyBytes];
  char value[kValueBytes];
};
}  // namespace

struct SharedKvStore::Table {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  Entry entries[kEntries];

  Entry* find(const std::string& key) {
    for (Entry& entry : entries) {
      if (entry.used && key == entry.key) return &entry;
    }
    return nullptr;
  }
  void put(const std::string& key, const std::string& value) {
    TROUPE_CHECK(key.size() < kKeyBytes && value.size() <= kValueBytes);
    Entry* entry = find(key);
    for (size_t i = 0; entry == nullptr && i < kEntries; ++i) {
      if (!entries[i].used) entry = &entries[i];
    }
    TROUPE_CHECK(entry != nullptr);
    entry->used = true;
    std::memcpy(entry->key, key.c_str(), key.size() + 1);
    std::memcpy(entry->value, value.data(), value.size());
    entry->bytes = value.size();
    pthread_cond_broadcast(&changed);
  }
};

class SharedKvStore::Lock {
 public:
  explicit Lock(Table* table) : table_(table) { pthread_mutex_lock(&table_->mutex); }
  ~Lock() { pthread_mutex_unlock(&table_->mutex); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Table* table_;
};

SharedKvStore::SharedKvStore() {
  void* memory = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  TROUPE_CHECK(memory != MAP_FAILED);
  table_ = static_cast<Table*>(memory);
  pthread_mutexattr_t mutex;
  pthread_mutexattr_init(&mutex);
  pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&table_->mutex, &mutex);
  pthread_condattr_t condition;
  pthread_condattr_init(&condition);
  pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
  pthread_condattr_setclock(&condition, CLOCK_MONOTONIC);
  pthread_cond_init(&table_->changed, &condition);
}

/// The primitives are not destroyed: a killed child may have been waiting on them.
SharedKvStore::~SharedKvStore() { munmap(table_, sizeof(Table)); }

Status SharedKvStore::set(const std::string& key, const std::string& value) {
  Lock lock(table_);
  table_->put(key, value);
  return {};
}

Result<std::string> SharedKvStore::get(const std::string& key, std::chrono::milliseconds timeout) {
  timespec until{};
  clock_gettime(CLOCK_MONOTONIC, &until);
  const auto nanoseconds = until.tv_nsec + timeout.count() % 1000 * 1000000;
  until.tv_sec += timeout.count() / 1000 + nanoseconds / 1000000000;
  until.tv_nsec = nanoseconds % 1000000000;
  Lock lock(table_);
  while (true) {
    if (const Entry* entry = table_->find(key)) return std::string(entry->value, entry->bytes);
    if (pthread_cond_timedwait(&table_->changed, &table_->mutex, &until) == ETIMEDOUT)
      return deadline_exceeded("key '" + key + "' was not set");
  }
}

Result<int64_t> SharedKvStore::add(const std::string& key, int64_t amount) {
  Lock lock(table_);
  const Entry* entry = table_->find(key);
  const int64_t value = (entry ? std::stoll(std::string(entry->value, entry->bytes)) : 0) + amount;
  table_->put(key, std::to_string(value));
  return value;
}

Result<std::string> SharedKvStore::compare_set(const std::string& key, const std::string& expected,
                                               const std::string& desired) {
  Lock lock(table_);
  const Entry* entry = table_->find(key);
  const std::string now = entry ? std::string(entry->value, entry->bytes) : std::string();
  if (now != expected) return now;
  table_->put(key, desired);
  return desired;
}

Result<bool> SharedKvStore::check(const std::vector<std::string>& keys) {
  Lock lock(table_);
  for (const auto& key : keys) {
    if (table_->find(key) == nullptr) return false;
  }
  return true;
}

Result<bool> SharedKvStore::erase(const std::string& key) {
  Lock lock(table_);
  Entry* entry = table_->find(key);
  if (entry == nullptr) return false;
  entry->used = false;
  return true;
}

}  // namespace troupe
