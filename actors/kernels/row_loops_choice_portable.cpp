#include "actors/kernels/row_loops.h"

namespace troupe {

extern const RowLoops kRowLoopsBaseline;

const RowLoops& row_loops() { return kRowLoopsBaseline; }

}  // namespace troupe
