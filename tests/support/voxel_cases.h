// The tables of voxelization cases, dense and sparse: unit tests and parity tests run on them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "voxel_case.h"

namespace support {
namespace detail {

// Adds cases to a table one by one, each with a seed of its own.
template <class Case>
struct VoxelTable {
  std::vector<Case> cases;
  uint64_t first_seed;

  template <class Edit>
  void operator()(const std::string& name, Edit&& edit) {
    Case c;
    c.name = name;
    c.seed = first_seed + cases.size();
    c.flush = cases.size() % 2 == 0 ? Flush::kEnd : Flush::kBegin;
    edit(c);
    cases.push_back(std::move(c));
  }
};

// ---- what both tables have: `prepare` makes a case one that looks at the features ---------------

template <class Table, class Prepare>
void addClouds(Table& add, Prepare&& prepare) {
  // Where points lie.
  for (const rbcDType dtype : kFloatDTypes) {
    for (const CloudPattern pattern : kCloudPatterns) {
      add(nameOf(dtype) + " " + nameOf(pattern), [&](auto& c) {
        c.dtype = dtype;
        c.pattern = pattern;
      });
    }
    add("borders of a unit grid", [&](auto& c) {
      c.dtype = dtype;
      c.pattern = CloudPattern::kBorders;
      c.points = 600;
      c.setUnitGrid();
    });
    add("borders that no number is on", [&](auto& c) {
      c.dtype = dtype;
      c.pattern = CloudPattern::kBorders;
      c.points = 600;
      for (int axis = 0; axis < 3; ++axis) c.origin[axis] = -0.7, c.voxel_size[axis] = 0.1;
    });
    add("NaN and infinite points", [&](auto& c) {
      c.dtype = dtype;
      c.specials = true;
    });
  }
  add("far from zero", [](auto& c) {
    for (int axis = 0; axis < 3; ++axis) c.origin[axis] = 1e6, c.voxel_size[axis] = 0.3;
  });
  for (const double size : {1e-30, 1e30}) {
    add("odd voxel size", [&](auto& c) {
      c.pattern = CloudPattern::kBorders;
      for (int axis = 0; axis < 3; ++axis) c.origin[axis] = -size, c.voxel_size[axis] = size;
    });
  }

  // Columns, as points are laid out and as what is reduced.
  for (const int64_t columns : {3, 4, 5}) {
    for (const rbcDType dtype : kFloatDTypes) {
      add("columns as features", [&](auto& c) {
        prepare(c);
        c.features = false;
        c.columns = columns;
        c.dtype = dtype;
      });
    }
    for (const Layout layout : kLayouts) {
      add("columns", [&](auto& c) {
        c.columns = columns;
        c.points_layout = layout;
      });
    }
  }
  for (const Layout layout : kLayouts) {
    add("features laid out", [&](auto& c) {
      prepare(c);
      c.features_layout = layout;
      c.values = kF16;
    });
    add("everything laid out", [&](auto& c) {
      prepare(c);
      c.points_layout = c.features_layout = c.index_layout = layout;
      c.lengths = true;
    });
  }
  for (const int64_t channels : {0, 1, 2, 3, 4, 8, 16, 33}) {
    for (const rbcDType dtype : kFloatDTypes) {
      add("channels", [&](auto& c) {
        prepare(c);
        c.channels = channels;
        c.values = dtype;
      });
    }
  }

  // Clouds.
  for (const rbcDType index : {kI32, kI64}) {
    for (const bool packed : {false, true}) {
      for (const Layout layout : {Layout::kContiguous, Layout::kStrided, Layout::kReversed}) {
        add("ragged", [&](auto& c) {
          prepare(c);
          c.clouds = 6;
          c.points = 90;
          c.packed = packed;
          c.lengths = !packed;
          c.index_dtype = index;
          c.index_layout = layout;
        });
      }
    }
  }
  add("many clouds of few points", [](auto& c) {
    c.clouds = 300;
    c.points = 5;
    c.packed = true;
    c.setGrid(2, 3, 2);
  });
  add("unbatched", [](auto& c) { c.batched = false, c.clouds = 1; });
  add("unbatched, with a length", [](auto& c) {
    c.batched = false;
    c.clouds = 1;
    c.lengths = true;
  });
  add("one cloud", [](auto& c) { c.clouds = 1; });
  add("one packed cloud", [](auto& c) { c.clouds = 1, c.packed = true; });
  for (const bool packed : {false, true}) {
    add("no clouds", [&](auto& c) { c.clouds = 0, c.packed = packed; });
    for (const int64_t points : {0, 1, 2}) {
      add("hardly a point", [&](auto& c) {
        c.points = points;
        c.packed = packed;
        c.outside = 0;
      });
    }
  }
  add("no points, unbatched", [](auto& c) { c.batched = false, c.clouds = 1, c.points = 0; });

  // Grids.
  constexpr int64_t kShapes[][3] = {{1, 1, 1},  {1, 50, 1}, {50, 1, 1},   {1, 1, 50},
                                    {2, 3, 70}, {33, 2, 9}, {31, 17, 12}, {64, 4, 32}};
  for (const auto& shape : kShapes) {
    add("grid shape", [&](auto& c) { c.setGrid(shape[0], shape[1], shape[2]); });
  }

  // Voxels of many points beside voxels of few.
  for (const rbcDType dtype : {kBF16, kF32, kF64}) {
    add("many points in a voxel", [&](auto& c) {
      prepare(c);
      c.clouds = 1;
      c.points = 30000;
      c.pattern = CloudPattern::kOneVoxel;
      c.values = dtype;
      c.channels = 2;
      c.value_pattern = ValuePattern::kWide;
    });
    add("some voxels of many points", [&](auto& c) {
      prepare(c);
      c.clouds = 2;
      c.points = 12000;
      c.pattern = CloudPattern::kHeavy;
      c.values = dtype;
    });
  }
  for (const int64_t points : {70, 300, 1000, 3500}) {
    for (const int64_t channels : {1, 5}) {
      add("some voxels of more and more points", [&](auto& c) {
        prepare(c);
        c.clouds = 2;
        c.points = points;
        c.channels = channels;
        c.pattern = CloudPattern::kHeavy;
        c.value_pattern = ValuePattern::kCancelling;
      });
    }
  }
  for (const CloudPattern pattern : {CloudPattern::kUniform, CloudPattern::kSweep}) {
    add("for threads", [&](auto& c) {
      prepare(c);
      c.clouds = 5;
      c.points = 9000;
      c.pattern = pattern;
      c.packed = true;
      c.setGrid(30, 25, 12);
    });
  }
}

}  // namespace detail

// ---- dense --------------------------------------------------------------------------------------

inline std::vector<VoxelizeCase> voxelizeCases() {
  detail::VoxelTable<VoxelizeCase> add = {{}, 1};
  // Counts say most of where points lie; the other modes take turns.
  int next = 0;
  detail::addClouds(add, [&](VoxelizeCase& c) { c.mode = kReductions[next++ % 4]; });
  for (VoxelizeCase& c : add.cases) {
    if (c.mode == RBC_VOXEL_COUNT) c.out = kI32;
  }

  for (const rbcDType dtype : kFloatDTypes) {
    for (int32_t mode = RBC_VOXEL_OCCUPANCY; mode <= RBC_VOXEL_MIN; ++mode) {
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
        add("features that are special", [&](auto& c) {
          c.value_pattern = pattern;
          c.values = c.out = dtype;
          c.mode = mode;
        });
        add("features that are special, alone and few in a voxel", [&](auto& c) {
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
        c.mode = RBC_VOXEL_OCCUPANCY;
        c.out = out;
        c.empty_value = empty;
        c.points = 40;
      });
      if (!isFloat(out)) continue;
      add("empty value beside features", [&](auto& c) {
        c.mode = RBC_VOXEL_MAX;
        c.out = out;
        c.empty_value = empty;
        c.points = 40;
      });
    }
  }
  for (const rbcDType out : kCountDTypes) {
    add("counts", [&](auto& c) {
      c.out = out;
      c.empty_value = -1;
      c.pattern = CloudPattern::kHeavy;
    });
    add("a count that few dtypes hold", [&](auto& c) {
      c.out = out;
      c.clouds = 1;
      c.points = 70001;
      c.pattern = CloudPattern::kOneVoxel;
    });
  }
  add("negative features under max", [](auto& c) {
    c.value_pattern = ValuePattern::kNegative;
    c.mode = RBC_VOXEL_MAX;
  });
  add("no dropped", [](auto& c) { c.dropped = false; });
  add("no dropped, nor clouds", [](auto& c) { c.dropped = false, c.clouds = 0; });

  // Layouts of out, of [B,X,Y,Z] and of [B,X,Y,Z,F].
  std::vector<Layout> layouts(std::begin(kLayouts), std::end(kLayouts));
  layouts.push_back(Layout::kReversedOrder);
  for (const Layout layout : layouts) {
    if (layout == Layout::kBroadcast) continue;
    for (int32_t mode = RBC_VOXEL_OCCUPANCY; mode <= RBC_VOXEL_MIN; ++mode) {
      add("out laid out", [&](auto& c) {
        c.mode = mode;
        c.out = mode == RBC_VOXEL_OCCUPANCY ? kU8 : mode == RBC_VOXEL_COUNT ? kI32 : kF32;
        c.out_layout = layout;
      });
      add("out laid out, unbatched", [&](auto& c) {
        c.mode = mode;
        c.batched = false;
        c.clouds = 1;
        c.out = mode == RBC_VOXEL_OCCUPANCY ? kBool : mode == RBC_VOXEL_COUNT ? kI64 : kBF16;
        c.out_layout = layout;
        c.laid_out = "out";
      });
    }
    add("dropped laid out", [&](auto& c) {
      c.out_layout = layout;
      c.laid_out = "dropped";
    });
  }

  // Grids as large as those in use: in occupancy and in counts, scattered and coherent.
  for (const CloudPattern pattern : {CloudPattern::kUniform, CloudPattern::kSweep}) {
    for (const rbcDType out : {kU8, kF32}) {
      add("occupancy of 128^3", [&](auto& c) {
        c.mode = RBC_VOXEL_OCCUPANCY;
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
      c.mode = RBC_VOXEL_MEAN;
      c.clouds = 1;
      c.points = 20000;
      c.pattern = pattern;
      c.setGrid(61, 57, 40);
    });
  }
  for (int32_t mode = RBC_VOXEL_OCCUPANCY; mode <= RBC_VOXEL_MIN; ++mode) {
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

// ---- sparse -------------------------------------------------------------------------------------

inline std::vector<SparseCase> sparseCases() {
  detail::VoxelTable<SparseCase> add = {{}, 5001};
  // Orders, reductions and room take turns, at strides that meet in every way.
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
          add("features that are special", [&](auto& c) {
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
    // What fits.
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
    // Outputs that are not wanted, one by one, and all but one.
    for (const int64_t max_points : {0, 2}) {
      for (const char* output : kSparseOptions) {
        for (const double room : {0.6, 1.4}) {
          add("one output less", [&](auto& c) {
            c.order = order;
            c.room = room;
            c.max_points = max_points;
            c.without = {output};
          });
          add("one output alone", [&](auto& c) {
            c.order = order;
            c.room = room;
            c.max_points = max_points;
            c.without.insert(std::begin(kSparseOptions), std::end(kSparseOptions));
            c.without.erase(output);
          });
        }
      }
    }
    add("coords and their number alone", [&](auto& c) {
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

    // Large grids: keys of more than 32 bits, up to 2^62 voxels in all.
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

    // Sizes in use.
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
        c.reduce = RBC_VOXEL_SUM;
        c.setGrid(40, 40, 40);
      });
    }
  }
  return std::move(add.cases);
}

// ---- random -------------------------------------------------------------------------------------

inline std::vector<VoxelizeCase> randomVoxelizeCases(uint64_t first, uint64_t count) {
  std::vector<VoxelizeCase> cases;
  for (uint64_t seed = first; seed < first + count; ++seed)
    cases.push_back(randomVoxelizeCase(seed));
  return cases;
}

inline std::vector<SparseCase> randomSparseCases(uint64_t first, uint64_t count) {
  std::vector<SparseCase> cases;
  for (uint64_t seed = first; seed < first + count; ++seed) cases.push_back(randomSparseCase(seed));
  return cases;
}

}  // namespace support
