// rbcVoxelizeSparse with keys of every width.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "support/expect.h"
#include "support/random.h"
#include "support/run.h"
#include "support/sanitizers.h"

namespace {

using support::Array;
using support::Context;

using Extents = std::array<int64_t, 3>;

// Extents whose product is `voxels`, or the nearest larger product of three axes.
Extents extentsOf(int64_t voxels) {
  for (;; ++voxels) {
    std::vector<int64_t> factors;
    int64_t rest = voxels;
    for (int64_t p = 2; p < 1 << 16 && p * p <= rest; ++p) {
      for (; rest % p == 0; rest /= p) factors.push_back(p);
    }
    Extents extents = {rest, 1, 1};
    bool fit = rest <= INT32_MAX;
    for (auto p = factors.rbegin(); fit && p != factors.rend(); ++p) {
      int64_t& least = *std::min_element(extents.begin(), extents.end());
      least *= *p;
      fit = least <= INT32_MAX;
    }
    if (fit) return extents;
  }
}

struct Keys {
  Extents extents;
  std::vector<int64_t> voxels;  // of each point, in lexicographic order of the grid
};

// The first and the last voxel, their neighbours, and random ones, each sometimes more than once.
Keys keysOf(int64_t voxels, int64_t points) {
  support::Random random(static_cast<uint64_t>(voxels) * 31 + static_cast<uint64_t>(points));
  Keys keys = {extentsOf(voxels), {}};
  const int64_t volume = keys.extents[0] * keys.extents[1] * keys.extents[2];
  for (int64_t i = 0; i < points; ++i) {
    const int64_t near = std::min<int64_t>(random.below(5), volume - 1);
    switch (random.below(4)) {
      case 0: keys.voxels.push_back(near); break;
      case 1: keys.voxels.push_back(volume - 1 - near); break;
      default: keys.voxels.push_back(random.below(volume));
    }
  }
  return keys;
}

template <class T>
T* elementsOf(const Array& array) {
  return reinterpret_cast<T*>(array.memory().data());
}

// "", or a description of the error.
std::string check(const Context& context, const Keys& keys) {
  const auto n = static_cast<int64_t>(keys.voxels.size());
  const auto [x, y, z] = keys.extents;
  Array points = Array(support::kF64, {n, 3});
  for (int64_t i = 0; i < n; ++i) {
    const int64_t voxel = keys.voxels[static_cast<size_t>(i)];
    const double at[] = {static_cast<double>(voxel / z / y), static_cast<double>(voxel / z % y),
                         static_cast<double>(voxel % z)};
    for (int axis = 0; axis < 3; ++axis) elementsOf<double>(points)[i * 3 + axis] = at[axis] + 0.5;
  }
  // Voxels in order, with the points of each.
  std::vector<std::pair<int64_t, int64_t>> sorted;
  for (int64_t i = 0; i < n; ++i) sorted.emplace_back(keys.voxels[static_cast<size_t>(i)], i);
  std::sort(sorted.begin(), sorted.end());

  const bool cuda = support::infoOf(context).backend == RBC_BACKEND_CUDA;
  const int64_t capacity = std::max<int64_t>(n, 1);
  Array arrays[] = {Array(support::kI32, {capacity, 4}), Array(support::kI64, {}),
                    Array(support::kI32, {capacity}), Array(support::kI64, {n})};
  std::vector<support::Placed> placed;
  for (const Array& array : arrays) placed.emplace_back(context, array, cuda);
  const support::Placed placed_points(context, points, cuda);
  rbcVoxelizeSparseOutputs voxels = rbcVoxelizeSparseOutputsInit();
  voxels.coords = placed[0].get();
  voxels.num_voxels = placed[1].get();
  voxels.points_per_voxel = placed[2].get();
  voxels.point_to_voxel = placed[3].get();
  rbcVoxelizeSparseParams params = rbcVoxelizeSparseParamsInit();
  for (int axis = 0; axis < 3; ++axis) {
    params.grid.voxel_size[axis] = 1;
    params.grid.shape[axis] = keys.extents[static_cast<size_t>(axis)];
  }
  support::require(
      rbcVoxelizeSparse(context.get(), placed_points.get(), nullptr, &voxels, &params));
  support::require(rbcContextSynchronize(context.get()));
  for (size_t i = 0; i < placed.size(); ++i) {
    if (!placed[i].fetch(context, arrays[i]) || !arrays[i].gapsArePoison()) return "stray writes";
  }

  int64_t row = -1;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const auto [voxel, point] = sorted[i];
    if (i == 0 || voxel != sorted[i - 1].first) {
      ++row;
      const int32_t* coords = elementsOf<int32_t>(arrays[0]) + row * 4;
      if (coords[0] != 0 || coords[1] != voxel / z / y || coords[2] != voxel / z % y ||
          coords[3] != voxel % z) {
        return "coords of row " + std::to_string(row);
      }
      const auto same = [voxel = voxel](const auto& entry) { return entry.first == voxel; };
      const auto count =
          std::find_if_not(sorted.begin() + static_cast<std::ptrdiff_t>(i), sorted.end(), same) -
          sorted.begin() - static_cast<std::ptrdiff_t>(i);
      if (elementsOf<int32_t>(arrays[2])[row] != count)
        return "count of row " + std::to_string(row);
    }
    if (elementsOf<int64_t>(arrays[3])[point] != row)
      return "voxel of point " + std::to_string(point);
  }
  return *elementsOf<int64_t>(arrays[1]) == row + 1 ? "" : "num_voxels";
}

void checkWidths(const Context& context) {
  constexpr int kStep = support::kSanitized ? 9 : 1;
  for (int bits = 3; bits <= 62; bits += kStep) {
    for (const int64_t offset : {-1, 0, 1}) {
      const int64_t voxels = (int64_t{1} << bits) + offset;
      if (voxels > int64_t{1} << 62) continue;  // more are refused
      for (const int64_t points : {0, 1, 1023, 2047, 2048, 70'000}) {
        CHECK_MESSAGE(check(context, keysOf(voxels, points)) == "", "2^", bits, " + ", offset,
                      " voxels, ", points, " points");
      }
    }
  }
}

}  // namespace

TEST_CASE("voxelize sparse cpu: keys of every width") {
  if (support::kThreadSanitizer) SKIP_BECAUSE("ThreadSanitizer finds nothing in one thread");
  checkWidths(support::cpuContext(1));
}

TEST_CASE("voxelize sparse cpu: keys of every width, on three threads") {
  checkWidths(support::cpuContext(3));
}

TEST_CASE("voxelize sparse cuda: keys of every width") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  checkWidths(cuda);
}
