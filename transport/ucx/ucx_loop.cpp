#include "transport/ucx/ucx_loop.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>

#include "transport/channel/message.h"

namespace troupe {
namespace {

constexpr unsigned kMessageId = 1;
/// Polling before sleeping: a wake-up through the event descriptor costs about as much as this.
constexpr std::chrono::microseconds kSpin{50};
constexpr std::chrono::milliseconds kShutdownGrace{500};
constexpr size_t kRetainedBytes = size_t{512} << 20;

Error ucx_error(const std::string& what, ucs_status_t status) {
  return internal_error("UCX: " + what + ": " + ucs_status_string(status));
}

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

struct UcxLoop::Peer {
  UcxLoop* loop = nullptr;
  SlotId slot;
  ucp_ep_h endpoint = nullptr;  // loop thread only after start(); null when closed
  bool sending = false;         // under state_mutex_: sends_under_way > 0
  int sends_under_way = 0;      // under state_mutex_
  bool connected = false;       // under state_mutex_
  bool closed = false;          // under state_mutex_
};

struct UcxLoop::SendOp {
  Peer* peer = nullptr;
  WireHeader header;
  Payload payload;
};

struct UcxLoop::ReceiveOp {
  UcxLoop* loop = nullptr;
  WireHeader header;
  SlabPool::Slab slab;
};

UcxLoop::UcxLoop(const UcxChannelOptions& options, Inbox& inbox)
    : options_(options), inbox_(inbox), pool_(SlabPool::create(kRetainedBytes)) {}

Result<std::unique_ptr<UcxLoop>> UcxLoop::create(const UcxChannelOptions& options, Inbox& inbox) {
  std::unique_ptr<UcxLoop> loop(new UcxLoop(options, inbox));
  TROUPE_RETURN_IF_ERROR(loop->open());
  return loop;
}

Status UcxLoop::open_context() {
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return ucx_error("reading the configuration", status);
  std::vector<std::pair<std::string, std::string>> settings{{"MM_ERROR_HANDLING", "y"}};
  if (!options_.interface_address.empty()) {
    const std::string device = device_of(options_.interface_address);
    if (device.empty()) {
      ucp_config_release(config);
      return invalid_argument("no network device of this machine has the address " + options_.interface_address);
    }
    settings.emplace_back("NET_DEVICES", device);
  }
  std::string refused;
  for (const auto& [name, value] : settings) {
    status = ucp_config_modify(config, name.c_str(), value.c_str());
    if (status != UCS_OK) refused = name + "=" + value;
  }
  if (refused.empty()) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    status = ucp_init(&params, config, &context_);
  }
  ucp_config_release(config);
  if (!refused.empty()) return ucx_error("option " + refused, status);
  if (status != UCS_OK) return ucx_error("initialisation", status);
  return {};
}

Status UcxLoop::open_worker() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;  // made here, used by the loop's thread
  ucs_status_t status = ucp_worker_create(context_, &params, &worker_);
  if (status != UCS_OK) return ucx_error("creating a worker", status);
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMessageId;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = &UcxLoop::on_message;
  handler.arg = this;
  status = ucp_worker_set_am_recv_handler(worker_, &handler);
  if (status != UCS_OK) return ucx_error("setting the message handler", status);
  status = ucp_worker_get_efd(worker_, &worker_event_);
  if (status != UCS_OK) return ucx_error("asking for the event descriptor", status);
  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  status = ucp_worker_get_address(worker_, &address, &bytes);
  if (status != UCS_OK) return ucx_error("asking for the worker's address", status);
  address_.assign(reinterpret_cast<const char*>(address), bytes);
  ucp_worker_release_address(worker_, address);
  return {};
}

Status UcxLoop::open() {
  wake_event_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_event_ < 0)
    return make_error(ErrorCode::kResourceExhausted, std::string("no event descriptor: ") + std::strerror(errno));
  TROUPE_RETURN_IF_ERROR(open_context());
  return open_worker();
}

Status UcxLoop::start(const std::map<SlotId, std::string>& addresses) {
  for (const auto& [slot, address] : addresses) {
    auto peer = std::make_unique<Peer>();
    peer->loop = this;
    peer->slot = slot;
    ucp_ep_params_t params{};
    params.field_mask =
        UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = &UcxLoop::on_error;
    params.err_handler.arg = peer.get();
    const ucs_status_t status = ucp_ep_create(worker_, &params, &peer->endpoint);
    if (status != UCS_OK) return ucx_error("connecting to slot " + std::to_string(slot.value), status);
    peers_[slot] = std::move(peer);
  }
  for (auto& [slot, peer] : peers_) begin_flush(*peer);
  thread_ = std::thread([this] { run(); });
  return {};
}

