#pragma once

namespace troupe {

/// `troupe-actor index --job RUN/job.yaml --out PATH [--eval-out PATH]`: builds the index of a resolved job spec's data
/// (and, with
/// --eval-out, of its eval.sources). `argv` starts with the program or the command's name.
/// Prints lines of base/data/index_progress.h on stdout, "warning TEXT" lines, and as the last line one JSON object
/// {samples, records, bad, too_long, tokens, supervised, images, eval_samples, blocks, cached_blocks, digest}; refusals
/// go to stderr.
/// Returns 0, or 2 when the request is refused: bad records with on_bad_record: fail, fewer samples than the global
/// batch, a file that is missing or not understood.
int index_command(int argc, char** argv);

}  // namespace troupe
