#pragma once

#include <string>
#include <vector>

#include "actors/data/record.h"

namespace troupe {

/// A chat that templates are tried on; images and videos stand as placeholders in the questions.
struct ProbeChat {
  std::string name;  // "a chat with NAME"
  std::vector<Turn> turns;
};

/// The first has one question and no system turn.
std::vector<ProbeChat> probe_chats();
/// All with videos, some with images too.
std::vector<ProbeChat> video_probe_chats();

}  // namespace troupe
