#include "base/convert/spec_draft.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "base/result.h"

namespace troupe::convert {
namespace {

constexpr std::array<std::string_view, 48> kOrder = {
    "device",
    "model.path",
    "model.init",
    "model.dtype",
    "components.vision.train",
    "components.vision.lr",
    "components.merger.train",
    "components.merger.lr",
    "components.text.train",
    "groups.vision.components",
    "groups.vision.mesh",
    "groups.vision.zero",
    "groups.text.components",
    "groups.text.mesh",
    "groups.text.zero",
    "placement",
    "data.sources",
    "data.columns",
    "data.shuffle",
    "data.sort_window",
    "data.max_sample_tokens",
    "data.too_long",
    "data.pack_tokens",
    "data.min_pixels",
    "data.max_pixels",
    "data.video.fps",
    "data.video.min_frames",
    "data.video.max_frames",
    "data.video.min_pixels",
    "data.video.max_pixels",
    "data.supervise",
    "data.on_bad_record",
    "eval.split",
    "eval.sources",
    "eval.every",
    "training.steps",
    "training.epochs",
    "training.global_batch",
    "training.microbatch.samples",
    "training.optimizer.lr",
    "training.optimizer.betas",
    "training.optimizer.eps",
    "training.optimizer.weight_decay",
    "training.optimizer.clip",
    "training.schedule",
    "training.seed",
    "checkpoint",
    "logging.every",
};

/// Of a key, or of the section that it belongs to.
size_t rank_of(const std::string& path) {
  const auto at = std::find_if(kOrder.begin(), kOrder.end(), [&](std::string_view known) {
    return path == known || (path.size() > known.size() && path.rfind(known, 0) == 0 && path[known.size()] == '.');
  });
  TROUPE_CHECK(at != kOrder.end());
  return static_cast<size_t>(at - kOrder.begin());
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> out;
  std::stringstream in(path);
  for (std::string part; std::getline(in, part, '.');) out.push_back(part);
  return out;
}

std::string indent(size_t depth) { return std::string(2 * depth, ' '); }

}  // namespace

void SpecDraft::set(const std::string& path, const std::string& value, std::vector<std::string> from, std::string why) {
  TROUPE_CHECK(!find(path));
  keys_.push_back({path, value, {}, std::move(from), std::move(why)});
}

void SpecDraft::set_list(const std::string& path, std::vector<std::string> items, std::vector<std::string> from) {
  TROUPE_CHECK(!find(path));
  keys_.push_back({path, "", std::move(items), std::move(from), ""});
}

void SpecDraft::set_default(const std::string& path, const std::string& value) { set(path, value, {}, ""); }

void SpecDraft::set_or_default(bool given, const std::string& path, const std::string& value, const std::string& key) {
  set(path, value, given ? std::vector<std::string>{key} : std::vector<std::string>{});
}

const DraftKey* SpecDraft::find(const std::string& path) const {
  const auto at = std::find_if(keys_.begin(), keys_.end(), [&](const DraftKey& k) { return k.path == path; });
  return at == keys_.end() ? nullptr : &*at;
}

std::string SpecDraft::origin_of(const DraftKey& key) const {
  std::string origin;
  for (const std::string& name : key.from) origin += (origin.empty() ? "" : ", ") + name;
  if (origin.empty() && key.why.empty()) return tool_ + "'s default";
  if (origin.empty() || key.why.empty()) return origin + key.why;
  return origin + ": " + key.why;
}

std::string SpecDraft::to_yaml() const {
  std::vector<DraftKey> sorted = keys_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const DraftKey& a, const DraftKey& b) { return rank_of(a.path) < rank_of(b.path); });
  std::string out;
  std::vector<std::string> open;
  for (const DraftKey& key : sorted) {
    const std::vector<std::string> parts = parts_of(key.path);
    size_t shared = 0;
    while (shared < open.size() && shared + 1 < parts.size() && open[shared] == parts[shared]) ++shared;
    open.resize(shared);
    for (; shared + 1 < parts.size(); ++shared) {
      out += indent(shared) + parts[shared] + ":\n";
      open.push_back(parts[shared]);
    }
    const std::string comment = "  # " + origin_of(key) + "\n";
    out += indent(shared) + parts.back() + ":" + (key.items.empty() ? " " + key.value : "") + comment;
    for (const std::string& item : key.items) out += indent(shared + 1) + "- " + item + "\n";
  }
  return out;
}

}  // namespace troupe::convert
