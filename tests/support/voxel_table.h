// Builds a table of voxelization cases, and the cases that the dense and the sparse one share.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "voxel_case.h"

namespace support {
namespace detail {

// Adds cases to a table one by one, each with its own seed.
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

// ---- cases of both tables: `prepare` makes a case use the features ------------------------------

template <class Table, class Prepare>
void addClouds(Table& add, Prepare&& prepare) {
  // Positions of points.
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
    add("borders that no number represents", [&](auto& c) {
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

  // Columns, as positions and as features to reduce.
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

  // Voxels with many points next to voxels with few.
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
}  // namespace support
