#pragma once

namespace troupe {

/// `troupe-actor check --job FILE [--plan FILE] [--show N] [--html FILE] [--json]`: reads every record of a resolved
/// job spec once and says what is wrong with which, what is in them, and what training on them will be. `--plan`: the
/// answer of `troupe plan --json`, for the memory of each slot. The answer goes to stdout, progress to stderr. Returns
/// 0, or 2 when the data cannot be trained on as the spec says, or the request is not understood.
int check_command(int argc, char** argv);

}  // namespace troupe
