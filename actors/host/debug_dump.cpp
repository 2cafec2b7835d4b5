#include "actors/host/debug_dump.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "actors/host/meeting.h"
#include "base/safetensors/safetensors_file.h"
#include "base/safetensors/safetensors_writer.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

Status write_tensors(const std::string& path, const NamedTensors& tensors) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, t] : tensors) specs.push_back({name, FileDType::kF32, t.sizes().vec()});
  TROUPE_ASSIGN(const auto writer, SafetensorsWriter::create(path, specs));
  for (const auto& [name, t] : tensors) {
    const at::Tensor whole = t.contiguous();
    TROUPE_RETURN_IF_ERROR(writer->append(whole.const_data_ptr(), whole.nbytes()));
  }
  return writer->finish();
}

/// The whole of a parameter-shaped tensor from the slices of the tp ranks; a collective over tp.
at::Tensor whole_tensor(Actor& actor, const LocalParameter& p, const at::Tensor& slice) {
  const at::Tensor local = slice.to(at::kFloat).cpu();
  at::Tensor whole = at::zeros(p.decl.shape, at::kFloat);
  const int64_t owned = p.slice.own_end - p.slice.own_begin;
  if (owned > 0)
    whole.narrow(p.slice.dim, p.slice.own_begin, owned)
        .copy_(local.narrow(p.slice.dim, p.slice.own_begin - p.slice.begin, owned));
  Communicator& tp = actor.world().over({Axis::kTp});
  if (tp.size() == 1) return whole;
  at::Tensor shared = whole.to(actor.store().options().device);
  tp.all_reduce_sum(shared);
  return shared.cpu();
}

std::string part_name(const std::string& stem, const JobContext& job, const Actor& actor) {
  return stem + ".part-" + job.group(actor.group()).name + "-" + std::to_string(actor.rank());
}

Status write_gradients(const JobContext& job, Actor& actor, const std::string& stem) {
  if (!actor.trained()) return {};
  NamedTensors tensors;
  for (const LocalParameter& p : actor.store().parameters())
    if (p.trained)
      tensors.emplace_back(p.decl.name, whole_tensor(actor, p, actor.optimizer()->full_local_gradient(p.decl.name)));
  if (actor.rank() != 0) return {};
  return write_tensors(part_name(stem, job, actor), tensors);
}

/// Weights before the step's update, frozen ones too.
Status write_weights(const JobContext& job, Actor& actor, const std::string& stem) {
  NamedTensors tensors;
  for (const LocalParameter& p : actor.store().parameters())
    tensors.emplace_back(p.decl.name, whole_tensor(actor, p, p.weight));
  if (actor.rank() != 0) return {};
  return write_tensors(part_name(stem, job, actor), tensors);
}

Status write_vision_rows(const JobContext& job, TextActor& actor, const std::vector<std::string>& names,
                         const std::string& stem) {
  NamedTensors tensors;
  for (const auto& [at, rows] : actor.vision_rows()) tensors.emplace_back(names[static_cast<size_t>(at)], rows);
  return tensors.empty() ? Status() : write_tensors(part_name(stem, job, actor), tensors);
}

Status write_sample_losses(const JobContext& job, TextActor& actor, const std::vector<std::string>& names,
                           const std::string& stem) {
  if (actor.sample_losses().empty()) return {};
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const SampleLoss& s : actor.sample_losses())
    list.push_back({{"id", names[static_cast<size_t>(s.at)]}, {"loss", s.loss}, {"supervised", s.supervised}});
  std::ofstream out(part_name(stem, job, actor));
  out << list.dump();
  return out.good() ? Status() : internal_error("cannot write " + stem);
}

std::vector<std::string> parts_of(const std::string& stem) {
  std::vector<std::string> parts;
  const std::string prefix = fs::path(stem).filename().string() + ".part-";
  for (const auto& entry : fs::directory_iterator(fs::path(stem).parent_path()))
    if (entry.path().filename().string().starts_with(prefix)) parts.push_back(entry.path().string());
  std::sort(parts.begin(), parts.end());
  return parts;
}

