// The size that each struct with a struct_size had in the release that brought it: what the oldest
// program passes, and so the least that is accepted.
//
// A line is added with a new struct and never changed, however the struct grows: sizeof would refuse
// every older program. rbcContextInfo is filled as far as its caller knows it, and has no line.
#pragma once

#include <cstdint>

#include "robocache/clouds.h"
#include "robocache/fuse.h"
#include "robocache/live.h"
#include "robocache/statistics.h"
#include "robocache/tsdf.h"
#include "robocache/windows.h"

namespace rbc {

template <class Struct>
inline constexpr uint32_t kFirstSize = Struct::needs_a_line_in_first_sizes_h;

// 0.1.0
template <>
inline constexpr uint32_t kFirstSize<rbcContextParams> = 56;
template <>
inline constexpr uint32_t kFirstSize<rbcResampleParams> = 128;
template <>
inline constexpr uint32_t kFirstSize<rbcFuseStream> = 64;
template <>
inline constexpr uint32_t kFirstSize<rbcFuseParams> = 48;
template <>
inline constexpr uint32_t kFirstSize<rbcVoxelizeParams> = 144;
template <>
inline constexpr uint32_t kFirstSize<rbcVoxelizeSparseParams> = 136;
template <>
inline constexpr uint32_t kFirstSize<rbcSparseVoxels> = 104;
template <>
inline constexpr uint32_t kFirstSize<rbcTsdfParams> = 152;

// 0.2.0
template <>
inline constexpr uint32_t kFirstSize<rbcStatisticsParams> = 80;
template <>
inline constexpr uint32_t kFirstSize<rbcStatisticsResult> = 96;
template <>
inline constexpr uint32_t kFirstSize<rbcStatisticsAccumulatorParams> = 72;
template <>
inline constexpr uint32_t kFirstSize<rbcStatisticsUpdateParams> = 64;
template <>
inline constexpr uint32_t kFirstSize<rbcUnprojectParams> = 136;
template <>
inline constexpr uint32_t kFirstSize<rbcFarthestPointsParams> = 72;
template <>
inline constexpr uint32_t kFirstSize<rbcTakeRowsParams> = 48;
template <>
inline constexpr uint32_t kFirstSize<rbcWindowStream> = 200;
template <>
inline constexpr uint32_t kFirstSize<rbcWindowsParams> = 48;
template <>
inline constexpr uint32_t kFirstSize<rbcLiveStream> = 96;
template <>
inline constexpr uint32_t kFirstSize<rbcLiveParams> = 48;

}  // namespace rbc
