// The sparse voxelization cases.
#include "support/voxel_cases.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "support/voxel_table.h"

namespace support {

std::vector<SparseCase> sparseCases() {
  detail::VoxelTable<SparseCase> add = {{}, 5001};
  // Orders, reductions and capacities vary with different periods, so that all combinations occur.
  detail::addClouds(add, [](SparseCase&) {});
  constexpr double kRooms[] = {1, 0.5, 1.2};
  for (size_t i = 0; i < add.cases.size(); ++i) {
    SparseCase& c = add.cases[i];
    c.order = kVoxelOrders[i % 2];
    c.room = kRooms[i % 3];
    c.reduce = kReductions[i / 2 % 4];
    c.max_points = i % 5 == 0 ? 3 : 0;
  }

  for (const int32_t order : kVoxelOrders) {
    for (const int32_t reduce : kReductions) {
      for (const rbcDType values : kFloatDTypes) {
        for (const rbcDType out : kFloatDTypes) {
          add("every dtype", [&](auto& c) {
            c.clouds = 1;
            c.order = order;
            c.reduce = reduce;
            c.values = values;
            c.out = out;
            c.max_points = same(values, out) ? 2 : 0;
          });
        }
      }
      for (const ValuePattern pattern : kValuePatterns) {
        for (const rbcDType dtype : kFloatDTypes) {
          add("special features", [&](auto& c) {
            c.clouds = 1;
            c.order = order;
            c.reduce = reduce;
            c.value_pattern = pattern;
            c.values = c.out = dtype;
            c.max_points = 2;
          });
        }
      }
    }
    // Capacities.
    for (const double room : {0.0, 0.4, 1.0, 1.01, 3.0}) {
      for (const int64_t max_points : {0, 1, 2, 5, 64}) {
        for (const CloudPattern pattern : {CloudPattern::kUniform, CloudPattern::kHeavy}) {
          add("room", [&](auto& c) {
            c.order = order;
            c.room = room;
            c.max_points = max_points;
            c.pattern = pattern;
            c.packed = true;
          });
        }
      }
    }
    // Outputs that are not requested, one by one, and all except one.
    for (const int64_t max_points : {0, 2}) {
      for (const char* output : kSparseOptions) {
        for (const double room : {0.6, 1.4}) {
          add("one output less", [&](auto& c) {
            c.order = order;
            c.room = room;
            c.max_points = max_points;
            c.without = {output};
          });
          add("only one output", [&](auto& c) {
            c.order = order;
            c.room = room;
            c.max_points = max_points;
            c.without.insert(std::begin(kSparseOptions), std::end(kSparseOptions));
            c.without.erase(output);
          });
        }
      }
    }
    for (const int64_t points : {200, 140'000}) {
      add("points in no cloud", [&](auto& c) {
        c.order = order;
        c.clouds = 0;
        c.points = points;
        c.packed = true;
      });
    }
    add("only coords and their number", [&](auto& c) {
      c.order = order;
      c.without.insert(std::begin(kSparseOptions), std::end(kSparseOptions));
    });
    for (const rbcDType rows : {kI32, kI64}) {
      for (const bool packed : {false, true}) {
        add("rows of points", [&](auto& c) {
          c.order = order;
          c.rows = rows;
          c.packed = packed;
          c.lengths = !packed;
          c.room = 0.7;
          c.clouds = 5;
        });
      }
    }
    // Layouts of all outputs, and of each.
    std::vector<Layout> layouts(std::begin(kLayouts), std::end(kLayouts));
    layouts.push_back(Layout::kReversedOrder);
    for (const Layout layout : layouts) {
      if (layout == Layout::kBroadcast) continue;
      std::vector<std::string> outputs(std::begin(kSparseOptions), std::end(kSparseOptions));
      outputs.insert(outputs.end(), {"", "coords"});
      for (const std::string& output : outputs) {
        add("outputs laid out", [&](auto& c) {
          c.order = order;
          c.out_layout = layout;
          c.laid_out = output;
          c.max_points = 2;
          c.lengths = true;
          c.room = layout == Layout::kStrided ? 1.3 : 0.9;
        });
      }
    }

    // Large grids: keys of more than 32 bits, up to 2^62 voxels in total.
    constexpr int64_t kTwo20 = 1 << 20;
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    constexpr int64_t kLarge[][4] = {{1, 2 * kTwo20, 2 * kTwo20, kTwo20},
                                     {4, kTwo20, kTwo20, kTwo20},
                                     {1, kMost, kMost, 1},
                                     {1, 1, kMost, kMost},
                                     {3, kMost, 1, 5},
                                     {2, 2000, 2000, 100},
                                     {1, 1440, 1440, 40},
                                     {1, 16 * kTwo20 + 3, 3, 16 * kTwo20 + 5}};
    for (const auto& [clouds, x, y, z] : kLarge) {
      for (const rbcDType dtype : {kF32, kF64}) {
        for (const CloudPattern pattern :
             {CloudPattern::kUniform, CloudPattern::kBorders, CloudPattern::kSweep}) {
          add("a large grid", [&, B = clouds, X = x, Y = y, Z = z](auto& c) {
            c.order = order;
            c.clouds = B;
            c.dtype = dtype;
            c.pattern = pattern;
            c.setGrid(X, Y, Z);
            if (pattern == CloudPattern::kBorders) c.setUnitGrid();
            c.room = 0.8;
          });
        }
      }
    }

    // Sizes as in practice.
    for (const CloudPattern pattern : {CloudPattern::kUniform, CloudPattern::kSweep}) {
      add("a sweep", [&](auto& c) {
        c.order = order;
        c.clouds = 1;
        c.points = 20000;
        c.pattern = pattern;
        c.features = false;
        c.columns = 4;
        c.max_points = 5;
        c.room = 0.9;
        c.setGrid(352, 400, 20);
      });
    }
    for (const int64_t max_points : {0, 64}) {
      add("100000 points and more in a voxel", [&](auto& c) {
        c.order = order;
        c.clouds = 1;
        c.points = 100003;
        c.pattern = CloudPattern::kOneVoxel;
        c.features = false;
        c.max_points = max_points;
      });
      add("some voxels of many points", [&](auto& c) {
        c.order = order;
        c.clouds = 2;
        c.points = 20000;
        c.pattern = CloudPattern::kHeavy;
        c.max_points = max_points;
        c.reduce = RBC_REDUCE_SUM;
        c.setGrid(40, 40, 40);
      });
    }
  }
  return std::move(add.cases);
}

std::vector<SparseCase> randomSparseCases(uint64_t first, uint64_t count) {
  std::vector<SparseCase> cases;
  for (uint64_t seed = first; seed < first + count; ++seed) cases.push_back(randomSparseCase(seed));
  return cases;
}

}  // namespace support
