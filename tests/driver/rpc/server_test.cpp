#include "driver/rpc/server.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "proto/rpc/channel.h"
#include "proto/rpc/control.grpc.pb.h"
#include "proto/rpc/error_message.h"

using namespace troupe;
using namespace troupe::driver;
namespace fs = std::filesystem;

namespace {

/// A driver that listens with TLS and a token on a free port of loopback.
struct Stage {
  Stage() : folder(fs::temp_directory_path() / ("troupe_server_" + std::to_string(::getpid()))) {
    REQUIRE(make_secrets(folder).ok());
    DriverOptions driver_options;
    driver_options.workers = {{"a", "10.0.0.1"}};
    driver = std::move(*Driver::create(std::move(driver_options)));
    ServerOptions options;
    options.address = "127.0.0.1:0";
    options.secrets = secrets_in(folder);
    options.planner = [](const SubmitOrder& order) -> Result<PlannedJob> {
      return invalid_argument("no plan for '" + order.job_yaml + "'");
    };
    auto created = Server::create(std::move(options), *driver);
    REQUIRE(created.ok());
    server = std::move(*created);
  }
  ~Stage() {
    driver->close();
    server.reset();
    driver.reset();
    fs::remove_all(folder);
  }
  Connection connect() { return *open_connection(server->address(), secrets_in(folder)); }

  fs::path folder;
  std::unique_ptr<Driver> driver;
  std::unique_ptr<Server> server;
};

grpc::Status status_call(const Connection& connection, wire::StatusReply& reply) {
  auto stub = wire::Client::NewStub(connection.channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  connection.sign(context);
  return stub->Status(&context, wire::StatusRequest(), &reply);
}

}  // namespace

TEST_CASE("A free port is taken and told, and a client with the token is served") {
  Stage stage;
  CHECK(stage.server->address().find("127.0.0.1:") == 0);
  CHECK(stage.server->address() != "127.0.0.1:0");
  wire::StatusReply reply;
  REQUIRE(status_call(stage.connect(), reply).ok());
  CHECK(reply.json().find("\"workers\"") != std::string::npos);
}

TEST_CASE("Every service refuses a caller without the token") {
  Stage stage;
  Connection connection = stage.connect();
  connection.token = connection.token.substr(1) + "x";
  wire::StatusReply reply;
  CHECK(status_call(connection, reply).error_code() == grpc::StatusCode::UNAUTHENTICATED);
  connection.token.clear();
  CHECK(status_call(connection, reply).error_code() == grpc::StatusCode::UNAUTHENTICATED);
  grpc::ClientContext store_context, worker_context, host_context;
  wire::StoreReply store_reply;
  CHECK(
      wire::Store::NewStub(connection.channel)->Call(&store_context, wire::StoreRequest(), &store_reply).error_code() ==
      grpc::StatusCode::UNAUTHENTICATED);
  auto worker = wire::WorkerLink::NewStub(connection.channel)->Attach(&worker_context);
  CHECK(worker->Finish().error_code() == grpc::StatusCode::UNAUTHENTICATED);
  auto host = wire::HostLink::NewStub(connection.channel)->Attach(&host_context);
  CHECK(host->Finish().error_code() == grpc::StatusCode::UNAUTHENTICATED);
}

TEST_CASE("A refusal of the planner reaches the client as it was said") {
  Stage stage;
  Connection connection = stage.connect();
  grpc::ClientContext context;
  connection.sign(context);
  wire::SubmitRequest request;
  request.set_job_yaml("x");
  wire::SubmitReply reply;
  REQUIRE(wire::Client::NewStub(connection.channel)->Submit(&context, request, &reply).ok());
  const Error error = from_message(reply.error());
  CHECK(error.code == ErrorCode::kInvalidArgument);
  CHECK(error.message == "no plan for 'x'");
}

TEST_CASE("A second server on the same port is refused") {
  Stage stage;
  ServerOptions options;
  options.address = stage.server->address();
  options.secrets = secrets_in(stage.folder);
  const auto second = Server::create(std::move(options), *stage.driver);
  REQUIRE_FALSE(second.ok());
  CHECK(second.error().message.find(stage.server->address()) != std::string::npos);
}

TEST_CASE("A worker's registration is answered, a wrong one with the reason") {
  Stage stage;
  Connection connection = stage.connect();
  for (const char* node : {"a", "unknown"}) {
    grpc::ClientContext context;
    connection.sign(context);
    auto stream = wire::WorkerLink::NewStub(connection.channel)->Attach(&context);
    wire::WorkerMessage hello;
    hello.mutable_register_()->set_node(node);
    hello.mutable_register_()->set_incarnation("i");
    REQUIRE(stream->Write(hello));
    wire::WorkerCommand command;
    REQUIRE(stream->Read(&command));
    CHECK(command.term() == 1);
    CHECK(command.welcome().has_error() == (std::string(node) == "unknown"));
    context.TryCancel();
    stream->Finish();
  }
}
