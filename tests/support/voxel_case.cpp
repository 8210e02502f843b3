// Descriptions of cases of voxelization, and random cases.
#include "support/voxel_case.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "support/random.h"

namespace support {

// ---- descriptions -------------------------------------------------------------------------------

const char* nameOf(CloudPattern pattern) {
  constexpr const char* kNames[] = {"uniform",   "sweep",   "clustered", "heavy",
                                    "one voxel", "outside", "borders"};
  return kNames[static_cast<int>(pattern)];
}

const char* nameOf(ValuePattern pattern) {
  constexpr const char* kNames[] = {"plain",      "negative",   "zeros",   "wide",
                                    "cancelling", "infinities", "specials"};
  return kNames[static_cast<int>(pattern)];
}

namespace {

const char* modeName(int32_t mode) {
  constexpr const char* kNames[] = {"occupancy", "count", "sum", "mean", "max", "min"};
  return kNames[mode];
}

std::string describeCloud(const CloudCase& c) {
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

}  // namespace

std::string describe(const VoxelizeCase& c) {
  return describeCloud(c) + ", " + modeName(c.mode) + " to " + nameOf(c.out) + " empty " +
         std::to_string(c.fill_value) + (c.dropped ? "" : " no dropped");
}

std::string describe(const SparseCase& c) {
  std::string s = describeCloud(c) + ", " + modeName(c.reduce) + " to " + nameOf(c.out) +
                  (c.order == RBC_VOXELIZE_SPARSE_ORDER_FIRST_POINT ? " by first point" : "") +
                  " room " + std::to_string(c.room) + " rows " + nameOf(c.rows);
  if (c.max_points > 0) s += " P " + std::to_string(c.max_points);
  for (const std::string& output : c.without) s += " no " + output;
  return s;
}

// ---- random cases -------------------------------------------------------------------------------

namespace {

Layout randomVoxelLayout(Random& random) {
  if (random.chance(0.2)) return Layout::kReversedOrder;
  Layout layout;
  do layout = random.pick(kLayouts);
  while (layout == Layout::kBroadcast);  // elements of an output may not share memory
  return layout;
}

void randomCloud(Random& random, uint64_t seed, CloudCase* c) {
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

}  // namespace

void growBeyondTables(CloudCase* c, uint64_t seed) {
  c->clouds = std::max<int64_t>(c->clouds, 1);
  c->points = 140'000 / c->clouds + 1;
  if (seed % 3 == 0) {
    for (int64_t& extent : c->shape) extent *= 5;
  }
  if (seed % 2 != 0) return;
  constexpr int64_t kChannels[] = {4, 16, 6, 2, 8, 3, 36};
  c->features = true;
  c->channels = kChannels[seed / 2 % 7];
  c->values = kF32;
  c->features_layout = c->out_layout = Layout::kContiguous;
}

VoxelizeCase randomVoxelizeCase(uint64_t seed) {
  Random random(seed + 3000017);
  VoxelizeCase c;
  randomCloud(random, seed, &c);
  c.mode = static_cast<int32_t>(random.below(6));
  c.out = c.mode == RBC_REDUCE_OCCUPANCY ? random.pick(kOccupancyDTypes)
          : c.mode == RBC_REDUCE_COUNT   ? random.pick(kCountDTypes)
                                         : random.pick(kFloatDTypes);
  c.fill_value = random.chance(0.5) ? 0 : isFloat(c.out) ? random.uniform(-9, 9) : 1;
  c.dropped = random.chance(0.8);
  return c;
}

SparseCase randomSparseCase(uint64_t seed) {
  Random random(seed + 4000037);
  SparseCase c;
  randomCloud(random, seed, &c);
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