/// A flush of a fresh endpoint ends when the peer has answered.
void UcxLoop::begin_flush(Peer& peer) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &UcxLoop::on_flushed;
  param.user_data = &peer;
  void* request = ucp_ep_flush_nbx(peer.endpoint, &param);
  if (!UCS_PTR_IS_PTR(request)) on_flushed(nullptr, UCS_PTR_STATUS(request), &peer);
}

void UcxLoop::on_flushed(void* request, ucs_status_t status, void* argument) {
  auto* peer = static_cast<Peer*>(argument);
  if (request != nullptr) ucp_request_free(request);
  {
    std::lock_guard lock(peer->loop->state_mutex_);
    if (status == UCS_OK) peer->connected = true;
  }
  peer->loop->state_changed_.notify_all();
}

std::string UcxLoop::peers_where(bool Peer::*flag, bool value) const {
  std::string names;
  for (const auto& [slot, peer] : peers_) {
    if (peer.get()->*flag == value && !peer->closed) names += (names.empty() ? "" : ", ") + std::to_string(slot.value);
  }
  return names;
}

Status UcxLoop::wait_connected(std::chrono::milliseconds timeout) {
  std::unique_lock lock(state_mutex_);
  const auto settled = [this] { return peers_where(&Peer::connected, false).empty(); };
  if (!state_changed_.wait_until(lock, std::chrono::steady_clock::now() + timeout, settled)) {
    return deadline_exceeded("slots " + peers_where(&Peer::connected, false) + " did not answer slot " +
                             std::to_string(options_.self.value) + " within " + std::to_string(timeout.count()) +
                             " ms");
  }
  for (const auto& [slot, peer] : peers_) {
    if (!peer->connected)
      return unavailable("slot " + std::to_string(slot.value) + " went away while slot " +
                         std::to_string(options_.self.value) + " connected to it");
  }
  return {};
}

void UcxLoop::post(Command command) {
  {
    std::lock_guard lock(command_mutex_);
    commands_.push_back(std::move(command));
  }
  if (sleeping_.load()) {
    const uint64_t one = 1;
    [[maybe_unused]] const auto written = write(wake_event_, &one, sizeof one);
  }
}

Status UcxLoop::send(SlotId to, const WireHeader& header, Payload payload) {
  const auto found = peers_.find(to);
  if (found == peers_.end()) {
    return make_error(ErrorCode::kFailedPrecondition, "slot " + std::to_string(options_.self.value) +
                                                          " is not connected to slot " + std::to_string(to.value) +
                                                          ": " + header.tag().to_string());
  }
  {
    std::lock_guard lock(state_mutex_);
    ++found->second->sends_under_way;
    found->second->sending = true;
  }
  post({Command::Kind::kSend, to, header, std::move(payload)});
  return {};
}

Status UcxLoop::flush(std::chrono::milliseconds timeout) {
  std::unique_lock lock(state_mutex_);
  const auto done = [this] { return peers_where(&Peer::sending, true).empty() || !inbox_.usable(SlotId(-1), {}).ok(); };
  if (!state_changed_.wait_until(lock, std::chrono::steady_clock::now() + timeout, done)) {
    return deadline_exceeded("messages of slot " + std::to_string(options_.self.value) + " to slots " +
                             peers_where(&Peer::sending, true) + " were not taken within " +
                             std::to_string(timeout.count()) + " ms");
  }
  return inbox_.usable(SlotId(-1), {});
}

void UcxLoop::close_peer(SlotId peer) {
  if (thread_.joinable()) post({Command::Kind::kClosePeer, peer, {}, {}});
}

void UcxLoop::close_all() {
  { std::lock_guard lock(state_mutex_); }
  state_changed_.notify_all();
  if (thread_.joinable()) post({Command::Kind::kCloseAll, {}, {}, {}});
}

