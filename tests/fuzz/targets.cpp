#include "tests/fuzz/targets.h"

#include <unistd.h>
#include <xxhash.h>

#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <sstream>

#include "actors/data/record.h"
#include "actors/data/record_file.h"
#include "actors/data/record_table.h"
#include "actors/data/template_probes.h"
#include "actors/images/image_file.h"
#include "actors/parquet/parquet_rows.h"
#include "actors/parquet/row_pool.h"
#include "actors/sources/inline_data.h"
#include "actors/sources/tar_file.h"
#include "actors/video/video_files.h"
#include "base/data/index_block.h"
#include "base/data/sample_index.h"
#include "base/utf8.h"
#include "tests/actors/data/fixture.h"
#include "tests/actors/parquet/parquet_fixture.h"

namespace troupe::fuzz {
namespace {

constexpr size_t kRecordsParsed = 200;  // of one input
constexpr int64_t kMostPixelsDecoded = int64_t{1} << 22;

const fixture::Scratch& scratch() {
  static const fixture::Scratch folder;
  return folder;
}

/// Uses a value, so that reading it is not left out.
void use(uint64_t value) {
  static volatile uint64_t sink;
  sink = sink + value;
}

std::vector<std::string> record_seeds() {
  const std::string llava =
      R"({"id": "a", "image": "a.png", "conversations": [{"from": "human", "value": "<image>\nWas \u00e4\ud83d\ude00?"}, {"from": "gpt", "value": "Yes \"so\"."}]})";
  const std::string swift =
      R"({"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}, {"role": "assistant", "content": "y"}], "images": []})";
  const std::string alpaca =
      R"({"instruction": "a", "input": "b", "output": "c", "history": [["q", "r"]], "images": [{"bytes": "AAAA"}, {"path": "x"}], "videos": ["a.mp4", [["b.png"], "c"]], "fps": [1, 2]})";
  return {llava, swift + "\n" + alpaca + "\r\n\n" + llava,
          "\xEF\xBB\xBF[" + llava + ",\n" + swift + ", " + alpaca + "]\n", "[1, \"a,b\", null, [[[]]], {}]"};
}

void read_records(const std::string& bytes) {
  RecordScanner scanner(bytes);
  RecordSpan span;
  int64_t end = 0;  // of the record before
  for (size_t i = 0; i < kRecordsParsed && scanner.next(span); ++i) {
    if (span.offset < 0 || span.length <= 0 || span.offset + span.length > static_cast<int64_t>(bytes.size()))
      std::abort();
    if (span.offset < end) std::abort();
    end = span.offset + span.length;
    Record record;
    const auto text =
        std::string_view(bytes).substr(static_cast<size_t>(span.offset), static_cast<size_t>(span.length));
    const auto parsed = parse_record(text, record, {}, {span.line, span.column});
    for (const auto& image : record.images)
      if (is_inline_data(image.path)) use(decode_inline_data(image.path).ok());
    if (parsed.ok() && record.turns.empty()) std::abort();
  }
}

std::vector<std::string> image_seeds() {
  std::vector<std::string> seeds;
  for (const auto& file : std::filesystem::directory_iterator(fixture::path("pictures")))
    if (file.is_regular_file()) seeds.push_back(fixture::contents(file.path().string()));
  return seeds;
}

void read_image(const std::string& bytes) {
  const auto header = read_image_header(bytes);
  if (!header.ok()) return;
  if (header->width() <= 0 || header->height() <= 0 || header->width() * header->height() > kMaxImagePixels)
    std::abort();
}

std::vector<std::string> video_seeds() {
  std::vector<std::string> seeds;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(TROUPE_SOURCE_DIR) + "/tests/actors/video/clips"))
    seeds.push_back(fixture::contents(file.path().string()));
  return seeds;
}

/// The header, and of what has one the first frame and the last.
void read_video(const std::string& bytes) {
  static const std::unique_ptr<VideoFiles> files = make_video_files();
  const auto header = files->header(bytes);
  if (!header.ok()) return;
  if (header->width <= 0 || header->height <= 0 || header->width * header->height > kMaxVideoFramePixels) std::abort();
  if (header->frames <= 0 || !(header->fps > 0)) std::abort();
  if (header->width * header->height > kMostPixelsDecoded) return;
  const Status decoded = files->decode(bytes, {0, header->frames - 1}, [&](const RgbImage& frame) {
    if (frame.width != header->width || frame.height != header->height) std::abort();
    use(frame.pixels.back());
    return Status();
  });
  use(decoded.ok());
}

