#include "actors/checkpoint/export_parts.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "actors/checkpoint/model_io.h"
#include "actors/checkpoint/weight_slices.h"
#include "base/checkpoint/checkpoint_folder.h"

namespace troupe {
namespace checkpoint {
namespace {

namespace fs = std::filesystem;

/// Collects bytes into pieces worth a system call.
class BufferedAppend {
 public:
  explicit BufferedAppend(SafetensorsWriter& writer) : writer_(writer) { buffer_.reserve(kBytes); }
  Status add(const void* data, size_t bytes) {
    if (buffer_.size() + bytes > kBytes) TROUPE_RETURN_IF_ERROR(flush());
    if (bytes >= kBytes) return writer_.append(data, bytes);
    const auto* begin = static_cast<const char*>(data);
    buffer_.insert(buffer_.end(), begin, begin + bytes);
    return {};
  }
  Status flush() {
    TROUPE_RETURN_IF_ERROR(writer_.append(buffer_.data(), buffer_.size()));
    buffer_.clear();
    return {};
  }

 private:
  static constexpr size_t kBytes = 4 << 20;
  SafetensorsWriter& writer_;
  std::vector<char> buffer_;
};

/// `n` elements at `data`, converted where the dtypes differ.
Status add_converted(const std::byte* data, FileDType from, FileDType to, int64_t n, BufferedAppend& out) {
  if (from == to) return out.add(data, static_cast<size_t>(n * file_dtype_bytes(from)));
  constexpr int64_t kChunk = 1 << 19;
  for (int64_t at = 0; at < n; at += kChunk) {
    const int64_t count = std::min(kChunk, n - at);
    auto* source = const_cast<std::byte*>(data + at * file_dtype_bytes(from));  // from_blob has no read-only form
    const at::Tensor chunk =
        at::from_blob(source, {count}, at::TensorOptions().dtype(scalar_type_of(from))).to(scalar_type_of(to));
    TROUPE_RETURN_IF_ERROR(out.add(chunk.const_data_ptr(), chunk.nbytes()));
  }
  return {};
}

}  // namespace

std::string part_name(const std::string& parameter, int dim, int64_t begin, int64_t end) {
  return parameter + "#" + std::to_string(dim) + ":" + std::to_string(begin) + ":" + std::to_string(end);
}

Result<ExportParts> ExportParts::open(const std::string& folder) {
  ExportParts out;
  std::error_code ec;
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(export_parts_folder(folder), ec))
    if (entry.path().extension() == ".safetensors") paths.push_back(entry.path().string());
  if (paths.empty()) return not_found(export_parts_folder(folder) + ": holds no part of an export");
  for (const std::string& path : paths) {
    TROUPE_ASSIGN(const std::shared_ptr<SafetensorsFile> file, SafetensorsFile::open(path));
    for (const TensorInfo& info : file->tensors()) TROUPE_RETURN_IF_ERROR(out.add(file, info));
  }
  for (auto& [name, parts] : out.parts_)
    std::sort(parts.begin(), parts.end(), [](const ExportPart& a, const ExportPart& b) { return a.begin < b.begin; });
  return out;
}

Status ExportParts::add(const std::shared_ptr<SafetensorsFile>& file, const TensorInfo& info) {
  ExportPart part;
  part.file = file;
  part.info = &info;
  const size_t mark = info.name.find('#');
  long long begin = 0, end = 0;
  const bool good =
      mark != std::string::npos && std::sscanf(info.name.c_str() + mark, "#%d:%lld:%lld", &part.dim, &begin, &end) == 3;
  if (!good) return data_loss(file->path() + ": '" + info.name + "' is not the name of an exported part");
  part.begin = begin;
  part.end = end;
  parts_[info.name.substr(0, mark)].push_back(part);
  return {};
}

Status ExportParts::check(const ParameterDecl& decl) const {
  const auto found = parts_.find(decl.name);
  if (found == parts_.end()) return data_loss("export: no rank wrote tensor '" + decl.name + "'");
  const auto dim = static_cast<size_t>(found->second.front().dim);
  int64_t covered = 0;
  for (const ExportPart& part : found->second) {
    std::vector<int64_t> shape = decl.shape;
    if (part.dim != static_cast<int>(dim) || dim >= shape.size() || part.begin != covered)
      return data_loss("export: tensor '" + decl.name + "' is " + (part.begin > covered ? "missing" : "doubled") +
                       " at index " + std::to_string(std::min(part.begin, covered)) + ", seen in " + part.file->path() +
                       "; remove the folder of parts if an earlier export left it");
    shape[dim] = part.end - part.begin;
    if (shape != part.info->shape)
      return data_loss(part.file->path() + ": '" + part.info->name + "' has another shape than its name says");
    covered = part.end;
  }
  if (covered != decl.shape[dim])
    return data_loss("export: tensor '" + decl.name + "' ends at index " + std::to_string(covered) + " of " +
                     std::to_string(decl.shape[dim]));
  return {};
}

Status ExportParts::append(const ParameterDecl& decl, FileDType dtype, SafetensorsWriter& writer) const {
  const std::vector<ExportPart>& parts = parts_.at(decl.name);
  const auto dim = static_cast<size_t>(parts.front().dim);
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < decl.shape.size(); ++d) (d < dim ? outer : inner) *= d == dim ? 1 : decl.shape[d];
  BufferedAppend out(writer);
  for (int64_t o = 0; o < outer; ++o) {
    for (const ExportPart& part : parts) {
      const int64_t n = (part.end - part.begin) * inner;
      const std::byte* data = part.file->data(*part.info) + o * n * file_dtype_bytes(part.info->dtype);
      TROUPE_RETURN_IF_ERROR(add_converted(data, part.info->dtype, dtype, n, out));
    }
  }
  return out.flush();
}

}  // namespace checkpoint

