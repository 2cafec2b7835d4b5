#pragma once

namespace troupe {

/// `troupe bench feed JOB.yaml`: how fast records become the input of steps (decoded, cut into patches, tokenized).
/// Exit codes 0, 1 (it failed) and 2 (the job cannot be used). See docs/command-line.md.
int feed_bench_command(int argc, char** argv);

}  // namespace troupe
