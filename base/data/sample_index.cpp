#include "base/data/sample_index.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "base/data/byte_codec.h"

namespace troupe {
namespace {

constexpr std::string_view kMagic = "TRPINDX3";
/// What a file begins with; behind it the samples' rows, the images, the ids, and what is left (digest, bad records).
struct Header {
  char magic[8];
  uint64_t checksum;  // of everything behind it
  uint64_t samples, images, id_bytes, rest_bytes;
};
static_assert(sizeof(Header) == 48);
static_assert(sizeof(IndexedImage) == 24);
constexpr size_t kChecked = 16;  // offset of the first byte that the checksum covers

Error system_error(const std::string& what, const std::string& path) {
  return make_error(ErrorCode::kFailedPrecondition, what + " " + path + ": " + std::strerror(errno));
}

Status write_all(int fd, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("cannot write", path);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Status write_durably(const std::string& path, const std::vector<std::string_view>& parts) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return system_error("cannot create", path);
  for (const auto part : parts) {
    auto written = write_all(fd, path, part);
    if (written.ok()) continue;
    ::close(fd);
    return written;
  }
  const bool synced = ::fsync(fd) == 0;
  const bool closed = ::close(fd) == 0;
  if (!synced || !closed) return system_error("cannot write", path);
  return {};
}

template <typename T>
std::string_view bytes_of(std::span<const T> list) {
  return {reinterpret_cast<const char*>(list.data()), list.size_bytes()};
}
std::string_view bytes_of(const Header& header) { return {reinterpret_cast<const char*>(&header), sizeof(header)}; }

/// Of the parts one after the other, without what stands before kChecked in the first.
uint64_t checksum_of(const std::vector<std::string_view>& parts) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto part = i == 0 ? parts[i].substr(kChecked) : parts[i];
    XXH3_64bits_update(state.get(), part.data(), part.size());
  }
  return XXH3_64bits_digest(state.get());
}

}  // namespace

std::string BadRecord::to_string() const {
  return file + ":" + std::to_string(line) + ": record '" + id + "': " + reason;
}

SampleView SampleList::operator[](size_t i) const {
  const Row& row = rows()[i];
  SampleView view;
  view.source = row.source;
  view.record = row.record;
  view.byte_offset = row.byte_offset;
  view.byte_length = row.byte_length;
  view.tokens = row.tokens;
  view.supervised = row.supervised;
  view.images = images().subspan(row.first_image, row.images);
  view.id = ids().substr(row.first_id_byte, row.id_bytes);
  return view;
}

void SampleList::push_back(const SampleView& sample) {
  TROUPE_CHECK(file_ == nullptr);
  Row row{};
  row.record = sample.record;
  row.byte_offset = sample.byte_offset;
  row.byte_length = sample.byte_length;
  row.first_image = images_.size();
  row.first_id_byte = ids_.size();
  row.source = sample.source;
  row.tokens = sample.tokens;
  row.supervised = sample.supervised;
  row.images = static_cast<uint32_t>(sample.images.size());
  row.id_bytes = static_cast<uint32_t>(sample.id.size());
  rows_.push_back(row);
  images_.insert(images_.end(), sample.images.begin(), sample.images.end());
  ids_ += sample.id;
}

Status SampleIndex::write(const std::string& path) const {
  ByteWriter rest;
  rest.text(digest);
  rest.number(total_records);
  rest.number<uint64_t>(bad.size());
  for (const auto& b : bad) {
    rest.text(b.file);
    rest.number(b.line);
    rest.number(b.record);
    rest.text(b.id);
    rest.text(b.reason);
  }
  const std::string tail = rest.take();
  Header header{};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  header.samples = samples.rows().size();
  header.images = samples.images().size();
  header.id_bytes = samples.ids().size();
  header.rest_bytes = tail.size();
  const std::vector<std::string_view> parts{bytes_of(header), bytes_of(samples.rows()), bytes_of(samples.images()),
                                            samples.ids(), tail};
  header.checksum = checksum_of(parts);
  // The process id keeps two writers of one path apart; the rename makes the file appear whole or not at all.
  const std::string temporary = path + ".tmp" + std::to_string(::getpid());
  if (auto status = write_durably(temporary, parts); !status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    Error error = system_error("cannot rename " + temporary + " to", path);
    ::unlink(temporary.c_str());
    return error;
  }
  return {};
}

Result<SampleIndex> SampleIndex::read(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file.ok()) return wrap(file.error(), "the index");
  const std::string_view bytes = (*file)->bytes();
  if (bytes.size() < sizeof(Header) || !bytes.starts_with(kMagic))
    return data_loss(path + " is not an index of samples, or of another version");
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.checksum != checksum_of({bytes})) return data_loss("the checksum of the index " + path + " is wrong");
  // The checksum is no proof against a file made to mislead: every size and position is checked against what is there.
  const auto bad_file = [&] { return data_loss("the index " + path + " does not parse"); };
  size_t at = sizeof(Header);
  const auto section = [&](uint64_t count, size_t bytes_each) -> std::optional<std::string_view> {
    if (count > (bytes.size() - at) / bytes_each) return std::nullopt;
    const auto part = bytes.substr(at, count * bytes_each);
    at += part.size();
    return part;
  };
  const auto rows = section(header.samples, sizeof(SampleList::Row));
  const auto images = rows ? section(header.images, sizeof(IndexedImage)) : std::nullopt;
  const auto ids = images ? section(header.id_bytes, 1) : std::nullopt;
  if (!ids || bytes.size() - at != header.rest_bytes) return bad_file();
  SampleIndex index;
  SampleList& list = index.samples;
  // Rows and images are read where they lie: the file is mapped at a page's start and both sizes are multiples of
  // eight.
  list.mapped_rows_ = {reinterpret_cast<const SampleList::Row*>(rows->data()), header.samples};
  list.mapped_images_ = {reinterpret_cast<const IndexedImage*>(images->data()), header.images};
  list.mapped_ids_ = *ids;
  list.file_ = *file;
  for (const auto& row : list.mapped_rows_)
    if (row.first_image > header.images || row.images > header.images - row.first_image ||
        row.first_id_byte > header.id_bytes || row.id_bytes > header.id_bytes - row.first_id_byte)
      return bad_file();
  ByteReader r(bytes.substr(at));
  index.digest = r.text();
  index.total_records = r.number<int64_t>();
  index.bad.resize(r.count(40));
  for (auto& b : index.bad) {
    b.file = r.text();
    b.line = r.number<int64_t>();
    b.record = r.number<int64_t>();
    b.id = r.text();
    b.reason = r.text();
  }
  if (!r.ok() || !r.at_end()) return bad_file();
  (*file)->forget(0, bytes.size());  // what is looked at later is mapped again
  return index;
}

bool in_eval_split(const SampleView& sample, double fraction) {
  if (fraction <= 0) return false;
  if (fraction >= 1) return true;
  const int64_t key[2] = {sample.source, sample.record};
  const uint64_t hash = XXH64(key, sizeof(key), 0);
  return static_cast<double>(hash >> 11) * 0x1.0p-53 < fraction;  // 53 bits: exact as a double
}

}  // namespace troupe
