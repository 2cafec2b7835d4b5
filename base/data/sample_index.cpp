#include "base/data/sample_index.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

// The numbers are written as they lie in memory, which is little-endian on every machine that Troupe runs on.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

namespace troupe {
namespace {

constexpr std::string_view kMagic = "TRPINDX1";
constexpr size_t kHeaderBytes = 24;  // magic, payload bytes, checksum

class Writer {
 public:
  template <typename T>
  void number(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out_.append(bytes, sizeof(T));
  }
  void text(const std::string& s) {
    number<uint64_t>(s.size());
    out_ += s;
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Reads what Writer wrote; after a read past the end `ok()` is false and every further value is zero.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  T number() {
    T value{};
    if (rest_.size() < sizeof(T)) return fail(value);
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return value;
  }
  std::string text() {
    const auto size = number<uint64_t>();
    if (size > rest_.size()) return fail(std::string());
    std::string s(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return s;
  }
  /// A count of elements that take at least `least_bytes` each: bounded by what is left, so that a bad count allocates
  /// nothing.
  size_t count(size_t least_bytes) {
    const auto n = number<uint64_t>();
    if (n > rest_.size() / least_bytes) return fail(size_t{0});
    return n;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }

 private:
  template <typename T>
  T fail(T value) {
    ok_ = false;
    rest_ = {};
    return value;
  }
  std::string_view rest_;
  bool ok_ = true;
};

void put(Writer& w, const IndexedSample& s) {
  w.number(s.source);
  w.number(s.record);
  w.number(s.byte_offset);
  w.number(s.byte_length);
  w.number(s.tokens);
  w.number(s.supervised);
  w.number<uint64_t>(s.images.size());
  for (const auto& image : s.images) {
    w.number(image.t);
    w.number(image.h);
    w.number(image.w);
    w.number(image.token_offset);
  }
  w.text(s.id);
}

IndexedSample get_sample(Reader& r) {
  IndexedSample s;
  s.source = r.number<int32_t>();
  s.record = r.number<int64_t>();
  s.byte_offset = r.number<int64_t>();
  s.byte_length = r.number<int64_t>();
  s.tokens = r.number<int32_t>();
  s.supervised = r.number<int32_t>();
  s.images.resize(r.count(16));
  for (auto& image : s.images) {
    image.t = r.number<int32_t>();
    image.h = r.number<int32_t>();
    image.w = r.number<int32_t>();
    image.token_offset = r.number<int32_t>();
  }
  s.id = r.text();
  return s;
}

Error system_error(const std::string& what, const std::string& path) {
  return make_error(ErrorCode::kFailedPrecondition, what + " " + path + ": " + std::strerror(errno));
}

Status write_durably(const std::string& path, const std::string& bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return system_error("cannot create", path);
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      Error error = system_error("cannot write", path);
      ::close(fd);
      return error;
    }
    done += static_cast<size_t>(n);
  }
  const bool synced = ::fsync(fd) == 0;
  const bool closed = ::close(fd) == 0;
  if (!synced || !closed) return system_error("cannot write", path);
  return {};
}

}  // namespace

Status SampleIndex::write(const std::string& path) const {
  Writer body;
  body.text(digest);
  body.number(total_records);
  body.number<uint64_t>(samples.size());
  for (const auto& s : samples) put(body, s);
  body.number<uint64_t>(bad.size());
  for (const auto& b : bad) {
    body.text(b.file);
    body.number(b.line);
    body.number(b.record);
    body.text(b.id);
    body.text(b.reason);
  }
  const std::string payload = body.take();
  Writer header;
  header.number<uint64_t>(payload.size());
  header.number<uint64_t>(XXH3_64bits(payload.data(), payload.size()));
  // The process id keeps two writers of one path apart; the rename makes the file appear whole or not at all.
  const std::string temporary = path + ".tmp" + std::to_string(::getpid());
  if (auto status = write_durably(temporary, std::string(kMagic) + header.take() + payload); !status.ok()) {
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
  std::ifstream in(path, std::ios::binary);
  if (!in) return not_found("cannot open the index " + path + ": " + std::strerror(errno));
  std::ostringstream contents;
  contents << in.rdbuf();
  const std::string bytes = std::move(contents).str();
  if (bytes.size() < kHeaderBytes || std::string_view(bytes).substr(0, kMagic.size()) != kMagic)
    return data_loss(path + " is not an index of samples");
  Reader header(std::string_view(bytes).substr(kMagic.size(), kHeaderBytes - kMagic.size()));
  const auto size = header.number<uint64_t>(), checksum = header.number<uint64_t>();
  const auto payload = std::string_view(bytes).substr(kHeaderBytes);
  if (payload.size() != size)
    return data_loss("the index " + path + " holds " + std::to_string(payload.size()) + " bytes, not the " +
                     std::to_string(size) + " that it states");
  if (XXH3_64bits(payload.data(), payload.size()) != checksum)
    return data_loss("the checksum of the index " + path + " is wrong");
  Reader r(payload);
  SampleIndex index;
  index.digest = r.text();
  index.total_records = r.number<int64_t>();
  index.samples.resize(r.count(52));
  for (auto& s : index.samples) s = get_sample(r);
  index.bad.resize(r.count(40));
  for (auto& b : index.bad) {
    b.file = r.text();
    b.line = r.number<int64_t>();
    b.record = r.number<int64_t>();
    b.id = r.text();
    b.reason = r.text();
  }
  if (!r.ok() || !r.at_end()) return data_loss("the index " + path + " does not parse");
  return index;
}

bool in_eval_split(const IndexedSample& sample, double fraction) {
  if (fraction <= 0) return false;
  if (fraction >= 1) return true;
  const int64_t key[2] = {sample.source, sample.record};
  const uint64_t hash = XXH64(key, sizeof(key), 0);
  return static_cast<double>(hash >> 11) * 0x1.0p-53 < fraction;  // 53 bits: exact as a double
}

}  // namespace troupe