bool UcxLoop::run_commands() {
  {
    std::lock_guard lock(command_mutex_);
    running_.swap(commands_);
  }
  for (Command& command : running_) {
    switch (command.kind) {
      case Command::Kind::kSend:
        start_send(command);
        break;
      case Command::Kind::kClosePeer: {
        const auto found = peers_.find(command.peer);
        if (found != peers_.end()) close_endpoint(*found->second, UCS_ERR_CANCELED);
        break;
      }
      case Command::Kind::kCloseAll:
        for (auto& [slot, peer] : peers_) close_endpoint(*peer, UCS_ERR_CANCELED);
        break;
      case Command::Kind::kStop:
        stop_ = true;
        break;
    }
  }
  const bool any = !running_.empty();
  running_.clear();
  return any;
}

void UcxLoop::run() {
  auto idle_since = std::chrono::steady_clock::now();
  while (!stop_) {
    bool worked = run_commands();
    while (ucp_worker_progress(worker_) != 0) worked = true;
    const auto now = std::chrono::steady_clock::now();
    if (worked) {
      idle_since = now;
    } else if (now - idle_since > kSpin) {
      wait_for_work();
      idle_since = std::chrono::steady_clock::now();
    }
  }
  shut_down();
}

/// Sleeps until UCX or a command has something to do. The order matters: who posts a command after the look into the
/// queue sees sleeping_.
void UcxLoop::wait_for_work() {
  sleeping_.store(true);
  bool empty = true;
  {
    std::lock_guard lock(command_mutex_);
    empty = commands_.empty();
  }
  if (empty && ucp_worker_arm(worker_) == UCS_OK) {
    pollfd events[2] = {{worker_event_, POLLIN, 0}, {wake_event_, POLLIN, 0}};
    poll(events, 2, -1);
  }
  sleeping_.store(false);
  uint64_t count = 0;
  [[maybe_unused]] const auto drained = read(wake_event_, &count, sizeof count);
}

void UcxLoop::start_send(Command& command) {
  Peer& peer = *peers_.at(command.peer);
  std::unique_ptr<SendOp> op;
  if (free_sends_.empty()) {
    op = std::make_unique<SendOp>();
  } else {
    op = std::move(free_sends_.back());
    free_sends_.pop_back();
  }
  op->peer = &peer;
  op->header = command.header;
  op->payload = std::move(command.payload);
  SendOp* raw = op.release();
  if (peer.endpoint == nullptr) {
    end_send(raw, UCS_ERR_CANCELED);
    return;
  }
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &UcxLoop::on_sent;
  param.user_data = raw;
  void* request = ucp_am_send_nbx(peer.endpoint, kMessageId, &raw->header, sizeof raw->header, raw->payload.data,
                                  raw->payload.bytes, &param);
  if (!UCS_PTR_IS_PTR(request)) end_send(raw, UCS_PTR_STATUS(request));
}

void UcxLoop::on_sent(void* request, ucs_status_t status, void* argument) {
  auto* op = static_cast<SendOp*>(argument);
  UcxLoop* loop = op->peer->loop;
  ucp_request_free(request);
  loop->end_send(op, status);
}

void UcxLoop::end_send(SendOp* op, ucs_status_t status) {
  std::unique_ptr<SendOp> ended(op);
  Peer& peer = *ended->peer;
  ended->payload = {};
  free_sends_.push_back(std::move(ended));
  if (status != UCS_OK && status != UCS_ERR_CANCELED) lose(peer, status);
  {
    std::lock_guard lock(state_mutex_);
    peer.sending = --peer.sends_under_way > 0;
  }
  state_changed_.notify_all();
}

ucs_status_t UcxLoop::on_message(void* self, const void* header, size_t header_bytes, void* data, size_t bytes,
                                 const ucp_am_recv_param_t* param) {
  return static_cast<UcxLoop*>(self)->arrive(header, header_bytes, data, bytes, param);
}

