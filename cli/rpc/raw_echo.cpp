#include "cli/rpc/raw_echo.h"

#include <grpcpp/completion_queue.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "proto/rpc/channel.h"
#include "proto/rpc/echo.grpc.pb.h"

namespace troupe::cli {
namespace {

constexpr std::chrono::seconds kConnect{10}, kCall{10};

class Service final : public wire::RawEchoService::Service {
  grpc::Status Call(grpc::ServerContext*, const wire::RawEcho* request, wire::RawEcho* reply) override {
    reply->set_payload(request->payload());
    return grpc::Status::OK;
  }
};

[[noreturn]] void serve(const std::string& address, int parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  Service service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (!server) ::_exit(1);
  for (;;) ::pause();  // until it is killed
}

class Client final : public RawEchoClient {
 public:
  Status connect(const std::vector<std::string>& addresses) {
    for (const std::string& address : addresses) {
      TROUPE_ASSIGN(auto connection, open_connection(address, {}));
      if (!connection.channel->WaitForConnected(std::chrono::system_clock::now() + kConnect))
        return deadline_exceeded("the raw gRPC server at " + address + " is not there");
      stubs_.push_back(wire::RawEchoService::NewStub(connection.channel));
    }
    return {};
  }

  Status call() override {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCall);
    wire::RawEcho request, reply;
    const grpc::Status status = stubs_.front()->Call(&context, request, &reply);
    return status.ok() ? Status() : from_grpc(status, "raw gRPC call");
  }

  Status fan_out() override {
    struct One {
      grpc::ClientContext context;
      wire::RawEcho reply;
      grpc::Status status;
      std::unique_ptr<grpc::ClientAsyncResponseReader<wire::RawEcho>> reader;
    };
    std::vector<One> calls(stubs_.size());
    const wire::RawEcho request;
    for (size_t i = 0; i < stubs_.size(); ++i) {
      calls[i].context.set_deadline(std::chrono::system_clock::now() + kCall);
      calls[i].reader = stubs_[i]->AsyncCall(&calls[i].context, request, &queue_);
      calls[i].reader->Finish(&calls[i].reply, &calls[i].status, &calls[i]);
    }
    for (size_t i = 0; i < stubs_.size(); ++i) {
      void* tag = nullptr;
      bool ok = false;
      if (!queue_.Next(&tag, &ok)) return internal_error("the completion queue has ended");
    }
    for (const One& one : calls)
      if (!one.status.ok()) return from_grpc(one.status, "raw gRPC fan-out");
    return {};
  }

 private:
  std::vector<std::unique_ptr<wire::RawEchoService::Stub>> stubs_;
  grpc::CompletionQueue queue_;
};

}  // namespace

Result<std::unique_ptr<RawEchoServer>> RawEchoServer::start(const std::string& address) {
  const int parent = ::getpid();
  const int pid = ::fork();
  if (pid == 0) serve(address, parent);
  if (pid < 0) return make_error(ErrorCode::kResourceExhausted, std::string("fork: ") + std::strerror(errno));
  return std::unique_ptr<RawEchoServer>(new RawEchoServer(pid));
}

RawEchoServer::~RawEchoServer() {
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<std::unique_ptr<RawEchoClient>> RawEchoClient::connect(const std::vector<std::string>& addresses) {
  auto client = std::make_unique<Client>();
  TROUPE_RETURN_IF_ERROR(client->connect(addresses));
  return std::unique_ptr<RawEchoClient>(std::move(client));
}

}  // namespace troupe::cli
