#include "transport/world/kv_c10d_store.h"

namespace troupe {
namespace {

template <typename T>
T value_or_throw(Result<T> result) {
  if (!result.ok()) throw ErrorException(result.error());
  return std::move(result).value();
}

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

class KvC10dStore final : public c10d::Store {
 public:
  KvC10dStore(KvStore& store, std::string prefix, std::chrono::milliseconds timeout)
      : c10d::Store(timeout), store_(store), prefix_(std::move(prefix)) {}

  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::make_intrusive<KvC10dStore>(store_, prefix_, timeout_);
  }
  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    const Status status = store_.set(prefix_ + key, text_of(value));
    if (!status.ok()) throw ErrorException(status.error());
  }
  std::vector<uint8_t> compareSet(const std::string& key, const std::vector<uint8_t>& expected,
                                  const std::vector<uint8_t>& desired) override {
    return bytes_of(value_or_throw(store_.compare_set(prefix_ + key, text_of(expected), text_of(desired))));
  }
  std::vector<uint8_t> get(const std::string& key) override {
    return bytes_of(value_or_throw(store_.get(prefix_ + key, timeout_)));
  }
  int64_t add(const std::string& key, int64_t value) override {
    return value_or_throw(store_.add(prefix_ + key, value));
  }
  bool deleteKey(const std::string& key) override { return value_or_throw(store_.erase(prefix_ + key)); }
  bool check(const std::vector<std::string>& keys) override {
    std::vector<std::string> full;
    for (const auto& key : keys) full.push_back(prefix_ + key);
    return value_or_throw(store_.check(full));
  }
  int64_t getNumKeys() override {
    throw ErrorException(make_error(ErrorCode::kUnimplemented, "the rendezvous store does not count its keys"));
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (const auto& key : keys) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      value_or_throw(store_.get(prefix_ + key, std::max(left, std::chrono::milliseconds(0))));
    }
  }

 private:
  KvStore& store_;
  std::string prefix_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> make_kv_c10d_store(KvStore& store, std::string prefix,
                                                   std::chrono::milliseconds timeout) {
  return c10::make_intrusive<KvC10dStore>(store, std::move(prefix), timeout);
}

}  // namespace troupe
