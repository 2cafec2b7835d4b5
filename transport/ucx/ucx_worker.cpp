#include "transport/ucx/ucx_worker.h"

#include <arpa/inet.h>
#include <ifaddrs.h>

namespace troupe {
namespace {

/// The network device that owns `address`, empty when none does.
std::string device_of(const std::string& address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "";
  std::string name;
  for (const ifaddrs* at = list; at != nullptr && name.empty(); at = at->ifa_next) {
    if (at->ifa_addr == nullptr) continue;
    char text[INET6_ADDRSTRLEN] = "";
    if (at->ifa_addr->sa_family == AF_INET) {
      inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr, text, sizeof text);
    } else if (at->ifa_addr->sa_family == AF_INET6) {
      inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(at->ifa_addr)->sin6_addr, text, sizeof text);
    }
    if (address == text) name = at->ifa_name;
  }
  freeifaddrs(list);
  return name;
}

}  // namespace

Error ucx_error(const std::string& what, ucs_status_t status) {
  return internal_error("UCX: " + what + ": " + ucs_status_string(status));
}

Status UcxWorker::open_context(const UcxWorkerOptions& options) {
  std::vector<std::pair<std::string, std::string>> settings = options.settings;
  if (options.transports != "tcp") settings.emplace_back("MM_ERROR_HANDLING", "y");
  if (!options.transports.empty()) settings.emplace_back("TLS", options.transports);
  if (!options.interface_address.empty()) {
    const std::string device = device_of(options.interface_address);
    if (device.empty())
      return invalid_argument("no network device of this machine has the address " + options.interface_address);
    settings.emplace_back("NET_DEVICES", device);
  }
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return ucx_error("reading the configuration", status);
  std::string refused;
  for (const auto& [name, value] : settings) {
    const ucs_status_t taken = ucp_config_modify(config, name.c_str(), value.c_str());
    if (taken == UCS_OK) continue;
    refused = name + "=" + value;
    status = taken;
  }
  if (refused.empty()) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = options.features;
    status = ucp_init(&params, config, &context_);
  }
  ucp_config_release(config);
  if (!refused.empty()) return ucx_error("option " + refused, status);
  if (status != UCS_OK) return ucx_error("initialisation", status);
  return {};
}

Status UcxWorker::open_worker() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucs_status_t status = ucp_worker_create(context_, &params, &worker_);
  if (status != UCS_OK) return ucx_error("creating a worker", status);
  status = ucp_worker_get_efd(worker_, &event_);
  if (status != UCS_OK) return ucx_error("asking for the event descriptor", status);
  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  status = ucp_worker_get_address(worker_, &address, &bytes);
  if (status != UCS_OK) return ucx_error("asking for the worker's address", status);
  address_.assign(reinterpret_cast<const char*>(address), bytes);
  ucp_worker_release_address(worker_, address);
  return {};
}

Result<std::unique_ptr<UcxWorker>> UcxWorker::create(const UcxWorkerOptions& options) {
  std::unique_ptr<UcxWorker> self(new UcxWorker);
  TROUPE_RETURN_IF_ERROR(self->open_context(options));
  TROUPE_RETURN_IF_ERROR(self->open_worker());
  return self;
}

Result<ucp_ep_h> UcxWorker::connect(const std::string& address, ucp_err_handler_cb_t on_error, void* argument) const {
  ucp_ep_params_t params{};
  params.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = on_error;
  params.err_handler.arg = argument;
  ucp_ep_h endpoint = nullptr;
  const ucs_status_t status = ucp_ep_create(worker_, &params, &endpoint);
  if (status == UCS_OK) return endpoint;
  // What a peer that has gone leaves behind: no memory to map, no port that listens.
  const bool gone = status == UCS_ERR_SHMEM_SEGMENT || status == UCS_ERR_REJECTED || status == UCS_ERR_IO_ERROR ||
                    status == UCS_ERR_NOT_CONNECTED || status == UCS_ERR_CONNECTION_RESET ||
                    status == UCS_ERR_ENDPOINT_TIMEOUT;
  Error error = ucx_error("making an endpoint", status);
  if (gone) error.code = ErrorCode::kUnavailable;
  return error;
}

void UcxWorker::abandon() {
  worker_ = nullptr;
  context_ = nullptr;
}

UcxWorker::~UcxWorker() {
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

}  // namespace troupe
