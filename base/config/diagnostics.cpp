#include "base/config/diagnostics.h"

#include <algorithm>

#include "base/printable_text.h"

namespace troupe {

void Diagnostics::add_key(const SourcePlace& place, const std::string& key, const std::string& message) {
  const bool settled = std::any_of(settled_.begin(), settled_.end(),
                                   [&](const std::string& s) { return s == key || s.starts_with(key + "["); });
  if (settled) return;
  keys_.push_back(key);
  add(place, "key '" + key + "': " + message);
}

Status Diagnostics::to_status() const {
  if (found_.empty()) return {};
  auto sorted = found_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first.line < b.first.line; });
  std::string text;
  std::string last;
  for (const auto& [place, message] : sorted) {
    std::string line = printable(place.to_string() + ": " + message, /*keep_lines=*/false);
    if (line == last) continue;
    text += (text.empty() ? "" : "\n") + line;
    last = std::move(line);
  }
  return invalid_argument(text);
}

bool Diagnostics::mentions(const std::string& key) const {
  return std::any_of(keys_.begin(), keys_.end(), [&](const std::string& k) {
    return k.compare(0, key.size(), key) == 0 &&
           (k.size() == key.size() || k[key.size()] == '.' || k[key.size()] == '[');
  });
}

int edit_distance(const std::string& a, const std::string& b) {
  const size_t n = a.size(), m = b.size();
  std::vector<std::vector<int>> d(n + 1, std::vector<int>(m + 1, 0));
  for (size_t i = 0; i <= n; ++i) d[i][0] = static_cast<int>(i);
  for (size_t j = 0; j <= m; ++j) d[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= n; ++i)
    for (size_t j = 1; j <= m; ++j) {
      const int replace = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[n][m];
}

std::string nearest_word(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  int best_distance = std::max<int>(1, static_cast<int>(word.size()) / 3) + 1;
  for (const std::string& c : candidates)
    if (const int d = edit_distance(word, c); d < best_distance && d < static_cast<int>(c.size())) {
      best = c;
      best_distance = d;
    }
  return best;
}

std::string join_words(const std::vector<std::string>& words, const std::string& separator) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : separator) + w;
  return out;
}

}  // namespace troupe
