#pragma once

#include <future>
#include <memory>
#include <optional>
#include <string>

#include "base/config/manifest.h"
#include "cli/janitor.h"
#include "driver/rpc/server.h"

/// A driver inside this process, with its workers: what `run`, `eval` and the benches of whole jobs stand on.
namespace troupe::cli {

/// What `run` and `eval` start on this machine beside the driver: one worker in this process, or a worker process a
/// node.
class Workers {
 public:
  virtual ~Workers() = default;
  /// The error that ended them, if one did.
  virtual std::optional<Error> failed() = 0;
};

/// The parts of an embedded run, in the order in which they end (last first). Owner thread only.
struct Embedded {
  std::unique_ptr<PrivateFolder> folder;
  std::unique_ptr<driver::Driver> driver;
  std::unique_ptr<driver::Server> server;
  std::unique_ptr<Workers> workers;
  ~Embedded() {
    if (driver) driver->close();
    workers.reset();
    if (server) server->shutdown();
    server.reset();  // its last callbacks still speak to the driver
    driver.reset();
  }
};

/// Makes the private folder, the driver and its server; without a manifest it listens on a Unix socket in that folder.
/// Blocks the signals that cli/signals.h waits for. To be called before any thread is started.
Status start_driver(Embedded& embedded, const std::optional<Manifest>& manifest);
/// Starts one worker in this process, or, with a manifest whose launch is local, a worker process a node.
Status start_workers(Embedded& embedded, const std::optional<Manifest>& manifest, const std::string& actor,
                     const std::string& run_folder);

/// The job's last update, when there is one. `each`: called with every update on the driver's loop; must not block.
Result<std::future<driver::JobUpdate>> end_of_job(driver::Driver& driver, const std::string& job,
                                                  driver::Driver::Watcher each = {});

}  // namespace troupe::cli
