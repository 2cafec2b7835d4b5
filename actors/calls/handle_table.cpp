#include "actors/calls/handle_table.h"

#include <algorithm>
#include <climits>

namespace troupe {
namespace {

constexpr size_t kExpiredRemembered = 1024;

}  // namespace

const char* handle_dtype(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat) return "fp32";
  if (tensor.scalar_type() == at::kBFloat16) return "bf16";
  return c10::toString(tensor.scalar_type());
}

Status check_generation(const wire::TensorHandle& handle, Generation running) {
  if (handle.generation() == running.value) return {};
  return make_error(ErrorCode::kAborted,
                    "tensor handle " + describe(handle) + " is of generation " + std::to_string(handle.generation()) +
                        ", which has ended; the job runs generation " + std::to_string(running.value));
}

std::string describe(const wire::TensorHandle& h) {
  return "group " + std::to_string(h.group()) + " rank " + std::to_string(h.rank()) + " #" +
         std::to_string(h.object()) + " (batch " + std::to_string(h.batch()) + ", unit " + std::to_string(h.unit()) +
         ", " + (h.layout() == wire::TensorHandle::ROWS ? "rows" : "row gradients") + ")";
}

void HandleTable::set_lease(std::chrono::milliseconds lease) {
  std::lock_guard lock(mutex_);
  lease_ = lease;
}

Status HandleTable::add(wire::TensorHandle& handle, at::Tensor tensor, Clock::time_point now) {
  handle.set_generation(generation_.value);
  handle.set_dtype(handle_dtype(tensor));
  handle.clear_shape();
  for (int64_t size : tensor.sizes()) handle.add_shape(size);
  if (handle.object() == 0) return invalid_argument("the result has no object number; valid: 1 and more");
  std::lock_guard lock(mutex_);
  const auto [at, fresh] = objects_.try_emplace({handle.object(), handle.group(), handle.rank()});
  if (!fresh)
    return invalid_argument("object " + std::to_string(handle.object()) + " is in use: " + describe(at->second.handle));
  at->second = {handle, std::move(tensor), now + lease_};
  return {};
}

Result<at::Tensor> HandleTable::find(const wire::TensorHandle& handle) const {
  TROUPE_RETURN_IF_ERROR(check_generation(handle, generation_));
  std::lock_guard lock(mutex_);
  const auto at = objects_.find({handle.object(), handle.group(), handle.rank()});
  if (at == objects_.end()) {
    const bool expired = std::find(expired_.begin(), expired_.end(), handle.object()) != expired_.end();
    return not_found("tensor handle " + describe(handle) + ": " +
                     (expired ? "its lease of " + std::to_string(lease_.count()) + " ms ran out"
                              : "it was released, or never made here"));
  }
  const wire::TensorHandle& made = at->second.handle;
  if (made.batch() != handle.batch() || made.unit() != handle.unit() || made.layout() != handle.layout())
    return invalid_argument("tensor handle " + describe(handle) + ": that object is " + describe(made));
  return at->second.tensor;
}

void HandleTable::renew_all(Clock::time_point now) {
  std::lock_guard lock(mutex_);
  for (auto& [id, object] : objects_) object.ends = now + lease_;
}

void HandleTable::renew(const google::protobuf::RepeatedField<uint64_t>& objects, Clock::time_point now) {
  std::lock_guard lock(mutex_);
  for (uint64_t object : objects)
    for (auto at = objects_.lower_bound({object, INT_MIN, INT_MIN});
         at != objects_.end() && std::get<0>(at->first) == object; ++at)
      at->second.ends = now + lease_;
}

void HandleTable::release(const google::protobuf::RepeatedField<uint64_t>& objects) {
  std::lock_guard lock(mutex_);
  for (uint64_t object : objects)
    objects_.erase(objects_.lower_bound({object, INT_MIN, INT_MIN}), objects_.upper_bound({object, INT_MAX, INT_MAX}));
}

void HandleTable::expire(Clock::time_point now) {
  std::lock_guard lock(mutex_);
  for (auto at = objects_.begin(); at != objects_.end();) {
    if (at->second.ends > now) {
      ++at;
      continue;
    }
    expired_.push_back(std::get<0>(at->first));
    if (expired_.size() > kExpiredRemembered) expired_.pop_front();
    ++expired_count_;
    at = objects_.erase(at);
  }
}

std::vector<std::string> HandleTable::held() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [id, object] : objects_) names.push_back(describe(object.handle));
  return names;
}

int64_t HandleTable::expired_count() const {
  std::lock_guard lock(mutex_);
  return expired_count_;
}

}  // namespace troupe
