#pragma once

/// `troupe bench step`: times whole training steps of one process, both groups on one slot, through the real executor.
namespace troupe {

/// Arguments after "bench step". Returns an exit code.
int step_bench_command(int argc, char** argv);

}  // namespace troupe
