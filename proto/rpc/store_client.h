#pragma once

#include <memory>
#include <string>

#include "base/rendezvous/kv_store.h"
#include "proto/rpc/channel.h"

namespace troupe {

/// The job's rendezvous store over the control plane. Thread-safe; one unary call an operation; a waiting get costs no
/// polling. The driver ends the waits of a job that ends (Cancelled).
std::unique_ptr<KvStore> make_store_client(Connection connection, std::string job_id);

}  // namespace troupe
