#pragma once

namespace troupe {

/// The exit code of a program that is about to end with `exit_code`: 1 instead of 0, with a line on standard error,
/// when what it wrote to standard output did not all get there. Called once, as the last thing.
int exit_code_after_output(const char* program, int exit_code);

}  // namespace troupe
