// A case of voxelization: the clouds, the grid, and the requested outputs.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "arrays.h"
#include "dtypes.h"
#include "robocache/voxelize.h"

namespace support {

enum class CloudPattern {
  kUniform,
  kSweep,      // around a scanner, ring by ring
  kClustered,  // around a few centres
  kHeavy,      // most points in a few voxels, the others anywhere
  kOneVoxel,   // all in the middle voxel
  kOutside,    // none in the grid
  kBorders,    // on the borders of voxels and of the grid, and next to these
};
enum class ValuePattern {
  kPlain,
  kNegative,
  kZeros,
  kWide,        // of every exponent
  kCancelling,  // large ones that cancel in places, which exposes the last bits
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
constexpr int32_t kReductions[] = {RBC_REDUCE_SUM, RBC_REDUCE_MEAN, RBC_REDUCE_MAX, RBC_REDUCE_MIN};
constexpr int32_t kVoxelOrders[] = {RBC_VOXELIZE_SPARSE_ORDER_LEXICOGRAPHIC,
                                    RBC_VOXELIZE_SPARSE_ORDER_FIRST_POINT};

constexpr bool reducesFeatures(int32_t mode) { return mode >= RBC_REDUCE_SUM; }

const char* nameOf(CloudPattern pattern);
const char* nameOf(ValuePattern pattern);

// Point clouds, their features and the grid.
struct CloudCase {
  std::string name = "";
  uint64_t seed = 1;

  int64_t clouds = 3;    // B
  int64_t points = 200;  // N; on average per cloud if packed
  bool batched = true;   // false: points [N,C], B = 1
  bool lengths = false;
  bool packed = false;          // needs batched
  rbcDType index_dtype = kI64;  // of lengths and offsets

  rbcDType dtype = kF32;
  int64_t columns = 3;  // C
  CloudPattern pattern = CloudPattern::kUniform;
  double outside = 0.1;   // share of the points
  bool specials = false;  // NaN and infinite coordinates

  bool features = true;  // false: the columns of points; occupancy and count have no features
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
  std::string laid_out = "";  // the output that has out_layout; "": all of them
  Flush flush = Flush::kEnd;

  int64_t reduced() const { return features ? channels : columns; }
  void setGrid(int64_t x, int64_t y, int64_t z) { shape[0] = x, shape[1] = y, shape[2] = z; }
  // A grid that starts at 0 with unit voxels.
  void setUnitGrid() {
    for (int axis = 0; axis < 3; ++axis) origin[axis] = 0, voxel_size[axis] = 1;
  }
  Layout layoutOf(const std::string& output) const {
    return laid_out.empty() || laid_out == output ? out_layout : Layout::kContiguous;
  }
};

struct VoxelizeCase : CloudCase {
  int32_t mode = RBC_REDUCE_COUNT;
  rbcDType out = kF32;
  double fill_value = 0;
  bool dropped = true;
};

struct SparseCase : CloudCase {
  int32_t reduce = RBC_REDUCE_MEAN;
  int32_t order = RBC_VOXELIZE_SPARSE_ORDER_LEXICOGRAPHIC;
  double room = 1;                     // the capacity, relative to the number of voxels; at least 1
  int64_t max_points = 0;              // P; 0: no `grouped`
  rbcDType out = kF32;                 // of features and grouped
  rbcDType rows = kI32;                // of point_to_voxel
  std::set<std::string> without = {};  // omitted outputs
};

constexpr rbcDType kOccupancyDTypes[] = {kBool, kU8, kI32, kF16, kBF16, kF32, kF64};
constexpr rbcDType kCountDTypes[] = {kI32, kI64, kF16, kBF16, kF32, kF64};
constexpr const char* kSparseOptions[] = {"points_per_voxel",
                                          "features",
                                          "grouped",
                                          "point_to_voxel",
                                          "num_points_outside",
                                          "num_voxels_over_capacity",
                                          "num_points_over_capacity",
                                          "num_points_over_group"};

std::string describe(const VoxelizeCase& c);
std::string describe(const SparseCase& c);

// More points than the limit of a table on CUDA, in few voxels or in many; for every second seed
// with rows of f32 features that just suit vectors, or just do not.
void growBeyondTables(CloudCase* c, uint64_t seed);

// Any valid case, from a seed.
VoxelizeCase randomVoxelizeCase(uint64_t seed);
SparseCase randomSparseCase(uint64_t seed);

}  // namespace support
