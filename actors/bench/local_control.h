#pragma once

#include <atomic>
#include <string>

#include "actors/host/control.h"
#include "base/rendezvous/memory_kv_store.h"

/// The control of a host that is alone: grants every step, keeps reports to itself. For benches and tests of the
/// executor.
namespace troupe {

class LocalControl : public HostControl {
 public:
  /// `shared`: a rendezvous store that several hosts of a test meet through; its own when null. Outlives the control.
  explicit LocalControl(HostAssignment assignment, KvStore* shared = nullptr)
      : assignment_(std::move(assignment)), shared_(shared) {}
  const HostAssignment& assignment() const override { return assignment_; }
  KvStore& store() override { return shared_ ? *shared_ : store_; }
  void report_phase(const std::string&) override {}
  void report_ready() override {}
  void report_prepared(int64_t, const std::vector<int64_t>&) override {}
  Result<Grant> wait_grant(int64_t step, std::chrono::milliseconds) override {
    return Grant{assignment_.generation, step, -1, -1, {}};
  }
  void report_step(int64_t, const std::string&, const std::string&) override {}
  void report_evaluation(int64_t, const std::string&) override {}
  void report_event(const std::string&, const std::string&) override {}
  void report_error(const Error&) override {}
  void report_finishing() override {}
  Status report_finished(const std::string&) override { return {}; }
  void publish_progress(int64_t, const char*, int, int) override {}
  Result<ClockOffset> measure_clock() override { return ClockOffset{}; }
  bool stop_requested() const override { return false; }

 private:
  HostAssignment assignment_;
  MemoryKvStore store_;
  KvStore* shared_;
};

}  // namespace troupe
