#include "fuzz/calls.h"

#include <algorithm>

#include "fuzz/spoil.h"

namespace fuzz {

// A maker of good calls for each operation: <family>_calls.cpp define them.
using Maker = std::unique_ptr<Call>(Choices&);
Maker makeResample, makeFuse, makeVoxelize, makeVoxelizeSparse, makeVoxelizeTsdf;
Maker makeUnproject, makeTakeRows, makeFarthestPoints, makeStatistics, makeConvertRotations;
Maker makeWindows, makeTensorCopy, makeTensorNormalize;

namespace {

constexpr Maker* kMakers[] = {
    makeResample,  makeFuse,       makeVoxelize,        makeVoxelizeSparse, makeVoxelizeTsdf,
    makeUnproject, makeTakeRows,   makeFarthestPoints,  makeStatistics,     makeConvertRotations,
    makeWindows,   makeTensorCopy, makeTensorNormalize,
};

}  // namespace

int numOperations() { return static_cast<int>(std::size(kMakers)); }

std::unique_ptr<Call> makeCallOf(int index, Choices& choices) { return kMakers[index](choices); }

std::unique_ptr<Call> makeCall(Choices& choices) {
  auto call = makeCallOf(static_cast<int>(choices.below(numOperations())), choices);
  for (int64_t n = choices.chance(50) ? 0 : choices.between(1, 3); n > 0; --n)
    spoil(*call, choices);
  if (choices.chance(10)) mismatch(*call, choices);
  return call;
}

std::unique_ptr<Call> makeLargeCall(Choices& choices) {
  choices.enlarge(choices.between(1, 4));
  return makeCallOf(static_cast<int>(choices.below(numOperations())), choices);
}

int64_t anyExtent(Choices& choices, int64_t usual) {
  if (choices.isLargeNow()) {
    constexpr int64_t kMaxLarge = 1 << 19;
    const int64_t extent = usual << choices.between(5, choices.chance(10) ? 13 : 9);
    return std::min(extent, kMaxLarge) + choices.below(usual);
  }
  // If one extent is large, all others are small: together they would take gigabytes.
  const int64_t most = choices.hasLarge() ? 3 : INT64_MAX;
  const int64_t kind = choices.below(64);
  if (kind < 2) return 0;
  if (kind < 8) return 1;
  if (kind == 63) return std::min(choices.between(usual, 8 * usual), most);
  return std::min(choices.between(1, usual), most);
}

}  // namespace fuzz
