#include <filesystem>
#include <map>

#include "actors/checkpoint/model_io.h"
#include "actors/checkpoint/weight_slices.h"
#include "base/safetensors/safetensors_writer.h"

namespace troupe {
namespace {

/// One tensor of a rank's file and its place in this process. Only the rank's shard is saved: the rest of the weights
/// comes back by the gather after an update.
struct StateEntry {
  std::string name;
  at::Tensor tensor;
};

std::vector<StateEntry> state_entries(ParameterStore& store, GroupOptimizer& optimizer) {
  std::vector<StateEntry> out;
  for (const OptimizerPiece& piece : optimizer.pieces()) {
    const std::string where = piece.name + "#" + std::to_string(piece.begin) + ":" + std::to_string(piece.end);
    out.push_back(
        {"weight/" + where, store.at(piece.name).weight.view({-1}).narrow(0, piece.begin, piece.end - piece.begin)});
    out.push_back({"exp_avg/" + where, piece.exp_avg});
    out.push_back({"exp_avg_sq/" + where, piece.exp_avg_sq});
    if (piece.master.defined()) out.push_back({"master/" + where, piece.master});
  }
  return out;
}

std::map<std::string, std::string> layout_of(const ParameterStore& store) {
  const ParameterStoreOptions& o = store.options();
  return {{"format", "troupe-rank-state"},
          {"tp", std::to_string(o.tp)},
          {"tp_rank", std::to_string(o.tp_rank)},
          {"shard_multiple", std::to_string(o.pad_to)},
          {"dtype", c10::toString(o.compute_dtype)}};
}

std::string in_words(const std::map<std::string, std::string>& layout) {
  std::string text;
  for (const auto& [key, value] : layout) text += (text.empty() ? "" : ", ") + key + " " + value;
  return text;
}

Status copy_in(const SafetensorsFile& file, const StateEntry& entry) {
  const TensorInfo* info = file.find(entry.name);
  if (info == nullptr)
    return invalid_argument(file.path() + ": '" + entry.name + "' is missing: it was saved by another layout or model");
  TROUPE_ASSIGN(const FileDType dtype, checkpoint::file_dtype_of(entry.tensor.scalar_type()));
  if (info->dtype != dtype || info->shape != entry.tensor.sizes().vec())
    return invalid_argument(file.path() + ": '" + entry.name + "' has " + std::to_string(info->elements()) +
                            " elements of " + file_dtype_name(info->dtype) + ", expected are " +
                            std::to_string(entry.tensor.numel()) + " of " + file_dtype_name(dtype));
  at::Tensor(entry.tensor).copy_(checkpoint::mapped_tensor(file, *info));
  return {};
}

}  // namespace

Status save_rank_state(ParameterStore& store, GroupOptimizer& optimizer, const std::string& path) {
  const std::vector<StateEntry> entries = state_entries(store, optimizer);
  std::vector<TensorSpec> specs;
  for (const StateEntry& e : entries) {
    TROUPE_ASSIGN(const FileDType dtype, checkpoint::file_dtype_of(e.tensor.scalar_type()));
    specs.push_back({e.name, dtype, e.tensor.sizes().vec()});
  }
  std::error_code ec;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ec);
  TROUPE_ASSIGN(const std::unique_ptr<SafetensorsWriter> writer,
                SafetensorsWriter::create(path, specs, layout_of(store)));
  for (const StateEntry& e : entries) {
    const at::Tensor host = e.tensor.cpu().contiguous();
    TROUPE_RETURN_IF_ERROR(writer->append(host.const_data_ptr(), host.nbytes()));
  }
  return writer->finish();
}

int64_t rank_state_bytes(ParameterStore& store, GroupOptimizer& optimizer) {
  int64_t bytes = 0;
  for (const StateEntry& e : state_entries(store, optimizer)) bytes += static_cast<int64_t>(e.tensor.nbytes());
  return bytes;
}

Status load_rank_state(ParameterStore& store, GroupOptimizer& optimizer, const std::string& path) {
  TROUPE_ASSIGN(const std::shared_ptr<SafetensorsFile> file, SafetensorsFile::open(path));
  const auto expected = layout_of(store);
  if (file->metadata() != expected)
    return invalid_argument(path + ": was saved by another layout: " + in_words(file->metadata()) + "; this rank is " +
                            in_words(expected));
  const std::vector<StateEntry> entries = state_entries(store, optimizer);
  if (entries.size() != file->tensors().size())
    return invalid_argument(path + ": holds " + std::to_string(file->tensors().size()) + " tensors, this rank has " +
                            std::to_string(entries.size()));
  for (const StateEntry& e : entries) TROUPE_RETURN_IF_ERROR(copy_in(*file, e));
  try {
    optimizer.gather_weights();
  } catch (const ErrorException& e) {
    return wrap(e.error, path + ": the restored weights could not be gathered");
  }
  return {};
}

}  // namespace troupe
