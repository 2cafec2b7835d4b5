#include "base/checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";

std::string checkpoints_folder(const std::string& run_folder) { return run_folder + "/checkpoints"; }

Status sync_path(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return data_loss(path + ": cannot be opened: " + std::strerror(errno));
  const int result = fsync(fd);
  const int reason = errno;
  close(fd);
  if (result != 0)
    return make_error(ErrorCode::kResourceExhausted, path + ": cannot be flushed to disk: " + std::strerror(reason));
  return {};
}

Result<std::string> checksum_of(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) return data_loss(path + ": cannot be opened: " + std::strerror(errno));
  const std::unique_ptr<XXH64_state_t, XXH_errorcode (*)(XXH64_state_t*)> state(XXH64_createState(), &XXH64_freeState);
  XXH64_reset(state.get(), 0);
  std::vector<char> buffer(1 << 20);
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), file.get()))
    XXH64_update(state.get(), buffer.data(), n);
  if (std::ferror(file.get())) return data_loss(path + ": cannot be read");
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(XXH64_digest(state.get())));
  return std::string(text);
}

Status write_manifest(const std::string& path, const CheckpointManifest& manifest) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << manifest_to_json(manifest);
  out.close();
  if (!out) return make_error(ErrorCode::kResourceExhausted, path + ": cannot be written");
  return sync_path(path);
}

Result<std::vector<CheckpointFile>> list_files(const std::string& folder) {
  std::vector<CheckpointFile> files;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name == kManifest) continue;
    if (name.ends_with(".partial")) return data_loss(entry.path().string() + ": a rank has not finished writing");
    TROUPE_RETURN_IF_ERROR(sync_path(entry.path().string()));
    TROUPE_ASSIGN(const std::string sum, checksum_of(entry.path().string()));
    files.push_back({name, entry.file_size(), sum});
  }
  if (files.empty()) return data_loss(folder + ": no rank wrote anything");
  std::sort(files.begin(), files.end(),
            [](const CheckpointFile& a, const CheckpointFile& b) { return a.name < b.name; });
  return files;
}

/// A checkpoint of the same step that is there already changes places with the new one, so that one of them is there at
/// every moment; where the file system cannot do that it is removed first.
Status move_into_place(const std::string& finished, const std::string& target) {
  std::error_code ec;
  if (fs::exists(target, ec) && renameat2(AT_FDCWD, finished.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(finished, ec);
  } else {
    fs::remove_all(target, ec);
    fs::rename(finished, target, ec);
  }
  if (ec)
    return make_error(ErrorCode::kResourceExhausted,
                      target + ": the checkpoint cannot be moved there: " + ec.message());
  return {};
}

/// Names of committed checkpoints, newest first; zero-padded steps sort as text up to 8 digits, longer ones are longer.
std::vector<std::string> committed(const std::string& run_folder) {
  std::vector<std::string> names;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(checkpoints_folder(run_folder), ec))
    if (entry.path().filename().string().starts_with("step-")) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a > b;
  });
  return names;
}

}  // namespace

std::string checkpoint_name(int64_t step) {
  char text[40];
  std::snprintf(text, sizeof text, "step-%08lld", static_cast<long long>(step));
  return text;
}

std::string export_parts_folder(const std::string& export_folder) { return export_folder + ".parts"; }
std::string export_partial_folder(const std::string& export_folder) { return export_folder + ".partial"; }

Result<std::string> begin_checkpoint(const std::string& run_folder, int64_t step, Generation generation) {
  const std::string folder =
      checkpoints_folder(run_folder) + "/." + checkpoint_name(step) + ".g" + std::to_string(generation.value);
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) return make_error(ErrorCode::kResourceExhausted, folder + ": cannot be created: " + ec.message());
  return folder;
}

