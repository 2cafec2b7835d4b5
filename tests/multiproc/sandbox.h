#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "worker/supervision/spawner.h"

/// A folder with a tiny model, a job spec and a manifest, and the means to run `troupe` in it with the fake host as its
/// actor program.
namespace troupe::test {

/// How a process ended; `output` is what it wrote.
struct Ended {
  int code = -1;
  int signal = 0;
  std::string output;
};

class Sandbox {
 public:
  Sandbox();
  /// Kills what is left, removes the folder.
  ~Sandbox();
  std::string path(const std::string& name) const { return root_ + "/" + name; }
  std::string text(const std::string& name) const;
  nlohmann::json json(const std::string& name) const;
  std::vector<nlohmann::json> json_lines(const std::string& name) const;
  void write(const std::string& name, const std::string& text) const;
  /// What the fake hosts are told: lines of tests/multiproc/fake_host.cpp.
  void script(const std::string& lines) const { write("fake.txt", lines); }
  /// A manifest of two nodes with one CPU slot each on this machine; returns its path. The control port is a free one.
  std::string manifest(const std::string& launch, const std::string& more = "") const;

  /// Starts `troupe ARGUMENTS...`; `run` commands get --actor by themselves.
  int start(std::vector<std::string> arguments);
  /// Starts any program.
  int start_program(std::vector<std::string> arguments);
  Ended wait(int pid, std::chrono::seconds deadline = std::chrono::seconds(50));
  Ended run(std::vector<std::string> arguments) { return wait(start(std::move(arguments))); }
  void signal(int pid, int number) { spawner_->signal(pid, number); }
  std::string output(int pid) const;
  /// The spawner's signal goes to a process group; this one to the process alone.
  static void signal_alone(int pid, int number);

 private:
  std::string root_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Ended> ended_;
  std::map<int, std::string> outputs_;
  int count_ = 0;
  std::unique_ptr<worker::Spawner> spawner_;
};

/// Looks until `condition` holds; false when it did not within `deadline`.
bool eventually(const std::function<bool()>& condition, std::chrono::seconds deadline = std::chrono::seconds(20));
/// Processes whose command line contains `text`.
std::vector<int> processes_with(const std::string& text);
/// The hosts of the run in the folder `run`, in the order of their slots.
std::vector<int> host_pids(const Sandbox& box);
bool alive(int pid);

}  // namespace troupe::test
