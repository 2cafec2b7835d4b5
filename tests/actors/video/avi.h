#pragma once

#include <string>
#include <vector>

#include "tests/actors/video/clips.h"

namespace troupe::clips {

/// The parts of mpeg4.avi, and files made of them: all before its list of frames, and what its frames hold.
struct Avi {
  std::string head;
  std::vector<std::string> chunks;
  bool sound = false;  // a second stream, a chunk of it behind each frame

  using Lists = std::vector<std::vector<std::string>>;

  Avi() {
    const std::string whole = clip("mpeg4.avi");
    const size_t movi = whole.find("movi");
    head = whole.substr(12, movi - 8 - 12);
    for (size_t at = movi + 4; at < whole.rfind("idx1");) {
      const size_t size = number(whole, at + 4);
      chunks.push_back(whole.substr(at + 8, size));
      at += 8 + size + size % 2;
    }
  }

  static size_t number(const std::string& bytes, size_t at) {
    size_t value = 0;
    for (size_t i = 0; i < 4; ++i) value |= static_cast<size_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
    return value;
  }
  static std::string little(size_t value) {
    std::string out;
    for (size_t i = 0; i < 4; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
    return out;
  }
  static std::string chunk(const std::string& id, const std::string& bytes) {
    return id + little(bytes.size()) + bytes + std::string(bytes.size() % 2, '\0');
  }

  /// With a list of frames for each of `lists`, in which an empty string is a frame that shows the one before again,
  /// and an index of it when it is to have one.
  std::string of(const Lists& lists, bool indexed) const {
    std::string out;
    for (const auto& list : lists) {
      std::string movi = "movi", index;
      const auto add = [&](const std::string& id, const std::string& bytes, bool key) {
        index += id + little(key ? 16 : 0) + little(movi.size()) + little(bytes.size());
        movi += chunk(id, bytes);
      };
      for (const std::string& frame : list) {
        add("00dc", frame, frame.starts_with(std::string("\0\0\1\xB0", 4)));  // a sequence's head
        if (sound) add("01wb", std::string(200, '\x80'), true);
      }
      const std::string all = chunk("LIST", movi) + (indexed ? chunk("idx1", index) : "");
      out += out.empty() ? chunk("RIFF", "AVI " + headers() + all) : chunk("RIFF", "AVIX" + all);
    }
    return out;
  }

 private:
  /// With a stream of 8,000 bytes of sound a second, if it is to have one.
  std::string headers() const {
    if (!sound) return head;
    const std::string second = little(8000), one = little(1), none = little(0);
    const std::string stream =
        "auds" + none + none + none + none + one + second + none + little(1 << 16) + second + none + one + none + none;
    const std::string form = std::string("\1\0\1\0", 4) + second + second + std::string("\1\0\x08\0", 4);
    const std::string list = chunk("LIST", "strl" + chunk("strh", stream) + chunk("strf", form));
    std::string out = head;
    const size_t size = number(out, 4);  // of "LIST hdrl"
    out.replace(4, 4, little(size + list.size()));
    out.replace(out.find("avih") + 8 + 24, 4, little(2));
    return out.insert(8 + size, list);
  }
};

}  // namespace troupe::clips
