#include <dlfcn.h>
#include <xxhash.h>

#include <filesystem>

#include "actors/parquet/parquet_module.h"
#include "actors/parquet/parquet_rows.h"

namespace troupe {
namespace {

struct Module {
  OpenParquetRows* open = nullptr;
  ParquetLibrary* library = nullptr;
  uint64_t hash = 0;  // of its code and of the library's version
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
  void* library = entry != nullptr ? ::dlsym(module, kParquetLibraryEntry) : nullptr;
  if (library != nullptr)
    return Module{reinterpret_cast<OpenParquetRows*>(entry), reinterpret_cast<ParquetLibrary*>(library)};
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
  std::string version;
  module.library(version);
  return XXH3_64bits_withSeed(file->bytes().data(), file->bytes().size(), XXH3_64bits(version.data(), version.size()));
}

Result<Module> load_and_hash() {
  TROUPE_ASSIGN(Module module, load());
  TROUPE_ASSIGN(module.hash, hash_of(module));
  return module;
}

}  // namespace

Result<ParquetRows> open_parquet(const std::shared_ptr<const MappedFile>& file, const std::string& path,
                                 const std::set<std::string>& names) {
  ParquetRows rows;
  static const auto module = load_and_hash();  // the module is the same for every file of the process
  if (!module.ok()) return make_error(module.error().code, path + " is a Parquet file, but " + module.error().message);
  rows.reader = module->hash;
  Result<std::shared_ptr<const RowFile>> opened = internal_error("was not opened");
  module->open(file, names, opened);
  if (!opened.ok()) return make_error(opened.error().code, path + " " + opened.error().message);
  rows.file = std::move(*opened);
  return rows;
}

}  // namespace troupe
