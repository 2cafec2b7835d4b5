#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "driver/run/peers.h"
#include "proto/rpc/secrets.h"

/// The command line's side of the Client service. Blocking calls; one thread. Unavailable: no driver could be reached.
namespace troupe::cli {

struct SubmitAnswer {
  std::string job_id, run_folder, plan_text;
};

class DriverClient {
 public:
  static Result<std::unique_ptr<DriverClient>> connect(const std::string& address, const Secrets& secrets);
  virtual ~DriverClient() = default;
  virtual Result<SubmitAnswer> submit(const std::string& job_yaml, const std::string& run_folder,
                                      const std::string& resume) = 0;
  virtual Result<std::string> status_json(const std::string& job_id) = 0;
  virtual Status cancel(const std::string& job_id) = 0;
  /// Calls `update` until the job has ended (Ok), the driver is lost (Unavailable) or `stop` was called (Cancelled).
  virtual Status watch(const std::string& job_id, const std::function<void(const driver::JobUpdate&)>& update) = 0;
  virtual Status logs(const std::string& job_id, const std::string& group, int rank, bool follow,
                      const std::function<void(const std::string&)>& text) = 0;
  /// From any thread: ends a watch or logs call under way.
  virtual void stop() = 0;
};

}  // namespace troupe::cli