/// A member of a tar archive (ustar: name, size, magic and checksum in a head of 512 bytes); 1024 zero bytes end one.
std::string tar_member(const std::string& name, const std::string& text) {
  std::string head(512, '\0');
  const auto put = [&](size_t at, const std::string& field) { head.replace(at, field.size(), field); };
  const auto octal = [](size_t number, int digits) {
    std::ostringstream out;
    out << std::oct << std::setw(digits) << std::setfill('0') << number;
    return out.str();
  };
  put(0, name);
  put(100, "0000644");
  put(124, octal(text.size(), 11));
  put(136, "00000000000");
  put(148, "        ");
  put(156, "0");
  put(257, std::string("ustar\00000", 8));
  size_t sum = 0;
  for (const char c : head) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6) + '\0');
  return head + text + std::string((512 - text.size() % 512) % 512, '\0');
}

std::vector<std::string> tar_seeds() {
  const std::string end(1024, '\0');
  return {tar_member("a.json", "{}") + tar_member("a.png", std::string(700, 'p')) + end,
          tar_member("./b/c.json", "") + tar_member("b/c.tar.gz", "x") + end};
}

void read_tar(const std::string& bytes) {
  const auto tar = TarFile::open(scratch().write("input.tar", bytes));
  if (!tar.ok()) return;
  for (const auto& member : (*tar)->members()) {
    const auto content = (*tar)->bytes(member);
    if (content.size() != member.size) std::abort();
    use(XXH3_64bits(content.data(), content.size()));
    if ((*tar)->find(member.name) == nullptr) std::abort();
  }
  for (const auto& sample : (*tar)->samples()) use(sample.members.size());
}

std::vector<std::string> parquet_seeds() {
  std::vector<std::string> seeds;
  for (const char* name : {"snappy", "zstd", "gzip", "brotli", "pictures", "parts", "unused"})
    seeds.push_back(fixture::contents(fixture::parquet(std::string(name) + ".parquet")));
  return seeds;
}

void read_parquet(const std::string& bytes) {
  const auto file = MappedFile::open(scratch().write("input.parquet", bytes));
  if (!file.ok()) std::abort();
  const auto opened = open_parquet(*file, "input.parquet", known_keys({}));
  if (!opened.ok() && opened.error().code == ErrorCode::kFailedPrecondition) std::abort();  // nothing was read at all
  if (!opened.ok()) return;
  RowPool rows({opened->file});
  const int64_t count = std::min<int64_t>(opened->file->rows(), 80);
  for (int64_t i = 0; i < count; ++i) {
    const auto row = rows.row(0, (i * 37) % count);
    if (!row.ok()) continue;
    Record record;
    if (parse_row((*row)->object, record).ok() && record.turns.empty()) std::abort();
    for (const auto& image : record.images)
      if (image.bytes != nullptr) use(read_image_header(*image.bytes).ok());
  }
}

std::vector<std::string> index_seeds() {
  SampleIndex index;
  index.digest = "abc";
  index.total_records = 9;
  for (int i = 0; i < 8; ++i) {
    IndexedSample sample;
    sample.record = i;
    sample.byte_length = 10;
    sample.tokens = 30 + i;
    sample.images.resize(static_cast<size_t>(i % 3), {1, 4, 6, 2});
    sample.id = "sample " + std::to_string(i);
    index.samples.push_back(sample);
  }
  index.bad.push_back({"file", 3, 2, "id", "reason"});
  const std::string path = scratch().path("seed.index");
  if (!index.write(path).ok()) std::abort();
  return {fixture::contents(path)};
}

