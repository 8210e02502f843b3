// What a case of voxelization says of the clouds, of the grid, and of what is made of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "arrays.h"
#include "dtypes.h"
#include "random.h"
#include "robocache/voxelize.h"

namespace support {

enum class CloudPattern {
  kUniform,
  kSweep,      // around a scanner, one ring after the other
  kClustered,  // about a few centres
  kHeavy,      // most points in a few voxels, the others anywhere
  kOneVoxel,   // all in the middle one
  kOutside,    // none in the grid
  kBorders,    // on the borders of voxels and of the grid, and next to these
};
enum class ValuePattern {
  kPlain,
  kNegative,
  kZeros,
  kWide,        // of every exponent
  kCancelling,  // large ones that add up to 0 here and there, and leave the last bits to be seen
  kInfinities,
  kSpecials,
};
constexpr CloudPattern kCloudPatterns[] = {
    CloudPattern::kUniform,  CloudPattern::kSweep,   CloudPattern::kClustered, CloudPattern::kHeavy,
    CloudPattern::kOneVoxel, CloudPattern::kOutside, CloudPattern::kBorders};
constexpr ValuePattern kValuePatterns[] = {ValuePattern::kPlain,      ValuePattern::kNegative,
                                           ValuePattern::kZeros,      ValuePattern::kWide,
                                           ValuePattern::kCancelling, ValuePattern::kInfinities,
                                           ValuePattern::kSpecials};
constexpr int32_t kReductions[] = {RBC_VOXEL_SUM, RBC_VOXEL_MEAN, RBC_VOXEL_MAX, RBC_VOXEL_MIN};
constexpr int32_t kVoxelOrders[] = {RBC_VOXEL_ORDER_LEXICOGRAPHIC, RBC_VOXEL_ORDER_FIRST_POINT};

constexpr bool reducesFeatures(int32_t mode) { return mode >= RBC_VOXEL_SUM; }

inline const char* modeName(int32_t mode) {
  constexpr const char* kNames[] = {"occupancy", "count", "sum", "mean", "max", "min"};
  return kNames[mode];
}

inline const char* nameOf(CloudPattern pattern) {
  constexpr const char* kNames[] = {"uniform",   "sweep",   "clustered", "heavy",
                                    "one voxel", "outside", "borders"};
  return kNames[static_cast<int>(pattern)];
}

inline const char* nameOf(ValuePattern pattern) {
  constexpr const char* kNames[] = {"plain",      "negative",   "zeros",   "wide",
                                    "cancelling", "infinities", "specials"};
  return kNames[static_cast<int>(pattern)];
}

// Point clouds, their features and the grid that they lie in.
struct CloudCase {
  std::string name = "";
  uint64_t seed = 1;

  int64_t clouds = 3;    // B
  int64_t points = 200;  // N; about the mean cloud if packed
  bool batched = true;   // false: points [N,C], B = 1
  bool lengths = false;
  bool packed = false;          // needs batched
  rbcDType index_dtype = kI64;  // of lengths and offsets

  rbcDType dtype = kF32;
  int64_t columns = 3;  // C
  CloudPattern pattern = CloudPattern::kUniform;
  double outside = 0.1;   // of the points
  bool specials = false;  // NaN and infinite coordinates

  bool features = true;  // false: the columns of points; occupancy and count have none
  int64_t channels = 3;  // F, if there are features
  rbcDType values = kF32;
  ValuePattern value_pattern = ValuePattern::kPlain;

  double origin[3] = {-2, 1.5, 0.25};
  double voxel_size[3] = {0.5, 0.25, 1};
  int64_t shape[3] = {7, 5, 6};

  Layout points_layout = Layout::kContiguous;
  Layout features_layout = Layout::kContiguous;
  Layout index_layout = Layout::kContiguous;
  Layout out_layout = Layout::kContiguous;
  std::string laid_out = "";  // the output that out_layout is for; "": all of them
  Flush flush = Flush::kEnd;

