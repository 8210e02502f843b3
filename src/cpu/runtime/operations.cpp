// The operations of the CPU backend.

#include "runtime/cpu_state.h"

namespace rbc::cpu {

extern const Operation<TimesProblem> kCheckTimes;
extern const Operation<FuseProblem> kFuse;
extern const Operation<VoxelizeProblem> kVoxelize;
extern const Operation<SparseProblem> kVoxelizeSparse;
extern const Operation<TsdfProblem> kVoxelizeTsdf;
extern const Operation<RotationProblem> kConvertRotations;

const Operations kOperations = {
    {&kCheckTimes},     {&kFuse},         {&kVoxelize},
    {&kVoxelizeSparse}, {&kVoxelizeTsdf}, {&kConvertRotations},
};

}  // namespace rbc::cpu
