#pragma once

#include <cstddef>
#include <string_view>

namespace troupe {

/// The split regex of the Qwen family, matched by hand: several times as fast as a regex engine, and the same cuts.
/// True when `pattern` is that regex to the letter.
bool is_qwen_pattern(std::string_view pattern);
/// Bytes of the regex's match at the start of `text`, which is not empty and well-formed UTF-8. Never 0: the regex
/// leaves nothing out.
size_t qwen_match(std::string_view text);

}  // namespace troupe
