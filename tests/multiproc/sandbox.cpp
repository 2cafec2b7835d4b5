#include "tests/multiproc/sandbox.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace troupe::test {
namespace fs = std::filesystem;
namespace {

constexpr char kModelConfig[] = R"({
  "architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl",
  "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "vocab_size": 512, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "tie_word_embeddings": true, "max_position_embeddings": 4096,
  "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
  "vision_start_token_id": 500, "vision_end_token_id": 501, "image_token_id": 502, "video_token_id": 503,
  "bos_token_id": 504, "eos_token_id": 505,
  "vision_config": {"depth": 2, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "in_channels": 3, "in_chans": 3,
    "out_hidden_size": 64, "patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14, "temporal_patch_size": 2,
    "window_size": 112, "fullatt_block_indexes": [1], "hidden_act": "silu", "tokens_per_second": 2}
})";

constexpr char kJob[] = R"(name: fake
model: {path: model, init: random, dtype: fp32}
groups:
  vision: {components: [vision, merger], mesh: {sp: 1}}
  text: {components: [text], mesh: {tp: 1}}
placement: disjoint
data:
  synthetic: {images: 1, pixels: 56x56, text_tokens: 16}
training: {steps: 5, global_batch: 1}
)";

int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  ::close(fd);
  return ntohs(address.sin_port);
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Sandbox::Sandbox() {
  std::string pattern = "/tmp/troupe-test-XXXXXX";
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  root_ = pattern;
  fs::create_directories(path("model"));
  write("model/config.json", kModelConfig);
  write("job.yaml", kJob);
  auto created = worker::Spawner::create([this](int pid, int code, int signal) {
    std::lock_guard lock(mutex_);
    ended_[pid] = {code, signal, ""};
    changed_.notify_all();
  });
  REQUIRE(created.ok());
  spawner_ = std::move(*created);
}

Sandbox::~Sandbox() {
  spawner_.reset();
  std::error_code error;
  fs::remove_all(root_, error);
}

std::string Sandbox::text(const std::string& name) const { return file_text(path(name)); }

nlohmann::json Sandbox::json(const std::string& name) const {
  return nlohmann::json::parse(text(name), nullptr, false);
}

std::vector<nlohmann::json> Sandbox::json_lines(const std::string& name) const {
  std::istringstream lines(text(name));
  std::vector<nlohmann::json> values;
  for (std::string line; std::getline(lines, line);) values.push_back(nlohmann::json::parse(line));
  return values;
}

void Sandbox::write(const std::string& name, const std::string& text) const {
  std::ofstream(path(name), std::ios::trunc) << text;
}

std::string Sandbox::manifest(const std::string& launch, const std::string& more) const {
  write("cluster.yaml",
        "name: pair\nlaunch: " + launch +
            "\nnodes:\n  - {name: a, address: 127.0.0.1, devices: {cpu: 1, threads: 1}}\n" +
            "  - {name: b, address: 127.0.0.1, devices: {cpu: 1, threads: 1}}\nnetwork: {control: \"127.0.0.1:" +
            std::to_string(free_port()) + "\"}\n" + more);
  return path("cluster.yaml");
}

int Sandbox::start(std::vector<std::string> arguments) {
  const std::string verb = arguments.front();
  arguments.insert(arguments.begin(), TROUPE_BINARY_DIR "/bin/troupe");
  if (verb == "run" || verb == "eval" || verb == "check" || verb == "driver" || verb == "worker")
    arguments.insert(arguments.end(), {"--actor", TROUPE_BINARY_DIR "/bin/troupe_fake_host"});
  return start_program(std::move(arguments));
}

int Sandbox::start_program(std::vector<std::string> arguments) {
  worker::SpawnSpec spec;
  spec.arguments = std::move(arguments);
  spec.output_path = path("output-" + std::to_string(++count_));
  const auto pid = spawner_->spawn(spec);
  if (!pid) FAIL(pid.error().to_string());
  outputs_[*pid] = spec.output_path;
  return *pid;
}

std::string Sandbox::output(int pid) const { return file_text(outputs_.at(pid)); }

Ended Sandbox::wait(int pid, std::chrono::seconds deadline) {
  std::unique_lock lock(mutex_);
  const bool in_time = changed_.wait_for(lock, deadline, [&] { return ended_.contains(pid); });
  if (!in_time) FAIL("process " << pid << " did not end; it wrote:\n" << output(pid));
  Ended ended = ended_[pid];
  ended.output = output(pid);
  return ended;
}

void Sandbox::signal_alone(int pid, int number) { ::kill(pid, number); }

bool eventually(const std::function<bool()>& condition, std::chrono::seconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(
        std::chrono::milliseconds(20));  // a poll of other processes' state, not a synchronisation
  }
  return true;
}

std::vector<int> processes_with(const std::string& text) {
  std::vector<int> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string line = file_text(entry.path() / "cmdline");
    for (char& c : line)
      if (c == '\0') c = ' ';
    if (line.find(text) != std::string::npos && std::stoi(name) != ::getpid()) found.push_back(std::stoi(name));
  }
  return found;
}

std::vector<int> host_pids(const Sandbox& box) {
  std::vector<int> pids;
  for (const auto& event : box.json_lines("run/events.jsonl"))
    if (event["kind"] == "spawned")
      for (const auto& host : event["hosts"]) pids.push_back(host["pid"]);
  return pids;
}

bool alive(int pid) { return ::kill(pid, 0) == 0; }

}  // namespace troupe::test
