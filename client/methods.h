#pragma once

#include "proto/rpc/calls.pb.h"

/// Which result belongs to which arguments: Method<wire::ForwardRequest>::Reply is wire::ForwardReply.
namespace troupe::client {

template <typename Request>
struct Method;
/// The result that an answer holds.
template <typename Reply>
Reply take_reply(wire::Answer& answer);

#define TROUPE_METHOD(type, field)                                                                                   \
  template <>                                                                                                        \
  struct Method<wire::type##Request> {                                                                               \
    using Reply = wire::type##Reply;                                                                                 \
    static void put(const wire::type##Request& arguments, wire::Call& call) { *call.mutable_##field() = arguments; } \
  };                                                                                                                 \
  template <>                                                                                                        \
  inline wire::type##Reply take_reply<wire::type##Reply>(wire::Answer & answer) {                                    \
    return std::move(*answer.mutable_##field());                                                                     \
  }                                                                                                                  \
  static_assert(true)

TROUPE_METHOD(Echo, echo);
TROUPE_METHOD(Describe, describe);
TROUPE_METHOD(BeginBatch, begin_batch);
TROUPE_METHOD(Forward, forward);
TROUPE_METHOD(Backward, backward);
TROUPE_METHOD(Reduce, reduce);
TROUPE_METHOD(Update, update);
TROUPE_METHOD(ReadTensor, read_tensor);
TROUPE_METHOD(Save, save);
TROUPE_METHOD(Export, export_model);
TROUPE_METHOD(Finish, finish);

#undef TROUPE_METHOD

}  // namespace troupe::client
