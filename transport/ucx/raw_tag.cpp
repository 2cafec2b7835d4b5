#include "transport/ucx/raw_tag.h"

#include <poll.h>

#include <deque>

#include "transport/ucx/ucx_worker.h"

namespace troupe {
namespace {

constexpr ucp_tag_t kTag = 7;
constexpr std::chrono::microseconds kSpin{50};

class UcxRawTag final : public RawTag {
 public:
  explicit UcxRawTag(std::unique_ptr<UcxWorker> worker) : worker_(std::move(worker)) {}
  ~UcxRawTag() override;
  const std::string& address() const override { return worker_->address(); }
  Status connect(const std::string& address) override;
  Status post_send(const std::byte* data, size_t bytes) override;
  Status post_receive(std::byte* data, size_t bytes) override;
  Status wait_sent(std::chrono::milliseconds timeout) override { return wait(sends_, timeout); }
  Status wait_received(std::chrono::milliseconds timeout) override { return wait(receives_, timeout); }

 private:
  using Requests = std::deque<void*>;  // null: ended at once
  static Status keep(Requests& requests, void* request);
  Status wait(Requests& requests, std::chrono::milliseconds timeout);
  std::unique_ptr<UcxWorker> worker_;
  ucp_ep_h endpoint_ = nullptr;
  Requests sends_, receives_;
};

void ignore_error(void*, ucp_ep_h, ucs_status_t) {}

Status UcxRawTag::connect(const std::string& address) {
  TROUPE_ASSIGN(endpoint_, worker_->connect(address, &ignore_error, nullptr));
  return {};
}

Status UcxRawTag::keep(Requests& requests, void* request) {
  if (UCS_PTR_IS_ERR(request)) return ucx_error("starting a transfer", UCS_PTR_STATUS(request));
  requests.push_back(request);
  return {};
}

Status UcxRawTag::post_send(const std::byte* data, size_t bytes) {
  const ucp_request_param_t param{};
  return keep(sends_, ucp_tag_send_nbx(endpoint_, data, bytes, kTag, &param));
}

Status UcxRawTag::post_receive(std::byte* data, size_t bytes) {
  const ucp_request_param_t param{};
  return keep(receives_, ucp_tag_recv_nbx(worker_->get(), data, bytes, kTag, ~ucp_tag_t{0}, &param));
}

Status UcxRawTag::wait(Requests& requests, std::chrono::milliseconds timeout) {
  if (requests.empty()) return make_error(ErrorCode::kFailedPrecondition, "no transfer is under way");
  void* request = requests.front();
  auto idle_since = std::chrono::steady_clock::now();
  const auto deadline = idle_since + timeout;
  while (request != nullptr && ucp_request_check_status(request) == UCS_INPROGRESS) {
    const auto now = std::chrono::steady_clock::now();
    if (now > deadline) return deadline_exceeded("a raw UCX transfer did not end");
    if (ucp_worker_progress(worker_->get()) != 0) {
      idle_since = now;
    } else if (now - idle_since > kSpin && ucp_worker_arm(worker_->get()) == UCS_OK) {
      pollfd event{worker_->event(), POLLIN, 0};
      poll(&event, 1, static_cast<int>(timeout.count()));
      idle_since = std::chrono::steady_clock::now();
    }
  }
  requests.pop_front();
  if (request == nullptr) return {};
  const ucs_status_t status = ucp_request_check_status(request);
  ucp_request_free(request);
  if (status != UCS_OK) return ucx_error("a transfer", status);
  return {};
}

UcxRawTag::~UcxRawTag() {
  if (endpoint_ == nullptr) return;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void* request = ucp_ep_close_nbx(endpoint_, &param);
  if (!UCS_PTR_IS_PTR(request)) return;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (ucp_request_check_status(request) == UCS_INPROGRESS && std::chrono::steady_clock::now() < deadline)
    ucp_worker_progress(worker_->get());
  ucp_request_free(request);
}

}  // namespace

Result<std::unique_ptr<RawTag>> create_raw_tag(const std::string& transports, bool eager) {
  UcxWorkerOptions options;
  options.transports = transports;
  options.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
  if (eager) options.settings.emplace_back("RNDV_THRESH", "inf");
  TROUPE_ASSIGN(auto worker, UcxWorker::create(options));
  return std::unique_ptr<RawTag>(std::make_unique<UcxRawTag>(std::move(worker)));
}

}  // namespace troupe