Result<std::string> commit_checkpoint(const std::string& temporary_folder, const std::string& run_folder,
                                      CheckpointManifest manifest) {
  TROUPE_ASSIGN(manifest.files, list_files(temporary_folder));
  TROUPE_RETURN_IF_ERROR(write_manifest(temporary_folder + "/" + kManifest, manifest));
  TROUPE_RETURN_IF_ERROR(sync_path(temporary_folder));
  const std::string final_folder = checkpoints_folder(run_folder) + "/" + checkpoint_name(manifest.step);
  TROUPE_RETURN_IF_ERROR(move_into_place(temporary_folder, final_folder));
  TROUPE_RETURN_IF_ERROR(sync_path(checkpoints_folder(run_folder)));
  return final_folder;
}

Result<CheckpointManifest> read_checkpoint(const std::string& folder, bool verify) {
  const std::string path = folder + "/" + kManifest;
  std::ifstream in(path, std::ios::binary);
  if (!in) return data_loss(path + ": cannot be read; the checkpoint is not complete");
  std::stringstream text;
  text << in.rdbuf();
  TROUPE_ASSIGN(CheckpointManifest manifest, manifest_from_json(text.str(), path));
  for (const CheckpointFile& file : manifest.files) {
    const std::string name = folder + "/" + file.name;
    std::error_code ec;
    const uint64_t bytes = fs::file_size(name, ec);
    if (ec) return data_loss(name + ": is missing from the checkpoint");
    if (bytes != file.bytes)
      return data_loss(name + ": has " + std::to_string(bytes) + " bytes, the manifest says " +
                       std::to_string(file.bytes));
    if (!verify) continue;
    TROUPE_ASSIGN(const std::string sum, checksum_of(name));
    if (sum != file.xxh64) return data_loss(name + ": has checksum " + sum + ", the manifest says " + file.xxh64);
  }
  return manifest;
}

Result<std::string> latest_checkpoint(const std::string& run_folder) {
  for (const std::string& name : committed(run_folder)) {
    const std::string folder = checkpoints_folder(run_folder) + "/" + name;
    if (read_checkpoint(folder, /*verify=*/false).ok()) return folder;
  }
  return not_found(checkpoints_folder(run_folder) + ": holds no complete checkpoint");
}

Status discard_unfinished(const std::string& run_folder) {
  std::error_code ec;
  std::vector<std::string> remove;
  for (const auto& entry : fs::directory_iterator(checkpoints_folder(run_folder), ec))
    if (entry.path().filename().string().starts_with(".step-")) remove.push_back(entry.path().string());
  for (const std::string& folder :
       {export_parts_folder(run_folder + "/export"), export_partial_folder(run_folder + "/export")})
    if (fs::exists(folder, ec)) remove.push_back(folder);
  for (const std::string& folder : remove) {
    fs::remove_all(folder, ec);
    if (ec) return internal_error(folder + ": cannot be removed: " + ec.message());
  }
  return {};
}

Status prune_checkpoints(const std::string& run_folder, int keep) {
  TROUPE_RETURN_IF_ERROR(discard_unfinished(run_folder));
  std::error_code ec;
  std::vector<std::string> remove;
  int kept = 0;
  for (const std::string& name : committed(run_folder)) {
    const std::string folder = checkpoints_folder(run_folder) + "/" + name;
    // An incomplete folder never counts as kept, or keep: 1 could remove the only good checkpoint.
    if (!read_checkpoint(folder, /*verify=*/false).ok() || (keep > 0 && kept >= keep))
      remove.push_back(folder);
    else
      ++kept;
  }
  for (const std::string& folder : remove) {
    fs::remove_all(folder, ec);
    if (ec) return internal_error(folder + ": cannot be removed: " + ec.message());
  }
  return {};
}

uint64_t free_disk_bytes(const std::string& folder) {
  fs::path at = fs::absolute(folder);
  std::error_code error;
  while (!fs::exists(at, error) && at != at.parent_path()) at = at.parent_path();
  const fs::space_info space = fs::space(at, error);
  return error || space.capacity == 0 ? UINT64_MAX : space.available;  // some file systems do not tell
}

}  // namespace troupe
