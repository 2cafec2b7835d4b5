#include "cli/rpc/raw_echo.h"

#include <grpcpp/completion_queue.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include <chrono>

#include "proto/rpc/channel.h"
#include "proto/rpc/echo.grpc.pb.h"

namespace troupe::cli {
namespace {

constexpr std::chrono::seconds kConnect{10}, kCall{10};

class UnaryService final : public wire::RawEchoService::Service {
  grpc::Status Call(grpc::ServerContext*, const wire::RawEcho* request, wire::RawEcho* reply) override {
    reply->set_payload(request->payload());
    return grpc::Status::OK;
  }
};

int serve_calls(const std::string& address) {
  UnaryService service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (!server) return 1;
  for (;;) ::pause();
}

/// Until the client has gone.
void serve_stream(wire::RawEchoService::AsyncService& service, grpc::ServerCompletionQueue& queue) {
  enum Tag : intptr_t { kAccepted = 1, kRead, kWritten, kFinished };
  const auto tag_of = [](Tag tag) { return reinterpret_cast<void*>(tag); };
  grpc::ServerContext context;
  grpc::ServerAsyncReaderWriter<wire::RawEcho, wire::RawEcho> stream(&context);
  wire::RawEcho incoming, outgoing;
  service.RequestOpen(&context, &stream, &queue, &queue, tag_of(kAccepted));
  bool writing = false, unanswered = false, gone = false;
  const auto answer = [&] {
    outgoing.Swap(&incoming);
    stream.Write(outgoing, tag_of(kWritten));
    writing = true;
    unanswered = false;
    stream.Read(&incoming, tag_of(kRead));
  };
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok) && tag != tag_of(kFinished)) {
    if (tag == tag_of(kWritten)) {
      writing = false;
    } else if (!ok) {
      gone = true;
    } else if (tag == tag_of(kAccepted)) {
      stream.Read(&incoming, tag_of(kRead));
    } else {
      unanswered = true;
    }
    // One write at a time: the next message may come before it is said that the last answer has left.
    if (writing) continue;
    if (unanswered)
      answer();
    else if (gone)
      stream.Finish(grpc::Status::OK, tag_of(kFinished));
  }
}

int serve_streams(const std::string& address) {
  wire::RawEchoService::AsyncService service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  if (!server) return 1;
  for (;;) serve_stream(service, *queue);
}

class Client : public RawEchoClient {
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

 protected:
  std::vector<std::unique_ptr<wire::RawEchoService::Stub>> stubs_;
};

class UnaryClient final : public Client {
 public:
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
  grpc::CompletionQueue queue_;
};

class StreamClient final : public Client {
 public:
  ~StreamClient() override {
    for (const auto& one : streams_) {
      one->context.TryCancel();
      one->stream->Finish();
    }
  }
  void open() {
    for (const auto& stub : stubs_) {
      One& one = *streams_.emplace_back(std::make_unique<One>());
      one.context.set_deadline(std::chrono::system_clock::now() + kStream);
      one.stream = stub->Open(&one.context);
    }
  }
  Status call() override { return exchange(1); }
  Status fan_out() override { return exchange(streams_.size()); }

 private:
  struct One {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<wire::RawEcho, wire::RawEcho>> stream;
  };
  static constexpr std::chrono::hours kStream{1};

  Status exchange(size_t servers) {
    bool ok = true;
    for (size_t i = 0; i < servers; ++i) ok = streams_[i]->stream->Write(request_) && ok;
    for (size_t i = 0; i < servers && ok; ++i) ok = streams_[i]->stream->Read(&reply_);
    return ok ? Status() : unavailable("a stream of plain gRPC has ended");
  }

  std::vector<std::unique_ptr<One>> streams_;
  wire::RawEcho request_, reply_;
};

}  // namespace

int serve_raw_echo(RawEchoKind kind, const std::string& address) {
  return kind == RawEchoKind::kUnary ? serve_calls(address) : serve_streams(address);
}

Result<std::unique_ptr<RawEchoClient>> RawEchoClient::connect(RawEchoKind kind,
                                                              const std::vector<std::string>& addresses) {
  if (kind == RawEchoKind::kUnary) {
    auto client = std::make_unique<UnaryClient>();
    TROUPE_RETURN_IF_ERROR(client->connect(addresses));
    return std::unique_ptr<RawEchoClient>(std::move(client));
  }
  auto client = std::make_unique<StreamClient>();
  TROUPE_RETURN_IF_ERROR(client->connect(addresses));
  client->open();
  return std::unique_ptr<RawEchoClient>(std::move(client));
}

}  // namespace troupe::cli