ucs_status_t UcxLoop::arrive(const void* header, size_t header_bytes, void* data, size_t bytes,
                             const ucp_am_recv_param_t* param) {
  WireHeader wire;
  if (header_bytes != sizeof wire) return UCS_OK;  // not of this program; dropped unread
  std::memcpy(&wire, header, sizeof wire);
  if (wire.magic != WireHeader::kMagic || wire.bytes != bytes) return UCS_OK;
  const SlotId from(wire.from_slot);
  Inbox::Admission admission = inbox_.admit(from, wire.tag(), wire.header());
  if (!admission.wanted) return UCS_OK;
  SlabPool::Slab slab;
  if (admission.landing.owner && admission.landing.bytes >= bytes) {
    // The landing place came from this loop's pool, whose memory is writable; Payload only shows it as read-only.
    slab = {const_cast<std::byte*>(admission.landing.data), admission.landing.bytes,
            std::move(admission.landing.owner)};
  } else {
    slab = pool_->take(bytes);
  }
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
    if (bytes > 0) std::memcpy(slab.data, data, bytes);
    inbox_.complete(from, wire.tag(), {slab.data, bytes, std::move(slab.owner), nullptr});
    return UCS_OK;
  }
  std::unique_ptr<ReceiveOp> op;
  if (free_receives_.empty()) {
    op = std::make_unique<ReceiveOp>();
  } else {
    op = std::move(free_receives_.back());
    free_receives_.pop_back();
  }
  op->loop = this;
  op->header = wire;
  op->slab = std::move(slab);
  ReceiveOp* raw = op.release();
  ucp_request_param_t receive{};
  receive.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  receive.cb.recv_am = &UcxLoop::on_received;
  receive.user_data = raw;
  void* request = ucp_am_recv_data_nbx(worker_, data, raw->slab.data, bytes, &receive);
  if (!UCS_PTR_IS_PTR(request)) end_receive(raw, UCS_PTR_STATUS(request));
  return UCS_OK;
}

void UcxLoop::on_received(void* request, ucs_status_t status, size_t, void* argument) {
  auto* op = static_cast<ReceiveOp*>(argument);
  ucp_request_free(request);
  op->loop->end_receive(op, status);
}

void UcxLoop::end_receive(ReceiveOp* op, ucs_status_t status) {
  std::unique_ptr<ReceiveOp> ended(op);
  const SlotId from(ended->header.from_slot);
  const MessageTag tag = ended->header.tag();
  if (status == UCS_OK) {
    inbox_.complete(from, tag, {ended->slab.data, ended->header.bytes, std::move(ended->slab.owner), nullptr});
  } else {
    cut_off_.push_back(std::move(ended->slab));
    inbox_.fail(from, tag, peer_is_lost(from, tag, ucs_status_string(status)));
  }
  ended->slab = {};
  free_receives_.push_back(std::move(ended));
}

void UcxLoop::on_error(void* argument, ucp_ep_h, ucs_status_t status) {
  auto* peer = static_cast<Peer*>(argument);
  peer->loop->lose(*peer, status);
  peer->loop->post(
      {Command::Kind::kClosePeer, peer->slot, {}, {}});  // an endpoint is not closed inside its own callback
}

void UcxLoop::lose(Peer& peer, ucs_status_t status) {
  inbox_.lose(peer.slot, ucs_status_string(status));
  {
    std::lock_guard lock(state_mutex_);
    peer.closed = true;
  }
  state_changed_.notify_all();
}

void UcxLoop::close_endpoint(Peer& peer, ucs_status_t reason) {
  if (peer.endpoint == nullptr) return;
  lose(peer, reason);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void* request = ucp_ep_close_nbx(peer.endpoint, &param);
  peer.endpoint = nullptr;
  if (UCS_PTR_IS_PTR(request)) closing_.push_back(request);
}

/// Lets what is under way leave, for a bounded time, then closes by force and waits until UCX has let go of every
/// endpoint.
void UcxLoop::shut_down() {
  const auto progress_until = [this](const auto& done) {
    const auto deadline = std::chrono::steady_clock::now() + kShutdownGrace;
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      run_commands();
      ucp_worker_progress(worker_);
    }
  };
  std::vector<void*> flushes;
  for (auto& [slot, peer] : peers_) {
    ucp_request_param_t param{};
    void* request = peer->endpoint == nullptr ? nullptr : ucp_ep_flush_nbx(peer->endpoint, &param);
    if (UCS_PTR_IS_PTR(request)) flushes.push_back(request);
  }
  const auto all_done = [](const std::vector<void*>& requests) {
    for (void* request : requests) {
      if (ucp_request_check_status(request) == UCS_INPROGRESS) return false;
    }
    return true;
  };
  progress_until([&] { return all_done(flushes); });
  for (auto& [slot, peer] : peers_) close_endpoint(*peer, UCS_ERR_CANCELED);
  progress_until([&] { return all_done(closing_) && all_done(flushes); });
  for (void* request : flushes) ucp_request_free(request);
  for (void* request : closing_) ucp_request_free(request);
}

UcxLoop::~UcxLoop() {
  if (thread_.joinable()) {
    post({Command::Kind::kStop, {}, {}, {}});
    thread_.join();
  }
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
  if (wake_event_ >= 0) close(wake_event_);
}

}  // namespace troupe
