#include "base/safetensors/safetensors_file.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/safetensors/safetensors_writer.h"
#include "tests/scratch_folder.h"

using namespace troupe;

namespace {

std::string path() {
  static const ScratchFolder scratch;
  return scratch.path("weights.safetensors");
}

std::string with_header(const std::string& header, const std::string& bytes) {
  std::string out(8, '\0');
  for (size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  return out + header + bytes;
}

void write(const std::string& content) { std::ofstream(path(), std::ios::binary) << content; }

std::string complaint(const std::string& content) {
  write(content);
  const auto f = SafetensorsFile::open(path());
  if (f.ok()) return "(accepted)";
  CHECK(f.error().message.find(path() + ": ") == 0);
  return f.error().message.substr(path().size() + 2);
}

const std::string kHeader =
    R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[1,3],"data_offsets":[8,14]}})";

}  // namespace

TEST_CASE("what the writer writes, the reader reads") {
  const float a[2] = {1.5f, -2.0f};
  const uint16_t b[3] = {1, 2, 3};
  const int64_t c[1] = {-7};
  auto writer = SafetensorsWriter::create(path(),
                                          {{"z.weight", FileDType::kF32, {2}},
                                           {"b", FileDType::kBf16, {3, 1}},
                                           {"none", FileDType::kF16, {0, 4}},
                                           {"c", FileDType::kI64, {}}},
                                          {{"step", "4"}});
  REQUIRE(writer.ok());
  CHECK_FALSE((*writer)->finish().ok());
  REQUIRE((*writer)->append(a, 4).ok());
  REQUIRE((*writer)->append(a + 1, 4).ok());
  REQUIRE((*writer)->append(b, 6).ok());
  REQUIRE((*writer)->append(c, 8).ok());
  CHECK_FALSE((*writer)->append(c, 1).ok());
  REQUIRE((*writer)->finish().ok());
  CHECK_FALSE(std::filesystem::exists(path() + ".partial"));
  const auto file = SafetensorsFile::open(path());
  if (!file.ok()) FAIL(file.error().message);
  CHECK((*file)->tensors().front().name == "z.weight");
  CHECK((*file)->metadata().at("step") == "4");
  const TensorInfo* t = (*file)->find("b");
  REQUIRE(t != nullptr);
  CHECK(t->shape == std::vector<int64_t>{3, 1});
  CHECK(t->dtype == FileDType::kBf16);
  CHECK(std::memcmp((*file)->data(*t), b, 6) == 0);
  CHECK(std::memcmp((*file)->data(*(*file)->find("c")), c, 8) == 0);
  CHECK((*file)->find("none")->elements() == 0);
  CHECK((*file)->find("missing") == nullptr);
}

TEST_CASE("a writer that is dropped leaves no file") {
  std::filesystem::remove(path());
  { auto writer = SafetensorsWriter::create(path(), {{"a", FileDType::kF32, {2}}}); }
  CHECK_FALSE(std::filesystem::exists(path()));
  CHECK_FALSE(std::filesystem::exists(path() + ".partial"));
}

TEST_CASE("a truncated file is refused with expected and real size") {
  const std::string whole = with_header(kHeader, std::string(14, 'x'));
  CHECK(complaint(whole) == "(accepted)");
  CHECK(complaint(whole.substr(0, whole.size() - 1)) == "truncated: its tensors need " + std::to_string(whole.size()) +
                                                            " bytes, the file has " + std::to_string(whole.size() - 1));
  CHECK(complaint(whole.substr(0, 20)) ==
        "truncated: the header needs " + std::to_string(8 + kHeader.size()) + " bytes, the file has 20");
  CHECK(complaint("abc") == "truncated: a safetensors file has at least 8 bytes, this one has 3");
}

TEST_CASE("bytes after the last tensor are refused unless they are zero") {
  const std::string whole = with_header(kHeader, std::string(14, 'x'));
  CHECK(complaint(whole + std::string(5, '\0')) == "(accepted)");
  CHECK(complaint(whole + "y") == "1 bytes follow the last tensor: expected size " + std::to_string(whole.size()) +
                                      ", real size " + std::to_string(whole.size() + 1));
}

TEST_CASE("a header that lies is refused before anything is believed") {
  CHECK(complaint(std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8) + "{}").find("is above the limit of 100000000") !=
        std::string::npos);
  CHECK(complaint(with_header("{not json", "")).find("the safetensors header is not valid JSON") == 0);
  CHECK(complaint(with_header("[]", "")) == "the safetensors header is not a JSON object");
  CHECK(complaint(with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "xxxx")) ==
        "tensor 'a': data_offsets [0,4] do not hold shape [2] of F32 (8 bytes)");
  CHECK(
      complaint(with_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "xxxxxxxx")).find("(a gap)") !=
      std::string::npos);
  CHECK(
      complaint(
          with_header(
              R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
              "xxxx"))
          .find("overlaps") != std::string::npos);
  CHECK(complaint(with_header(R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", "x")) ==
        "tensor 'a': dtype 'F8_E4M3' is not supported; valid: F32, BF16, F16, I64");
  CHECK(complaint(with_header(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "xxxx")) ==
        "tensor 'a': shape [-1] is not valid");
  CHECK(
      complaint(with_header(R"({"a":{"dtype":"F32","shape":[99999999999,99999999999],"data_offsets":[0,4]}})", "xxxx"))
          .find("is not valid") != std::string::npos);
  CHECK(
      complaint(with_header(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
          "xxxxxxxx")) == "tensor 'a' occurs twice in the header");
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  CHECK(complaint(with_header(R"({"a":{"dtype":"F32","shape":)" + deep + R"(,"data_offsets":[0,4]}})", "xxxx")) ==
        "the safetensors header is nested deeper than 512 levels");
  CHECK(SafetensorsFile::open("/nowhere").error().code == ErrorCode::kNotFound);
}
