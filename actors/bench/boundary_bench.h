#pragma once

/// `troupe bench boundary`: what the boundary channels carry between two processes of this machine, beside UCX's own
/// tag sends and memcpy in the same run, and the bytes that layout pairs put on the wire.
namespace troupe {

/// Arguments after "bench boundary". Returns an exit code.
int boundary_bench_command(int argc, char** argv);

}  // namespace troupe
