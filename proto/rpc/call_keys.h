#pragma once

#include <string>

#include "base/ids.h"

/// The keys of the rendezvous store under which a job's hosts tell a custom loop where they take its calls.
namespace troupe {

/// A serialized wire::CallDirectory.
inline constexpr char kCallDirectoryKey[] = "calls/directory";

/// The address of the host on `slot`.
inline std::string call_address_key(Generation generation, SlotId slot) {
  return "g" + std::to_string(generation.value) + "/calls/slot/" + std::to_string(slot.value);
}

}  // namespace troupe