/// The checksum is mended, so that what is behind it is read too.
void read_index(const std::string& bytes) {
  constexpr size_t kChecksumAt = 8, kChecked = 16;
  std::string mended = bytes;
  if (mended.size() > kChecked) {
    const uint64_t checksum = XXH3_64bits(mended.data() + kChecked, mended.size() - kChecked);
    std::memcpy(mended.data() + kChecksumAt, &checksum, sizeof(checksum));
  }
  const auto index = SampleIndex::read(scratch().write("input.index", mended));
  if (!index.ok()) return;
  for (const SampleView sample : index->samples) {
    for (const auto& image : sample.images) use(static_cast<uint64_t>(image.h));
    for (const char c : sample.id) use(static_cast<unsigned char>(c));
  }
}

constexpr BlockKey kBlockKey{3, 4};
constexpr size_t kBlockRecords = 3;

std::vector<std::string> block_seeds() {
  BlockEntry sample, bad;
  sample.kind = BlockEntry::Kind::kSample;
  sample.tokens = 30;
  sample.images.resize(2, {1, 4, 6, 2});
  sample.seen = {{"a.png", 5}, {"", 1}};
  bad.kind = BlockEntry::Kind::kBad;
  bad.reason = "reason";
  return {encode_block(kBlockKey, {sample, bad, {}})};
}

/// With the checksum mended.
void read_block(const std::string& bytes) {
  constexpr size_t kChecksumAt = 8, kChecked = 16;
  std::string mended = bytes;
  if (mended.size() > kChecked) {
    const uint64_t checksum = XXH3_64bits(mended.data() + kChecked, mended.size() - kChecked);
    std::memcpy(mended.data() + kChecksumAt, &checksum, sizeof(checksum));
  }
  const auto entries = decode_block(mended, kBlockKey, kBlockRecords);
  if (!entries.ok()) return;
  if (entries->size() != kBlockRecords) std::abort();
  for (const auto& entry : *entries) use(entry.id.size() + entry.images.size());
}

std::vector<std::string> template_seeds() {
  const std::string words =
      "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p.text if p.type == 'text' else "
      "\"<|vision_start|><|image_pad|>\" ~ '<|vision_end|>' }}{% endfor %}{% endif %}";
  return {
      "{% for m in messages %}<|im_start|>{{ m.role }}\n" + words + "<|im_end|>\n{% endfor %}",
      "{%- set ns = namespace(n=0, s='\\u00e9\\n') -%}{% macro f(a, b=[1, {'c': -2}]) %}{{ a ~ b[0] }}{% endmacro "
      "%}{%- for m in messages[::-1] if loop is undefined or m.role in ('user',) %}{% set ns.n = ns.n + 1 %}{{ "
      "f(m.role | upper, b=m.content[:3]) }}{% if loop.last %}{% break %}{% elif not m.x %}{# c #}{% continue %}{% "
      "endif %}{%- else -%}{{ raise_exception('x') }}{% endfor %}",
      "{% set x %}{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list | length "
      "}}{% endset %}{% generation %}{{ x.split('1')[-1].strip() | default('y', true) | tojson }}{% endgeneration %}"};
}

void read_template(const std::string& bytes) {
  if (first_invalid_utf8(bytes) != std::string::npos) return;
  const auto parsed = jinja::Template::parse(bytes);
  if (!parsed.ok()) return;
  TemplateForm form(*parsed, {{"eos_token", "<|im_end|>"}});
  const Status probed = probe(form);
  const std::string said = probed.ok() ? form.default_system().value_or("") : probed.error().message;
  if (first_invalid_utf8(said) != std::string::npos) std::abort();
}

/// A reader with a fault, which shows that faults are found.
std::vector<std::string> planted_seeds() { return {"(1,2)"}; }
void read_planted(const std::string& bytes) {
  if (bytes.find("((") != std::string::npos) std::abort();
}

}  // namespace

void make_scratch() { scratch(); }

const std::vector<Target>& targets() {
  static const std::vector<Target> all{
      {"record", record_seeds, read_records},   {"image", image_seeds, read_image},
      {"video", video_seeds, read_video},       {"tar", tar_seeds, read_tar},
      {"parquet", parquet_seeds, read_parquet}, {"index", index_seeds, read_index},
      {"block", block_seeds, read_block},       {"template", template_seeds, read_template},
      {"planted", planted_seeds, read_planted}};
  return all;
}

}  // namespace troupe::fuzz
