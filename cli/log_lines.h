#pragma once

#include <string>

/// How `troupe logs` writes lines of hosts.
namespace troupe::cli {

/// `text` as it is; with `as_json` one object a line: {"file", "group", "rank", "line"}, without "file" when it is not
/// known (empty) and without group and rank when the line belongs to the whole host. `text` is whole lines; the last
/// may lack its newline.
std::string log_text(const std::string& text, const std::string& file, bool as_json);

}  // namespace troupe::cli
