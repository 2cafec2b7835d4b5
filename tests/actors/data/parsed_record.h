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

}  // namespace troupe::testing
