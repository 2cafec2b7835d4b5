#include "proto/rpc/channel.h"

#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

namespace troupe {
namespace {

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kLargestMessageBytes);
  arguments.SetMaxSendMessageSize(kLargestMessageBytes);
  // A silent network shows within 20 s even where TCP alone would wait for minutes.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A proxy from the environment has no business between the processes of a cluster.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Each link is its own connection: a lost host must not take another's channel along.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

}  // namespace

void Connection::sign(grpc::ClientContext& context) const {
  if (!token.empty()) context.AddMetadata(kTokenHeader, token);
}

Result<Connection> open_connection(const std::string& address, const Secrets& secrets) {
  Connection connection;
  grpc::ChannelArguments arguments = channel_arguments();
  if (is_unix_address(address)) {
    if (!secrets.token_file.empty()) {
      TROUPE_ASSIGN(connection.token, read_secret(secrets.token_file));
    }
    connection.channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
    return connection;
  }
  if (secrets.certificate_file.empty() || secrets.token_file.empty())
    return invalid_argument(
        "driver address " + address +
        " is a TCP address and needs the cluster's secrets folder (--secrets DIR or --cluster FILE)");
  grpc::SslCredentialsOptions options;
  TROUPE_ASSIGN(options.pem_root_certs, read_secret(secrets.certificate_file));
  options.pem_root_certs += "\n";
  TROUPE_ASSIGN(connection.token, read_secret(secrets.token_file));
  arguments.SetSslTargetNameOverride(kDriverName);
  connection.channel = grpc::CreateCustomChannel(address, grpc::SslCredentials(options), arguments);
  return connection;
}

namespace {

Result<std::shared_ptr<grpc::ServerCredentials>> server_credentials(const std::string& address,
                                                                    const Secrets& secrets) {
  if (is_unix_address(address)) return grpc::InsecureServerCredentials();
  if (secrets.key_file.empty()) return invalid_argument("listening on " + address + " needs a certificate");
  grpc::SslServerCredentialsOptions options;
  grpc::SslServerCredentialsOptions::PemKeyCertPair pair;
  TROUPE_ASSIGN(pair.private_key, read_secret(secrets.key_file));
  TROUPE_ASSIGN(pair.cert_chain, read_secret(secrets.certificate_file));
  pair.private_key += "\n";
  pair.cert_chain += "\n";
  options.pem_key_cert_pairs.push_back(std::move(pair));
  return grpc::SslServerCredentials(options);
}

}  // namespace

Status listen_at(grpc::ServerBuilder& builder, const std::string& address, const Secrets& secrets, int* port) {
  TROUPE_ASSIGN(auto credentials, server_credentials(address, secrets));
  builder.AddListeningPort(address, credentials, port);
  // Two servers on one port would each get some of the peers.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.SetMaxReceiveMessageSize(kLargestMessageBytes);
  return {};
}

void quiet_grpc() {
  gpr_set_log_function([](gpr_log_func_args*) {});
}

bool is_unix_address(const std::string& address) { return address.rfind("unix:", 0) == 0; }

Error from_grpc(const grpc::Status& status, const std::string& what) {
  ErrorCode code = ErrorCode::kInternal;
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      code = ErrorCode::kUnavailable;
      break;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      code = ErrorCode::kDeadlineExceeded;
      break;
    case grpc::StatusCode::CANCELLED:
      code = ErrorCode::kCancelled;
      break;
    case grpc::StatusCode::UNAUTHENTICATED:
      code = ErrorCode::kUnauthenticated;
      break;
    case grpc::StatusCode::NOT_FOUND:
      code = ErrorCode::kNotFound;
      break;
    case grpc::StatusCode::INVALID_ARGUMENT:
      code = ErrorCode::kInvalidArgument;
      break;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      code = ErrorCode::kResourceExhausted;
      break;
    default:
      break;
  }
  return make_error(code, what + ": " + status.error_message());
}

}  // namespace troupe
