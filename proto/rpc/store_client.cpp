#include "proto/rpc/store_client.h"

#include "proto/rpc/control.grpc.pb.h"
#include "proto/rpc/error_message.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kCallTimeout{30000};
constexpr milliseconds kAnswerSlack{5000};

class StoreClient final : public KvStore {
 public:
  StoreClient(Connection connection, std::string job_id)
      : connection_(std::move(connection)),
        job_id_(std::move(job_id)),
        stub_(wire::Store::NewStub(connection_.channel)) {}

  Status set(const std::string& key, const std::string& value) override {
    auto request = make(wire::StoreRequest::SET, key);
    request.set_value(value);
    return call(request, kCallTimeout).status();
  }

  Result<std::string> get(const std::string& key, milliseconds timeout) override {
    auto request = make(wire::StoreRequest::GET, key);
    request.set_timeout_ms(static_cast<uint32_t>(std::max<int64_t>(0, timeout.count())));
    // The driver's deadline ends first: its answer says which key was missing.
    TROUPE_ASSIGN(auto reply, call(request, timeout + kAnswerSlack));
    return std::move(*reply.mutable_value());
  }

  Result<int64_t> add(const std::string& key, int64_t amount) override {
    auto request = make(wire::StoreRequest::ADD, key);
    request.set_amount(amount);
    TROUPE_ASSIGN(auto reply, call(request, kCallTimeout));
    return reply.number();
  }

  Result<std::string> compare_set(const std::string& key, const std::string& expected,
                                  const std::string& desired) override {
    auto request = make(wire::StoreRequest::COMPARE_SET, key);
    request.set_expected(expected);
    request.set_value(desired);
    TROUPE_ASSIGN(auto reply, call(request, kCallTimeout));
    return std::move(*reply.mutable_value());
  }

  Result<bool> check(const std::vector<std::string>& keys) override {
    auto request = make(wire::StoreRequest::CHECK, "");
    request.clear_keys();
    for (const auto& key : keys) request.add_keys(key);
    TROUPE_ASSIGN(auto reply, call(request, kCallTimeout));
    return reply.flag();
  }

  Result<bool> erase(const std::string& key) override {
    TROUPE_ASSIGN(auto reply, call(make(wire::StoreRequest::ERASE, key), kCallTimeout));
    return reply.flag();
  }

 private:
  wire::StoreRequest make(wire::StoreRequest::Kind kind, const std::string& key) const {
    wire::StoreRequest request;
    request.set_kind(kind);
    request.set_job_id(job_id_);
    request.add_keys(key);
    return request;
  }

  Result<wire::StoreReply> call(const wire::StoreRequest& request, milliseconds timeout) {
    grpc::ClientContext context;
    connection_.sign(context);
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    wire::StoreReply reply;
    grpc::Status status = stub_->Call(&context, request, &reply);
    const std::string key = request.keys_size() > 0 ? request.keys(0) : "";
    if (!status.ok()) return from_grpc(status, "rendezvous store, key '" + key + "'");
    if (reply.has_error()) return from_message(reply.error());
    return reply;
  }

  Connection connection_;
  std::string job_id_;
  std::unique_ptr<wire::Store::Stub> stub_;
};

}  // namespace

std::unique_ptr<KvStore> make_store_client(Connection connection, std::string job_id) {
  return std::make_unique<StoreClient>(std::move(connection), std::move(job_id));
}

}  // namespace troupe
