// The dense voxelization cases.
#include "support/voxel_cases.h"

#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "support/voxel_table.h"

namespace support {

std::vector<VoxelizeCase> voxelizeCases() {
  detail::VoxelTable<VoxelizeCase> add = {{}, 1};
  // Counts reveal most about the positions of points; the other modes take turns.
  int next = 0;
  detail::addClouds(add, [&](VoxelizeCase& c) { c.mode = kReductions[next++ % 4]; });
  for (VoxelizeCase& c : add.cases) {
    if (c.mode == RBC_REDUCE_COUNT) c.out = kI32;
  }

  for (const rbcDType dtype : kFloatDTypes) {
    for (int32_t mode = RBC_REDUCE_OCCUPANCY; mode <= RBC_REDUCE_MIN; ++mode) {
      add("every mode", [&](auto& c) {
        c.dtype = dtype;
        c.mode = mode;
      });
    }
    for (const rbcDType out : kFloatDTypes) {
      for (const int32_t mode : kReductions) {
        add("every dtype", [&](auto& c) {
          c.clouds = 1;
          c.values = dtype;
          c.out = out;
          c.mode = mode;
        });
      }
    }
    for (const ValuePattern pattern : kValuePatterns) {
      for (const int32_t mode : kReductions) {
        add("special features", [&](auto& c) {
          c.value_pattern = pattern;
          c.values = c.out = dtype;
          c.mode = mode;
        });
        add("special features, one and few in a voxel", [&](auto& c) {
          c.value_pattern = pattern;
          c.values = dtype;
          c.out = kF64;
          c.points = 60;
          c.mode = mode;
        });
      }
    }
  }

  // Empty voxels.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const rbcDType out : kOccupancyDTypes) {
    for (const double empty : {0.0, 1.0, 255.0, -7.0, 0.1, -0.0, 1e300, kInfinity, -kNaN}) {
      if (same(out, kBool) && empty != 0 && empty != 1) continue;
      if (same(out, kU8) && empty != std::trunc(std::fabs(empty))) continue;
      if (!isFloat(out) && !(std::fabs(empty) < 256 && empty == std::trunc(empty))) continue;
      add("empty value", [&](auto& c) {
        c.mode = RBC_REDUCE_OCCUPANCY;
        c.out = out;
        c.fill_value = empty;
        c.points = 40;
      });
      if (!isFloat(out)) continue;
      add("empty value with features", [&](auto& c) {
        c.mode = RBC_REDUCE_MAX;
        c.out = out;
        c.fill_value = empty;
        c.points = 40;
      });
    }
  }
  for (const rbcDType out : kCountDTypes) {
    add("points_per_voxel", [&](auto& c) {
      c.out = out;
      c.fill_value = -1;
      c.pattern = CloudPattern::kHeavy;
    });
    add("a count that few dtypes can represent", [&](auto& c) {
      c.out = out;
      c.clouds = 1;
      c.points = 70001;
      c.pattern = CloudPattern::kOneVoxel;
    });
  }
  add("negative features under max", [](auto& c) {
    c.value_pattern = ValuePattern::kNegative;
    c.mode = RBC_REDUCE_MAX;
  });
  add("no dropped", [](auto& c) { c.dropped = false; });
  add("no dropped, nor clouds", [](auto& c) { c.dropped = false, c.clouds = 0; });

  // Layouts of out, of [B,X,Y,Z] and of [B,X,Y,Z,F].
  std::vector<Layout> layouts(std::begin(kLayouts), std::end(kLayouts));
  layouts.push_back(Layout::kReversedOrder);
  for (const Layout layout : layouts) {
    if (layout == Layout::kBroadcast) continue;
    for (int32_t mode = RBC_REDUCE_OCCUPANCY; mode <= RBC_REDUCE_MIN; ++mode) {
      add("out laid out", [&](auto& c) {
        c.mode = mode;
        c.out = mode == RBC_REDUCE_OCCUPANCY ? kU8 : mode == RBC_REDUCE_COUNT ? kI32 : kF32;
        c.out_layout = layout;
      });
      add("out laid out, unbatched", [&](auto& c) {
        c.mode = mode;
        c.batched = false;
        c.clouds = 1;
        c.out = mode == RBC_REDUCE_OCCUPANCY ? kBool : mode == RBC_REDUCE_COUNT ? kI64 : kBF16;
        c.out_layout = layout;
        c.laid_out = "out";
      });
    }
    add("dropped laid out", [&](auto& c) {
      c.out_layout = layout;
      c.laid_out = "num_points_outside";
    });
  }

  // Grids as large as in practice: occupancy and counts, scattered and coherent.
  for (const CloudPattern pattern : {CloudPattern::kUniform, CloudPattern::kSweep}) {
    for (const rbcDType out : {kU8, kF32}) {
      add("occupancy of 128^3", [&](auto& c) {
        c.mode = RBC_REDUCE_OCCUPANCY;
        c.clouds = 1;
        c.points = 20000;
        c.pattern = pattern;
        c.out = out;
        c.setGrid(128, 128, 128);
      });
    }
    add("counts in 128^3", [&](auto& c) {
      c.clouds = 1;
      c.points = 20000;
      c.pattern = pattern;
      c.out = kI32;
      c.setGrid(128, 128, 128);
    });
    add("mean in 61 * 57 * 40", [&](auto& c) {
      c.mode = RBC_REDUCE_MEAN;
      c.clouds = 1;
      c.points = 20000;
      c.pattern = pattern;
      c.setGrid(61, 57, 40);
    });
  }
  for (int32_t mode = RBC_REDUCE_OCCUPANCY; mode <= RBC_REDUCE_MIN; ++mode) {
    add("100000 points and more in a voxel", [&](auto& c) {
      c.mode = mode;
      c.clouds = 1;
      c.points = 100003;
      c.pattern = CloudPattern::kOneVoxel;
      c.features = false;
    });
  }
  return std::move(add.cases);
}

std::vector<VoxelizeCase> randomVoxelizeCases(uint64_t first, uint64_t count) {
  std::vector<VoxelizeCase> cases;
  for (uint64_t seed = first; seed < first + count; ++seed)
    cases.push_back(randomVoxelizeCase(seed));
  return cases;
}

}  // namespace support
