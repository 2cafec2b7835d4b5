#include <sys/stat.h>

#include <condition_variable>
#include <fstream>
#include <set>

#include "driver/rpc/services.h"
#include "driver/run/log_filter.h"
#include "proto/rpc/error_message.h"

namespace troupe::driver {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kPoll{200};
constexpr size_t kChunkBytes = 64 << 10;

/// What a watcher has been told and its stream has not sent yet. Progress lines replace each other; the rest is kept.
class UpdateQueue {
 public:
  void push(const JobUpdate& update) {
    std::lock_guard lock(mutex_);
    if (update.kind == JobUpdate::Kind::kProgress && !updates_.empty() &&
        updates_.back().kind == JobUpdate::Kind::kProgress)
      updates_.pop_back();
    updates_.push_back(update);
    changed_.notify_all();
  }
  std::optional<JobUpdate> pop(milliseconds timeout) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, timeout, [this] { return !updates_.empty(); })) return std::nullopt;
    JobUpdate update = std::move(updates_.front());
    updates_.pop_front();
    return update;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<JobUpdate> updates_;
};

class ClientService final : public wire::Client::Service {
 public:
  ClientService(Driver& driver, Planner planner, const TokenCheck& token, const std::atomic<bool>& closing)
      : driver_(driver), planner_(std::move(planner)), token_(token), closing_(closing) {}

  grpc::Status Submit(grpc::ServerContext* context, const wire::SubmitRequest* request,
                      wire::SubmitReply* reply) override {
    if (!token_.passes(*context)) return TokenCheck::refusal();
    const troupe::Status status = submit(*request, *reply);
    if (!status.ok()) *reply->mutable_error() = to_message(status.error());
    return grpc::Status::OK;
  }

  grpc::Status Status(grpc::ServerContext* context, const wire::StatusRequest* request,
                      wire::StatusReply* reply) override {
    if (!token_.passes(*context)) return TokenCheck::refusal();
    Result<std::string> json = driver_.status_json(request->job_id());
    if (json)
      reply->set_json(*json);
    else
      *reply->mutable_error() = to_message(json.error());
    return grpc::Status::OK;
  }

  grpc::Status Cancel(grpc::ServerContext* context, const wire::CancelRequest* request,
                      wire::CancelReply* reply) override {
    if (!token_.passes(*context)) return TokenCheck::refusal();
    const troupe::Status status = driver_.cancel(request->job_id());
    if (!status.ok()) *reply->mutable_error() = to_message(status.error());
    return grpc::Status::OK;
  }

  grpc::Status Watch(grpc::ServerContext* context, const wire::WatchRequest* request,
                     grpc::ServerWriter<wire::WatchUpdate>* writer) override {
    if (!token_.passes(*context)) return TokenCheck::refusal();
    auto queue = std::make_shared<UpdateQueue>();
    Result<int> number = driver_.watch(request->job_id(), [queue](const JobUpdate& update) { queue->push(update); });
    if (!number) {
      wire::WatchUpdate out;
      *out.mutable_error() = to_message(number.error());
      writer->Write(out);
      return grpc::Status::OK;
    }
    while (!context->IsCancelled() && !closing_) {
      const auto update = queue->pop(kPoll);
      if (!update) continue;
      wire::WatchUpdate out;
      out.set_line(update->text);
      out.set_progress(update->kind == JobUpdate::Kind::kProgress);
      out.set_finished(update->kind == JobUpdate::Kind::kEnd);
      out.set_exit_code(update->exit_code);
      out.set_result_json(update->result_json);
      if (!writer->Write(out) || out.finished()) break;
    }
    driver_.unwatch(request->job_id(), *number);
    return grpc::Status::OK;
  }

  grpc::Status Logs(grpc::ServerContext* context, const wire::LogsRequest* request,
                    grpc::ServerWriter<wire::LogChunk>* writer) override {
    if (!token_.passes(*context)) return TokenCheck::refusal();
    Result<std::vector<std::string>> files = driver_.log_files(request->job_id(), request->group(), request->rank());
    if (!files) {
      wire::LogChunk chunk;
      *chunk.mutable_error() = to_message(files.error());
      writer->Write(chunk);
      return grpc::Status::OK;
    }
    std::vector<OpenLog> logs;
    for (const std::string& file : *files) logs.push_back({file, 0, LogFilter(request->group(), request->rank())});
    for (;;) {
      // Asked before reading, so that what was written before the end is not missed.
      const bool last = !request->follow() || driver_.job_ended(request->job_id());
      for (OpenLog& log : logs)
        if (!send_new(log, last, *writer)) return grpc::Status::OK;
      if (last || context->IsCancelled() || closing_) return grpc::Status::OK;
      UpdateQueue().pop(kPoll);
    }
  }

 private:
  struct OpenLog {
    std::string path;
    std::streamoff offset;
    LogFilter filter;
  };

  troupe::Status submit(const wire::SubmitRequest& request, wire::SubmitReply& reply) {
    TROUPE_ASSIGN(PlannedJob job, planner_({request.job_yaml(), request.run_folder(), request.mode(),
                                            request.command_json(), request.resume()}));
    reply.set_plan_text(job.plan_text);
    reply.set_run_folder(job.run_folder);
    TROUPE_ASSIGN(std::string id, driver_.submit(std::move(job)));
    reply.set_job_id(id);
    return {};
  }

  static bool send(const std::string& text, grpc::ServerWriter<wire::LogChunk>& writer) {
    if (text.empty()) return true;
    wire::LogChunk chunk;
    chunk.set_text(text);
    return writer.Write(chunk);
  }

  static bool send_new(OpenLog& log, bool last, grpc::ServerWriter<wire::LogChunk>& writer) {
    std::ifstream file(log.path, std::ios::binary);
    file.seekg(log.offset);
    std::string text(kChunkBytes, '\0');
    while (file) {
      file.read(text.data(), static_cast<std::streamsize>(text.size()));
      const std::streamsize got = file.gcount();
      if (got <= 0) break;
      log.offset += got;
      if (!send(log.filter.pass(text.substr(0, static_cast<size_t>(got))), writer)) return false;
    }
    return !last || send(log.filter.rest(), writer);
  }

  Driver& driver_;
  Planner planner_;
  const TokenCheck& token_;
  const std::atomic<bool>& closing_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_client_service(Driver& driver, Planner planner, const TokenCheck& token,
                                                   const std::atomic<bool>& closing) {
  return std::make_unique<ClientService>(driver, std::move(planner), token, closing);
}

}  // namespace troupe::driver
