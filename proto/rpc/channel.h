#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "proto/rpc/secrets.h"

/// How processes of a cluster reach and believe one another: Unix sockets inside a private folder, or TLS with the
/// cluster's certificate and its token on TCP. A plain TCP connection is never made.
namespace troupe {

inline constexpr char kTokenHeader[] = "troupe-token";
/// The name that the certificate is made out to; clients check it in place of the host name.
inline constexpr char kDriverName[] = "troupe-driver";
/// Upper bound of a control message; anything larger is refused by gRPC.
inline constexpr int kLargestMessageBytes = 16 << 20;

struct Connection {
  std::shared_ptr<grpc::Channel> channel;
  std::string token;
  /// Adds the token to one call.
  void sign(grpc::ClientContext& context) const;
};

/// `address`: "unix:/path" or "HOST:PORT". Does not connect yet. TCP without secrets is refused.
Result<Connection> open_connection(const std::string& address, const Secrets& secrets);
/// `builder` will listen on exactly this address, and bound what it is sent. `port`: the one that is taken, once it is.
Status listen_at(grpc::ServerBuilder& builder, const std::string& address, const Secrets& secrets, int* port);
/// gRPC writes each failed try to standard error; what a person needs is in the errors that are returned.
void quiet_grpc();
/// "unix:PATH", rather than "HOST:PORT".
bool is_unix_address(const std::string& address);
/// The error that a failed call amounts to; `what` names the call and the peer.
Error from_grpc(const grpc::Status& status, const std::string& what);

}  // namespace troupe
