#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "actors/data/record.h"

/// Records as tests of their spellings want them: read, or refused with a reason.
namespace troupe::testing {

inline Record good(const std::string& json, const RecordSpelling& spelling = {}) {
  Record record;
  const auto status = parse_record(json, record, spelling);
  INFO(json << (status.ok() ? "" : ": " + status.error().message));
  REQUIRE(status.ok());
  return record;
}

/// The reason for which a record is refused.
inline std::string reason(const std::string& json, const RecordSpelling& spelling = {}, TextPlace begin = {}) {
  Record record;
  const auto status = parse_record(json, record, spelling, begin);
  INFO(json);
  REQUIRE_FALSE(status.ok());
  return status.error().message;
}

inline bool says(const std::string& json, const std::string& words) {
  const std::string why = reason(json);
  INFO("reason: " << why);
  return why.find(words) != std::string::npos;
}

/// A question and an answer with more keys each, and more of the record.
inline std::string marked(const std::string& question, const std::string& answer, const std::string& keys = "") {
  return "{" + keys + R"("messages": [{"role": "user", "content": "q")" + question +
         R"(}, {"role": "assistant", "content": "a")" + answer + "}]}";
}

}  // namespace troupe::testing
