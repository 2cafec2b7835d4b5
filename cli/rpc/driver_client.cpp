#include "cli/rpc/driver_client.h"

#include <atomic>
#include <mutex>

#include "proto/rpc/channel.h"
#include "proto/rpc/control.grpc.pb.h"
#include "proto/rpc/error_message.h"

namespace troupe::cli {
namespace {

constexpr std::chrono::seconds kReach{4};
constexpr std::chrono::seconds kCall{60};

class RpcDriverClient final : public DriverClient {
 public:
  RpcDriverClient(std::string address, Connection connection)
      : address_(std::move(address)),
        connection_(std::move(connection)),
        stub_(wire::Client::NewStub(connection_.channel)) {}

  Status reach() {
    if (connection_.channel->WaitForConnected(std::chrono::system_clock::now() + kReach)) return {};
    return unavailable("no driver answers at " + address_);
  }

  Result<SubmitAnswer> submit(const std::string& job_yaml, const std::string& run_folder,
                              const std::string& resume) override {
    wire::SubmitRequest request;
    request.set_job_yaml(job_yaml);
    request.set_run_folder(run_folder);
    request.set_mode("train");
    request.set_resume(resume);
    wire::SubmitReply reply;
    grpc::ClientContext context;
    prepare(context);
    const grpc::Status status = stub_->Submit(&context, request, &reply);
    if (!status.ok()) return failure(status);
    if (reply.has_error()) return from_message(reply.error());
    return SubmitAnswer{reply.job_id(), reply.run_folder(), reply.plan_text()};
  }

  Result<std::string> status_json(const std::string& job_id) override {
    wire::StatusRequest request;
    request.set_job_id(job_id);
    wire::StatusReply reply;
    grpc::ClientContext context;
    prepare(context);
    const grpc::Status status = stub_->Status(&context, request, &reply);
    if (!status.ok()) return failure(status);
    if (reply.has_error()) return from_message(reply.error());
    return reply.json();
  }

  Status cancel(const std::string& job_id) override {
    wire::CancelRequest request;
    request.set_job_id(job_id);
    wire::CancelReply reply;
    grpc::ClientContext context;
    prepare(context);
    const grpc::Status status = stub_->Cancel(&context, request, &reply);
    if (!status.ok()) return failure(status);
    if (reply.has_error()) return from_message(reply.error());
    return {};
  }

  Status watch(const std::string& job_id, const std::function<void(const driver::JobUpdate&)>& update) override {
    wire::WatchRequest request;
    request.set_job_id(job_id);
    grpc::ClientContext context;
    connection_.sign(context);
    const Stoppable stoppable(*this, context);
    auto reader = stub_->Watch(&context, request);
    wire::WatchUpdate message;
    bool finished = false;
    std::optional<Error> error;
    while (reader->Read(&message)) {
      if (message.has_error()) {
        error = from_message(message.error());
        continue;
      }
      driver::JobUpdate out;
      out.kind = message.finished()   ? driver::JobUpdate::Kind::kEnd
                 : message.progress() ? driver::JobUpdate::Kind::kProgress
                                      : driver::JobUpdate::Kind::kLine;
      out.text = message.line();
      out.exit_code = message.exit_code();
      out.result_json = message.result_json();
      finished = finished || message.finished();
      update(out);
    }
    const grpc::Status status = reader->Finish();
    if (error) return *error;
    if (finished) return {};
    if (stopped_) return cancelled("stopped watching job " + job_id);
    if (!status.ok()) return failure(status);
    return unavailable("the driver at " + address_ + " went away while job " + job_id + " was running");
  }

  Status logs(const std::string& job_id, const std::string& group, int rank, bool follow,
              const std::function<void(const std::string&)>& text) override {
    wire::LogsRequest request;
    request.set_job_id(job_id);
    request.set_group(group);
    request.set_rank(rank);
    request.set_follow(follow);
    grpc::ClientContext context;
    connection_.sign(context);
    const Stoppable stoppable(*this, context);
    auto reader = stub_->Logs(&context, request);
    wire::LogChunk chunk;
    std::optional<Error> error;
    while (reader->Read(&chunk)) {
      if (chunk.has_error())
        error = from_message(chunk.error());
      else
        text(chunk.text());
    }
    const grpc::Status status = reader->Finish();
    if (error) return *error;
    if (!status.ok() && !stopped_) return failure(status);
    return {};
  }

  void stop() override {
    stopped_ = true;
    std::lock_guard lock(mutex_);
    if (context_) context_->TryCancel();
  }

 private:
  /// While it lives, stop() cancels `context`.
  class Stoppable {
   public:
    Stoppable(RpcDriverClient& client, grpc::ClientContext& context) : client_(client) {
      std::lock_guard lock(client_.mutex_);
      client_.context_ = &context;
      if (client_.stopped_) context.TryCancel();
    }
    ~Stoppable() {
      std::lock_guard lock(client_.mutex_);
      client_.context_ = nullptr;
    }

   private:
    RpcDriverClient& client_;
  };

  void prepare(grpc::ClientContext& context) {
    connection_.sign(context);
    context.set_deadline(std::chrono::system_clock::now() + kCall);
  }
  Error failure(const grpc::Status& status) const { return from_grpc(status, "driver at " + address_); }

  std::string address_;
  Connection connection_;
  std::unique_ptr<wire::Client::Stub> stub_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  grpc::ClientContext* context_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<DriverClient>> DriverClient::connect(const std::string& address, const Secrets& secrets) {
  TROUPE_ASSIGN(auto connection, open_connection(address, secrets));
  auto client = std::make_unique<RpcDriverClient>(address, std::move(connection));
  TROUPE_RETURN_IF_ERROR(client->reach());
  return std::unique_ptr<DriverClient>(std::move(client));
}

}  // namespace troupe::cli
