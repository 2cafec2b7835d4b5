#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "driver/run/planned_job.h"
#include "driver/supervision/grant_window.h"

/// The driver's view of its workers and hosts; implemented over gRPC in driver/rpc and by fakes in tests. Every call
/// queues a message and returns at once; after the peer is gone calls do nothing.
namespace troupe::driver {

/// What a worker is asked to start. The program is the worker's own.
struct SpawnOrder {
  std::string incarnation, job_id;
  int slot = -1;  // -1: a task
  int threads = 0;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  std::string output_path, task_output_path;
};

class WorkerPeer {
 public:
  virtual ~WorkerPeer() = default;
  virtual void spawn(const SpawnOrder& order) = 0;
  virtual void terminate(const std::string& incarnation, std::chrono::milliseconds grace) = 0;
  /// The driver is closing: end everything and go.
  virtual void leave() = 0;
};

/// Everything that a host derives its work from.
struct AssignmentOrder {
  std::string job_id;
  int self = 0;
  Generation generation;
  const PlannedJob* job = nullptr;  // outlives the call only
  std::string index_path, eval_index_path, resume_from;
};

class HostPeer {
 public:
  virtual ~HostPeer() = default;
  virtual void assign(const AssignmentOrder& order) = 0;
  virtual void grant(Generation generation, const GrantState& grant) = 0;
  virtual void stop(const std::string& reason) = 0;
  virtual void acknowledge(uint64_t sequence) = 0;
  virtual void refuse(const Error& error) = 0;
};

/// What people watching a job are told.
struct JobUpdate {
  enum class Kind { kLine, kProgress, kEnd };
  Kind kind = Kind::kLine;
  std::string text;         // kLine, kProgress
  int exit_code = 0;        // kEnd
  std::string result_json;  // kEnd
};

}  // namespace troupe::driver
