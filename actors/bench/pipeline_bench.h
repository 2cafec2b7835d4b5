#pragma once

/// `troupe bench pipeline`: how near a disjoint step comes to the shortest time that its units allow, with work that
/// sleeps.
namespace troupe {

/// Arguments after "bench pipeline". Returns an exit code: 1 when a bar is missed.
int pipeline_bench_command(int argc, char** argv);

}  // namespace troupe
