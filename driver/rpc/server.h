#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "driver/run/driver.h"
#include "proto/rpc/secrets.h"

/// The driver's gRPC server: the services of control.proto in front of a Driver.
namespace troupe::driver {

/// What a client asks for, before it is planned.
struct SubmitOrder {
  std::string job_yaml, run_folder, mode, command_json, resume;
};
using Planner = std::function<Result<PlannedJob>(const SubmitOrder&)>;

struct ServerOptions {
  std::string address;  // "unix:/path" or "HOST:PORT"; port 0 takes a free one. Exactly this address is bound.
  Secrets secrets;
  Planner planner;  // called on a gRPC thread
};

class Server {
 public:
  /// Refuses an address that is taken.
  static Result<std::unique_ptr<Server>> create(ServerOptions options, Driver& driver);
  virtual ~Server() = default;
  /// "unix:/path" or "HOST:PORT" with the port that was taken.
  virtual const std::string& address() const = 0;
  /// Ends all streams.
  virtual void shutdown() = 0;
};

/// Fills NAME.secrets/ (mode 0700) with a self-signed certificate, its key and a token, each mode 0600, unless they are
/// there.
Status make_secrets(const std::string& folder);

}  // namespace troupe::driver
