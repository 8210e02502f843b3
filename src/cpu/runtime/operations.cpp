// The operations of the CPU backend.

#include "runtime/cpu_state.h"

namespace rbc::cpu {

extern const Operation<TimesProblem> kCheckTimes;
extern const Operation<FuseProblem> kFuse;
extern const Operation<VoxelizeProblem> kVoxelize;
extern const Operation<SparseProblem> kVoxelizeSparse;
extern const Operation<TsdfProblem> kVoxelizeTsdf;

const Operations kOperations = {
    {&kCheckTimes}, {&kFuse}, {&kVoxelize}, {&kVoxelizeSparse}, {&kVoxelizeTsdf},
};

}  // namespace rbc::cpu
