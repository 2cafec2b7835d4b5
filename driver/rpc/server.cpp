#include "driver/rpc/server.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "driver/rpc/services.h"
#include "proto/rpc/channel.h"

namespace troupe::driver {
namespace {

class GrpcServer final : public Server {
 public:
  GrpcServer(ServerOptions options, Driver& driver, std::string token)
      : options_(std::move(options)),
        token_(std::move(token)),
        client_(make_client_service(driver, options_.planner, token_, closing_)),
        worker_(make_worker_service(driver, token_)),
        host_(make_host_service(driver, token_)),
        store_(make_store_service(driver, token_)) {}

  ~GrpcServer() override { shutdown(); }

  Status start() {
    grpc::ServerBuilder builder;
    int port = 0;
    TROUPE_RETURN_IF_ERROR(listen_at(builder, options_.address, options_.secrets, &port));
    for (grpc::Service* service : {client_.get(), worker_.get(), host_.get(), store_.get()})
      builder.RegisterService(service);
    server_ = builder.BuildAndStart();
    const bool is_unix = is_unix_address(options_.address);
    if (!server_ || (!is_unix && port == 0))
      return make_error(ErrorCode::kInvalidArgument,
                        "cannot listen on " + options_.address +
                            "; is another driver running there, or is the address not this machine's?");
    address_ = options_.address;
    if (!is_unix) address_ = address_.substr(0, address_.rfind(':') + 1) + std::to_string(port);
    return {};
  }

  const std::string& address() const override { return address_; }

  void shutdown() override {
    closing_ = true;
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(300));
  }

 private:
  ServerOptions options_;
  TokenCheck token_;
  std::atomic<bool> closing_{false};
  std::unique_ptr<grpc::Service> client_, worker_, host_, store_;
  std::unique_ptr<grpc::Server> server_;  // last: ends before the services
  std::string address_;
};

}  // namespace

bool TokenCheck::passes(const grpc::ServerContextBase& context) const {
  if (token_.empty()) return true;
  const auto& metadata = context.client_metadata();
  const auto at = metadata.find(kTokenHeader);
  if (at == metadata.end()) return false;
  const std::string given(at->second.data(), at->second.size());
  unsigned difference = given.size() == token_.size() ? 0 : 1;
  for (size_t i = 0; i < token_.size(); ++i)
    difference |= static_cast<unsigned char>(token_[i]) ^ static_cast<unsigned char>(i < given.size() ? given[i] : 0);
  return difference == 0;
}

Result<std::unique_ptr<Server>> Server::create(ServerOptions options, Driver& driver) {
  std::string token;
  if (!options.secrets.token_file.empty()) {
    TROUPE_ASSIGN(token, read_secret(options.secrets.token_file));
  }
  quiet_grpc();
  auto server = std::make_unique<GrpcServer>(std::move(options), driver, std::move(token));
  TROUPE_RETURN_IF_ERROR(server->start());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace troupe::driver