namespace {

/// The part of a parameter that this rank exports: what it owns over tp.
at::Tensor owned_part(const LocalParameter& p) {
  return checkpoint::local_part(p.weight, p.slice, p.slice.own_begin, p.slice.own_end);
}

}  // namespace

Status write_export_parts(ParameterStore& store, World& world, const std::string& folder) {
  if (world.mesh().index_among_peers(world.rank(), {Axis::kDp, Axis::kCp, Axis::kSp}) != 0) return {};
  std::error_code ec;
  std::filesystem::create_directories(export_parts_folder(folder), ec);
  if (ec) return invalid_argument(export_parts_folder(folder) + ": cannot be created: " + ec.message());
  std::vector<TensorSpec> specs;
  std::vector<const LocalParameter*> owned;
  for (const LocalParameter& p : store.parameters()) {
    const LocalSlice& s = p.slice;
    if (s.own_begin >= s.own_end) continue;
    TROUPE_ASSIGN(const FileDType dtype, checkpoint::file_dtype_of(p.weight.scalar_type()));
    specs.push_back(
        {checkpoint::part_name(p.decl.name, s.dim, s.own_begin, s.own_end), dtype, owned_part(p).sizes().vec()});
    owned.push_back(&p);
  }
  const std::string group = store.options().components.empty() ? "none" : store.options().components.front();
  const std::string path =
      export_parts_folder(folder) + "/" + group + "-" + std::to_string(world.rank()) + ".safetensors";
  TROUPE_ASSIGN(const std::unique_ptr<SafetensorsWriter> writer, SafetensorsWriter::create(path, specs));
  for (const LocalParameter* p : owned) {
    const at::Tensor part =
        owned_part(*p).cpu().contiguous();  // one parameter at a time: little memory beyond the store's
    TROUPE_RETURN_IF_ERROR(writer->append(part.const_data_ptr(), part.nbytes()));
  }
  return writer->finish();
}

}  // namespace troupe
