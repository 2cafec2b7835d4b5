#pragma once

#include <vector>

#include "base/program/program.h"

/// Loops of three groups up to and with `combine`; tests go on from there.
namespace troupe {

/// Two encoders that feed one decoder.
inline Recorder record_two_encoders(int credits) {
  Recorder r({"vision", "audio", "text"});
  r.edge(0, 2, true);
  r.edge(1, 2, true);
  r.credits(credits);
  for (int g : {0, 1}) r.for_units(g, [&] { r.forward(g); });
  r.for_units(2, [&] {
    r.forward(2);
    r.backward(2);
  });
  for (int g : {0, 1}) r.for_units(g, [&] { r.backward(g); });
  r.combine();
  return r;
}

/// An encoder, a decoder and a head behind it. `gradient`: whether one goes back to the encoder.
inline Recorder record_chain(int credits, bool gradient = true) {
  Recorder r({"vision", "text", "head"});
  r.edge(0, 1, gradient);
  r.edge(1, 2, true);
  r.credits(credits);
  for (int g : {0, 1}) r.for_units(g, [&] { r.forward(g); });
  r.for_units(2, [&] {
    r.forward(2);
    r.backward(2);
  });
  r.for_units(1, [&] { r.backward(1); });
  if (gradient) r.for_units(0, [&] { r.backward(0); });
  r.combine();
  return r;
}

/// Producer unit u feeds consumer unit u.
inline std::vector<std::vector<int>> one_to_one(int n) {
  std::vector<std::vector<int>> feeds;
  for (int u = 0; u < n; ++u) feeds.push_back({u});
  return feeds;
}

}  // namespace troupe
