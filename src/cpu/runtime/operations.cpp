// The operations of the CPU backend.

#include "runtime/cpu_state.h"

namespace rbc::cpu {

extern const Operation<TimesProblem> kCheckTimes;
extern const Operation<FuseProblem> kFuse;
extern const Operation<VoxelizeProblem> kVoxelize;
extern const Operation<SparseProblem> kVoxelizeSparse;
extern const Operation<TsdfProblem> kVoxelizeTsdf;
extern const Operation<RotationProblem> kConvertRotations;
extern const Operation<StatisticsProblem> kStatistics;
extern const Operation<AccumulateProblem> kAccumulate;
extern const Operation<MergeProblem> kMerge;
extern const Operation<WindowProblem> kWindows;
extern const Operation<UnprojectProblem> kUnproject;
extern const Operation<FarthestProblem> kFarthestPoints;
extern const Operation<TakeRowsProblem> kTakeRows;

const Operations kOperations = {
    {&kCheckTimes},       {&kFuse},       {&kVoxelize},   {&kVoxelizeSparse}, {&kVoxelizeTsdf},
    {&kConvertRotations}, {&kStatistics}, {&kAccumulate}, {&kMerge},          {&kUnproject},
    {&kFarthestPoints},   {&kTakeRows},   {&kWindows},
};

}  // namespace rbc::cpu