  int64_t reduced() const { return features ? channels : columns; }
  void setGrid(int64_t x, int64_t y, int64_t z) { shape[0] = x, shape[1] = y, shape[2] = z; }
  // A grid from 0 in whole steps.
  void setUnitGrid() {
    for (int axis = 0; axis < 3; ++axis) origin[axis] = 0, voxel_size[axis] = 1;
  }
  Layout layoutOf(const std::string& output) const {
    return laid_out.empty() || laid_out == output ? out_layout : Layout::kContiguous;
  }
};

struct VoxelizeCase : CloudCase {
  int32_t mode = RBC_VOXEL_COUNT;
  rbcDType out = kF32;
  double empty_value = 0;
  bool dropped = true;
};

struct SparseCase : CloudCase {
  int32_t reduce = RBC_VOXEL_MEAN;
  int32_t order = RBC_VOXEL_ORDER_LEXICOGRAPHIC;
  double room = 1;                     // the capacity, of the number of voxels; at least 1
  int64_t max_points = 0;              // P; 0: no `grouped`
  rbcDType out = kF32;                 // of features and grouped
  rbcDType rows = kI32;                // of point_to_voxel
  std::set<std::string> without = {};  // outputs that are not wanted
};

// ---- words --------------------------------------------------------------------------------------

inline std::string describeCloud(const CloudCase& c) {
  std::string s = c.name + " (seed " + std::to_string(c.seed) + "): B,N,C " +
                  std::to_string(c.clouds) + "," + std::to_string(c.points) + "," +
                  std::to_string(c.columns) + " " + nameOf(c.dtype) + " " + nameOf(c.pattern);
  if (c.features) s += " F " + std::to_string(c.channels) + " " + nameOf(c.values);
  s += std::string(" ") + nameOf(c.value_pattern) + " grid";
  for (int axis = 0; axis < 3; ++axis) {
    s += " " + std::to_string(c.shape[axis]) + "*" + std::to_string(c.voxel_size[axis]) + "@" +
         std::to_string(c.origin[axis]);
  }
  if (c.lengths || c.packed) s += (c.packed ? " packed " : " lengths ") + nameOf(c.index_dtype);
  if (!c.batched) s += " unbatched";
  if (c.specials) s += " specials";
  s += std::string(" layouts ") + nameOf(c.points_layout) + "/" + nameOf(c.features_layout) + "/" +
       nameOf(c.index_layout) + "/" + nameOf(c.out_layout);
  return c.laid_out.empty() ? s : s + " of " + c.laid_out;
}

inline std::string describe(const VoxelizeCase& c) {
  return describeCloud(c) + ", " + modeName(c.mode) + " to " + nameOf(c.out) + " empty " +
         std::to_string(c.empty_value) + (c.dropped ? "" : " no dropped");
}

inline std::string describe(const SparseCase& c) {
  std::string s = describeCloud(c) + ", " + modeName(c.reduce) + " to " + nameOf(c.out) +
                  (c.order == RBC_VOXEL_ORDER_FIRST_POINT ? " by first point" : "") + " room " +
                  std::to_string(c.room) + " rows " + nameOf(c.rows);
  if (c.max_points > 0) s += " P " + std::to_string(c.max_points);
  for (const std::string& output : c.without) s += " no " + output;
  return s;
}

// ---- random ones --------------------------------------------------------------------------------

namespace detail {

inline Layout randomVoxelLayout(Random& random) {
  if (random.chance(0.2)) return Layout::kReversedOrder;
  Layout layout;
  do layout = random.pick(kLayouts);
  while (layout == Layout::kBroadcast);  // elements of an output may not share memory
  return layout;
}

inline void randomCloud(Random& random, uint64_t seed, CloudCase* c) {
  c->name = "random";
  c->seed = seed;
  c->batched = random.chance(0.8);
  c->clouds = c->batched ? random.below(6) : 1;
  c->points = random.chance(0.2) ? random.below(4) : random.below(400);
  c->packed = c->batched && random.chance(0.4);
  c->lengths = !c->packed && random.chance(0.4);
  c->index_dtype = random.chance(0.5) ? kI32 : kI64;
  c->dtype = random.chance(0.5) ? kF32 : random.pick(kFloatDTypes);
  c->columns = 3 + random.below(3);
  c->pattern = random.pick(kCloudPatterns);
  c->outside = random.chance(0.3) ? 0 : random.uniform(0, 0.5);
  c->specials = random.chance(0.3);
  c->features = random.chance(0.7);
  c->channels = random.chance(0.8) ? random.below(6) : random.below(40);
  c->values = random.pick(kFloatDTypes);
  c->value_pattern = random.chance(0.5) ? ValuePattern::kPlain : random.pick(kValuePatterns);
  for (int axis = 0; axis < 3; ++axis) {
    constexpr double kSizes[] = {1, 0.5, 0.1, 0.3, 1.7};
    c->origin[axis] = random.chance(0.3) ? 0 : random.uniform(-4, 4);
    c->voxel_size[axis] = random.pick(kSizes);
    c->shape[axis] = random.chance(0.25) ? 1 : 1 + random.below(9);
  }
  c->points_layout = random.pick(kLayouts);
  c->features_layout = random.pick(kLayouts);
  c->index_layout = random.pick(kLayouts);
  c->out_layout = randomVoxelLayout(random);
  c->flush = random.chance(0.5) ? Flush::kEnd : Flush::kBegin;
}

}  // namespace detail

constexpr rbcDType kOccupancyDTypes[] = {kBool, kU8, kI32, kF16, kBF16, kF32, kF64};
constexpr rbcDType kCountDTypes[] = {kI32, kI64, kF16, kBF16, kF32, kF64};

// Any case that is valid, from a seed.
inline VoxelizeCase randomVoxelizeCase(uint64_t seed) {
  Random random(seed + 3000017);
  VoxelizeCase c;
  detail::randomCloud(random, seed, &c);
  c.mode = static_cast<int32_t>(random.below(6));
  c.out = c.mode == RBC_VOXEL_OCCUPANCY ? random.pick(kOccupancyDTypes)
          : c.mode == RBC_VOXEL_COUNT   ? random.pick(kCountDTypes)
                                        : random.pick(kFloatDTypes);
  c.empty_value = random.chance(0.5) ? 0 : isFloat(c.out) ? random.uniform(-9, 9) : 1;
  c.dropped = random.chance(0.8);
  return c;
}

constexpr const char* kSparseOptions[] = {"counts",         "features", "grouped",
                                          "point_to_voxel", "dropped",  "overflow"};

inline SparseCase randomSparseCase(uint64_t seed) {
  Random random(seed + 4000037);
  SparseCase c;
  detail::randomCloud(random, seed, &c);
  constexpr double kRooms[] = {0, 0.3, 0.9, 1, 1, 1.3, 4};
  constexpr int64_t kMaxPoints[] = {0, 0, 1, 2, 5, 64};
  c.reduce = random.pick(kReductions);
  c.order = random.pick(kVoxelOrders);
  c.room = random.pick(kRooms);
  c.max_points = random.pick(kMaxPoints);
  c.out = random.pick(kFloatDTypes);
  c.rows = random.chance(0.5) ? kI32 : kI64;
  for (const char* output : kSparseOptions) {
    if (random.chance(0.15)) c.without.insert(output);
  }
  return c;
}

}  // namespace support
