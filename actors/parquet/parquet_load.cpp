#include <dlfcn.h>
#include <xxhash.h>

#include <filesystem>

#include "actors/parquet/parquet_module.h"
#include "actors/parquet/parquet_rows.h"

namespace troupe {
namespace {

struct Module {
  OpenParquetRows* open;
};

/// The module stays loaded: rows are freed by its code.
Result<Module> load() {
  // In lib/ beside the program's bin/, else where the loader looks.
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto beside = program.parent_path().parent_path() / "lib" / kParquetModule;
  const std::string name = std::filesystem::exists(beside, error) ? beside.string() : kParquetModule;
  // Local: Arrow's libraries bring an OpenSSL and a Thrift of their own and export them, which nobody else may find.
  void* module = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  void* entry = module != nullptr ? ::dlsym(module, kParquetEntry) : nullptr;
  if (entry != nullptr) return Module{reinterpret_cast<OpenParquetRows*>(entry)};
  const char* why = ::dlerror();
  return make_error(ErrorCode::kFailedPrecondition, std::string("the module that reads Parquet cannot be loaded: ") +
                                                        (why != nullptr ? why : "?") + "; valid: " + kParquetModule +
                                                        " in lib/ beside the program's bin/");
}

Result<uint64_t> hash_of(const Module& module) {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(module.open), &info) == 0)
    return internal_error("dladdr knows no such function");
  TROUPE_ASSIGN(const auto file, MappedFile::open(info.dli_fname));
  return XXH3_64bits(file->bytes().data(), file->bytes().size());
}

}  // namespace

Result<ParquetRows> open_parquet(const std::shared_ptr<const MappedFile>& file, const std::string& path,
                                 const std::set<std::string>& names) {
  ParquetRows rows;
  const auto module = load();
  if (!module.ok()) return make_error(module.error().code, path + " is a Parquet file, but " + module.error().message);
  TROUPE_ASSIGN(rows.reader, hash_of(*module));
  Result<std::shared_ptr<const RowFile>> opened = internal_error("was not opened");
  module->open(file, names, opened);
  if (!opened.ok()) return make_error(opened.error().code, path + " " + opened.error().message);
  rows.file = std::move(*opened);
  return rows;
}

}  // namespace troupe
