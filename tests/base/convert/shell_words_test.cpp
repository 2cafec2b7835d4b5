#include "base/convert/shell_words.h"

#include <catch2/catch.hpp>

namespace troupe::convert {
namespace {

/// Words of every command with their lines, such as "a:1 b:2 | c:3"; complaints behind "!".
std::string shown(const std::string& text) {
  Diagnostics found;
  std::string out;
  for (const ShellCommand& command : read_shell_commands(text, "s.sh", found)) {
    out += out.empty() ? "" : " |";
    for (const auto& [name, value] : command.assignments)
      out += (out.empty() ? "" : " ") + name.text + "=" + value + ":" + std::to_string(name.line);
    for (const ShellWord& word : command.words)
      out += (out.empty() ? "" : " ") + word.text + ":" + std::to_string(word.line);
  }
  return found.empty() ? out : "! " + found.to_status().error().message;
}

}  // namespace

TEST_CASE("Words know their lines over continued lines, comments and quotes") {
  CHECK(shown("a b") == "a:1 b:1");
  CHECK(shown("a /data/\\\nqwen b") == "a:1 /data/qwen:1 b:2");
  CHECK(shown("a \\\n  b \\\r\n c\nd") == "a:1 b:2 c:3 | d:4");
  CHECK(shown("# no\na # no 'quote\nb") == "a:2 | b:3");
  CHECK(shown("a 'b c' \"d e\" f\\ g h#i") == "a:1 b c:1 d e:1 f g:1 h#i:1");
  CHECK(shown("a 'b\nc' d") == "a:1 b\nc:1 d:2");
  CHECK(shown("a '{\"k\": 1}' \"q\\\"q\"") == "a:1 {\"k\": 1}:1 q\"q:1");
  CHECK(shown("a; b && c || d") == "a:1 | b:1 | c:1 | d:1");
  CHECK(shown("").empty());
}

TEST_CASE("What follows a redirection, a pipe or & is left out up to the line's end") {
  CHECK(shown("a b > log 2>&1\nc") == "a:1 b:1 | c:2");
  CHECK(shown("a b 2>&1 | tee log\nc") == "a:1 b:1 | c:2");
  CHECK(shown("a b2 >log &\nc") == "a:1 b2:1 | c:2");
  CHECK(shown("a b | tee \\\n  log\nc") == "a:1 b:1 | c:3");
}

TEST_CASE("Variables of the script and arithmetic of integers are replaced") {
  CHECK(shown("N=4\nM=m/$N\nA=$N b ${M}x '$N' \"$N\"") == "N=4:1 | M=m/4:2 | A=4:3 b:3 m/4x:3 $N:3 4:3");
  CHECK(shown("a $((2 + 3 * 4)) $(expr 20 - 12 / 4 \\* 2 + 1) $((8 / 3 * 3 - 1))") == "a:1 14:1 15:1 5:1");
  CHECK(shown("n=4\na $(expr 32 / $n) $((n * 2)) $(expr 7 - 2 - 1) $(expr 3 \\* 4)") == "n=4:1 | a:2 8:2 8:2 4:2 12:2");
  CHECK(shown("export N=2\na $N") == "N=2:1 export:1 | a:2 2:2");
  CHECK(shown("a cost$ $") == "a:1 cost$:1 $:1");
}

TEST_CASE("A variable in front of a command is not the script's own") {
  CHECK(shown("N=4 a\nb $N") == "! s.sh:2: variable N is not set in the script; valid: write what it stands for");
}

TEST_CASE("What only a shell could know is complained of with its line") {
  CHECK(shown("a\nb $X") == "! s.sh:2: variable X is not set in the script; valid: write what it stands for");
  CHECK(shown("a ${X:-1}").find("! s.sh:1: has '${', which is read with a plain name only") == 0);
  CHECK(shown("a $(ls)") ==
        "! s.sh:1: has $(ls), which is not run; valid: $(expr A / B) of integers, or what it gives");
  CHECK(shown("a $(expr 1 / 0)").find("has $(expr 1 / 0), which is not run") != std::string::npos);
  CHECK(shown("a $(expr 9223372036854775807 + 1)").find("which is not run") != std::string::npos);
  CHECK(shown("a $(ls").find("has '$(', which is not closed") != std::string::npos);
  CHECK(shown("a `ls`").find("has a command between ` and `") != std::string::npos);
  CHECK(shown("a\nb 'c").find("! s.sh:2: has a quote that is not closed") == 0);
}

TEST_CASE("Variables that double each other do not grow without bound") {
  std::string text = "A=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 40; ++i) text += "A=$A$A\n";
  CHECK(shown(text).find("variable A makes a word of more than 65536 bytes") != std::string::npos);
}

}  // namespace troupe::convert