Status join_tensors(const std::string& stem) {
  const std::vector<std::string> parts = parts_of(stem);
  std::vector<std::shared_ptr<SafetensorsFile>> files;
  std::vector<TensorSpec> specs;
  for (const std::string& part : parts) {
    TROUPE_ASSIGN(auto file, SafetensorsFile::open(part));
    for (const TensorInfo& t : file->tensors()) specs.push_back({t.name, t.dtype, t.shape});
    files.push_back(std::move(file));
  }
  TROUPE_ASSIGN(const auto writer, SafetensorsWriter::create(stem, specs));
  for (const auto& file : files)
    for (const TensorInfo& t : file->tensors()) TROUPE_RETURN_IF_ERROR(writer->append(file->data(t), t.bytes()));
  TROUPE_RETURN_IF_ERROR(writer->finish());
  for (const std::string& part : parts) fs::remove(part);
  return {};
}

/// One list in the step's sample order.
Status join_sample_losses(const std::vector<std::string>& names, const std::string& stem) {
  std::map<std::string, nlohmann::ordered_json> by_name;
  for (const std::string& part : parts_of(stem)) {
    std::ifstream in(part);
    for (auto& entry : nlohmann::ordered_json::parse(in)) by_name[entry["id"].get<std::string>()] = entry;
    fs::remove(part);
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const std::string& name : names) list.push_back(by_name[name]);
  std::ofstream out(stem);
  out << list.dump(1) << "\n";
  return out.good() ? Status() : internal_error("cannot write " + stem);
}

}  // namespace

std::vector<std::string> dump_names(const StepPlan& plan, const SampleIndex& index) {
  std::set<std::string> taken;
  for (int64_t sample : plan.samples) taken.emplace(index.samples[static_cast<size_t>(sample)].id);
  std::map<std::string, int> seen;
  std::vector<std::string> names;
  for (int64_t sample : plan.samples) {
    const std::string id(index.samples[static_cast<size_t>(sample)].id);
    int& count = seen[id];
    std::string name = id;
    while (++count > 1 && !taken.insert(name = id + "#" + std::to_string(count)).second) {
    }
    names.push_back(std::move(name));
  }
  return names;
}

Status dump_step(const JobContext& job, std::vector<std::unique_ptr<Actor>>& actors, const StepPlan& plan) {
  const DebugDump& what = job.spec.debug;
  const std::string folder = job.assignment.run_folder + "/debug";
  const std::string stem = folder + "/step-" + std::to_string(plan.step);
  const std::vector<std::string> names = dump_names(plan, job.data->index());
  fs::create_directories(folder);
  for (const auto& actor : actors) {
    if (what.gradients) TROUPE_RETURN_IF_ERROR(write_gradients(job, *actor, stem + ".gradients.safetensors"));
    if (what.weights) TROUPE_RETURN_IF_ERROR(write_weights(job, *actor, stem + ".weights.safetensors"));
    auto* text = dynamic_cast<TextActor*>(actor.get());
    if (text && what.vision_rows)
      TROUPE_RETURN_IF_ERROR(write_vision_rows(job, *text, names, stem + ".vision_rows.safetensors"));
    if (text && what.samples) TROUPE_RETURN_IF_ERROR(write_sample_losses(job, *text, names, stem + ".samples.json"));
  }
  TROUPE_RETURN_IF_ERROR(meet(job, "dump-" + std::to_string(plan.step), std::chrono::minutes(10)));
  if (!is_leader(job)) return {};
  if (what.gradients) TROUPE_RETURN_IF_ERROR(join_tensors(stem + ".gradients.safetensors"));
  if (what.weights) TROUPE_RETURN_IF_ERROR(join_tensors(stem + ".weights.safetensors"));
  if (what.vision_rows) TROUPE_RETURN_IF_ERROR(join_tensors(stem + ".vision_rows.safetensors"));
  if (what.samples) TROUPE_RETURN_IF_ERROR(join_sample_losses(names, stem + ".samples.json"));
  return {};
}

}  // namespace troupe
