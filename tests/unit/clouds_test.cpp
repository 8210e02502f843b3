// rbcFarthestPoints against its definition, rbcUnproject against a pinhole in f64, and rbcTakeRows;
// every dtype and layout, any number of threads, and the same bits on CUDA.
#include "robocache/clouds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <numeric>
#include <vector>

#include "support/expect.h"
#include "support/interrupted_call.h"
#include "support/operation_tests.h"
#include "support/random.h"
#include "support/run.h"
#include "support/sanitizers.h"
#include "support/share.h"

namespace {

using support::Array;
using support::Context;
using support::kF32;
using support::kF64;
using support::kI32;
using support::kI64;
using support::Layout;
using support::Placed;
using support::Random;

// The arrays of a call on a context's device, and its outputs.
class Calls {
 public:
  explicit Calls(const Context& context)
      : context_(context), cuda_(support::infoOf(context).backend == RBC_BACKEND_CUDA) {}

  const rbcTensor* in(const Array& array) {
    return placed_.emplace_back(context_, array, cuda_).get();
  }
  const rbcTensor* out(Array& array) {
    outputs_.push_back({&array, placed_.size()});
    return in(array);
  }
  // Elements of all outputs, in order; checks that nothing else has been written.
  std::vector<uint64_t> finish() {
    support::require(rbcContextSynchronize(context_.get()));
    std::vector<uint64_t> all;
    for (const auto& [array, number] : outputs_) {
      CHECK(placed_[number].fetch(context_, *array));
      CHECK(array->gapsArePoison());
      for (const uint64_t element : array->elements()) all.push_back(element);
    }
    return all;
  }

 private:
  struct Written {
    Array* array;
    size_t number;
  };
  const Context& context_;
  bool cuda_;
  std::deque<Placed> placed_;
  std::vector<Written> outputs_;
};

void fill(const Array& array, const std::function<double()>& next) {
  array.each([&](std::byte* p) {
    const uint64_t bits = support::encodeFloat(array.dtype(), next());
    std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(array.dtype())));
  });
}

Layout writable(Random& random) {
  Layout layout;
  do layout = random.pick(support::kLayouts);
  while (layout == Layout::kBroadcast);
  return layout;
}

// ---- farthest points ----------------------------------------------------------------------------

struct FarthestCase {
  Array points;
  Array indices;
  Array distances;
  Array lengths;
  Array offsets;
  int64_t start = 0;

  FarthestCase(uint64_t seed, int64_t most_points) {
    Random random(seed);
    const int64_t clouds = 1 + random.below(4);
    const int64_t rows = 1 + random.below(most_points);
    const int64_t count = 1 + random.below(std::min<int64_t>(rows + 3, 60));
    const bool packed = random.chance(0.3);
    const rbcDType dtype = random.pick(support::kFloatDTypes);
    const int64_t columns = 3 + random.below(2);
    points = packed ? Array(dtype, {rows, columns}, random.pick(support::kLayouts))
                    : Array(dtype, {clouds, rows, columns}, random.pick(support::kLayouts));
    const int kind = static_cast<int>(random.below(6));
    fill(points, [&]() -> double {
      if (kind == 4) return random.uniform(-1, 1) * hugeOf(dtype, random.chance(0.5));
      if (kind == 5) return random.uniform(-1, 1) * tinyOf(dtype);
      if (kind == 1 && random.chance(0.02)) return std::nan("");
      if (kind == 1 && random.chance(0.02)) return -INFINITY;
      if (kind == 2) return static_cast<double>(random.below(4));  // many ties
      if (kind == 3) return 7;
      return random.uniform(-9, 9);
    });
    indices = Array(random.chance(0.5) ? kI32 : kI64, {clouds, count}, writable(random));
    distances = Array(random.pick(support::kFloatDTypes), {clouds, count}, writable(random));
    if (packed) {
      std::vector<uint64_t> cuts = {0};
      for (int64_t i = 1; i < clouds; ++i) cuts.push_back(random.bits() % (rows + 1));
      cuts.push_back(static_cast<uint64_t>(rows));
      std::sort(cuts.begin(), cuts.end());
      offsets = support::arrayOf(kI64, {clouds + 1}, cuts);
    } else {
      if (random.chance(0.3)) start = random.below(rows);
      if (start == 0 && random.chance(0.5)) {
        std::vector<uint64_t> ends;
        for (int64_t i = 0; i < clouds; ++i) ends.push_back(random.bits() % (rows + 1));
        lengths = support::arrayOf(kI64, {clouds}, ends);
      }
    }
  }

  enum class Spread { kEven, kTies, kClumps, kNearTies, kHuge, kTiny };
  static constexpr uint64_t kSpreads = 6;

  // Coordinates whose squared distances are infinite for some points and finite for others, or
  // denormal.
  static double hugeOf(rbcDType dtype, bool squares) {
    if (dtype.bits == 64) return squares ? 1e170 : 1e100;
    if (support::same(dtype, support::kF16)) return 6e4;
    return squares ? 1e25 : 1e15;
  }
  static double tinyOf(rbcDType dtype) {
    if (dtype.bits == 64) return 1e-160;
    return support::same(dtype, support::kF16) ? 1e-6 : 1e-22;
  }

  // Padded clouds, in memory order: of f32 or f64.
  FarthestCase(uint64_t seed, rbcDType dtype, int64_t clouds, int64_t rows, int64_t count,
               Spread spread)
      : points(dtype, {clouds, rows, 3}),
        indices(kI64, {clouds, count}),
        distances(kF64, {clouds, count}) {
    fillSpread(seed, spread);
  }

  // Packed clouds of f32 with the given sizes.
  FarthestCase(uint64_t seed, const std::vector<int64_t>& sizes, int64_t count, Spread spread)
      : points(kF32, {std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), 3}),
        indices(kI64, {static_cast<int64_t>(sizes.size()), count}),
        distances(kF64, {static_cast<int64_t>(sizes.size()), count}) {
    std::vector<uint64_t> ends = {0};
    for (const int64_t size : sizes) ends.push_back(ends.back() + static_cast<uint64_t>(size));
    offsets = support::arrayOf(kI64, {static_cast<int64_t>(ends.size())}, ends);
    fillSpread(seed, spread);
  }

  void fillSpread(uint64_t seed, Spread spread) {
    Random random(seed);
    fill(points, [&]() -> double {
      if (random.chance(0.001)) return INFINITY;
      if (spread == Spread::kTies) return static_cast<double>(random.below(12));
      if (spread == Spread::kEven) return random.uniform(-9, 9);
      if (spread == Spread::kHuge) {
        return random.uniform(-1, 1) * hugeOf(points.dtype(), random.chance(0.5));
      }
      if (spread == Spread::kTiny) return random.uniform(-1, 1) * tinyOf(points.dtype());
      if (spread == Spread::kNearTies) {
        return static_cast<double>(random.below(12)) + random.uniform(-1e-6, 1e-6);
      }
      return static_cast<double>(random.below(3)) + random.uniform(-0.01, 0.01);
    });
  }

  std::vector<uint64_t> run(const Context& context) {
    indices.memory().poison();
    distances.memory().poison();
    Calls calls(context);
    rbcFarthestPointsParams params = rbcFarthestPointsParamsInit();
    params.start_index = start;
    if (lengths.ndim() > 0) params.lengths = calls.in(lengths);
    if (offsets.ndim() > 0) params.batch_offsets = calls.in(offsets);
    const rbcTensor* from = calls.in(points);
    const rbcTensor* to = calls.out(indices);
    CHECK_SUCCEEDS(rbcFarthestPoints(context.get(), from, to, calls.out(distances), &params));
    return calls.finish();
  }

  // By definition, in the type that the library computes in.
  template <class Number>
  std::vector<uint64_t> expected() const {
    const bool packed = offsets.ndim() > 0;
    const int64_t clouds = indices.extent(0);
    const int64_t count = indices.extent(1);
    const int64_t columns = points.extent(points.ndim() - 1);
    const std::vector<uint64_t> bits = points.elements();
    std::vector<uint64_t> rows_taken;
    std::vector<uint64_t> expected_distances;
    for (int64_t b = 0; b < clouds; ++b) {
      const int64_t rows = points.extent(packed ? 0 : 1);
      const int64_t begin = packed ? static_cast<int64_t>(offsets.get({b})) : b * rows;
      const int64_t end = packed               ? static_cast<int64_t>(offsets.get({b + 1}))
                          : lengths.ndim() > 0 ? begin + static_cast<int64_t>(lengths.get({b}))
                                               : begin + rows;
      std::vector<std::array<Number, 3>> finite;
      std::vector<int64_t> row;
      size_t first = 0;
      bool found = false;
      for (int64_t i = begin; i < end; ++i) {
        std::array<Number, 3> p;
        for (int64_t k = 0; k < 3; ++k) {
          p[static_cast<size_t>(k)] = static_cast<Number>(
              support::decodeFloat(points.dtype(), bits[static_cast<size_t>(i * columns + k)]));
        }
        if (!std::isfinite(p[0]) || !std::isfinite(p[1]) || !std::isfinite(p[2])) continue;
        if (!found && i - begin >= start) first = finite.size(), found = true;
        finite.push_back(p);
        row.push_back(packed ? i : i - begin);
      }
      std::vector<Number> nearest(finite.size(), static_cast<Number>(INFINITY));
      size_t next = first;
      Number distance = static_cast<Number>(INFINITY);
      for (int64_t k = 0; k < count; ++k) {
        const bool takes = k < static_cast<int64_t>(finite.size());
        const uint64_t mask = indices.dtype().bits == 32 ? 0xffffffffu : ~uint64_t{0};
        rows_taken.push_back((takes ? static_cast<uint64_t>(row[next]) : ~uint64_t{0}) & mask);
        expected_distances.push_back(support::encodeFloat(
            distances.dtype(), static_cast<long double>(takes ? distance : Number(0))));
        if (!takes) continue;
        const std::array<Number, 3> taken = finite[next];
        next = 0;
        for (size_t i = 0; i < finite.size(); ++i) {
          const Number dx = finite[i][0] - taken[0];
          const Number dy = finite[i][1] - taken[1];
          const Number dz = finite[i][2] - taken[2];
          nearest[i] = std::min(nearest[i], (dx * dx + dy * dy) + dz * dz);
          if (nearest[i] > nearest[next]) next = i;
        }
        distance = nearest[next];
      }
    }
    rows_taken.insert(rows_taken.end(), expected_distances.begin(), expected_distances.end());
    return rows_taken;
  }

  std::vector<uint64_t> expectedBits() const {
    return points.dtype().bits == 64 ? expected<double>() : expected<float>();
  }
};

// ---- unproject ----------------------------------------------------------------------------------

struct UnprojectCase {
  Array depth;
  Array intrinsics;
  Array pose;
  Array colors;
  Array points;
  Array counts;
  Array overflow;
  Array pixels;
  rbcUnprojectParams params = rbcUnprojectParamsInit();

  UnprojectCase(uint64_t seed, int64_t most_pixels) {
    Random random(seed);
    const int64_t images = 1 + random.below(4);
    const int64_t height = 1 + random.below(most_pixels);
    const int64_t width = 1 + random.below(most_pixels);
    constexpr rbcDType kDepths[] = {support::kU16, support::kF16, kF32};
    const rbcDType dtype = random.pick(kDepths);
    depth = Array(dtype, {images, height, width}, random.pick(support::kLayouts));
    depth.each([&](std::byte* p) {
      const double metres = random.chance(0.2) ? 0 : random.uniform(0.1, 6);
      const bool lost = dtype.code == RBC_DTYPE_FLOAT && random.chance(0.05);
      const uint64_t bits = dtype.code == RBC_DTYPE_UINT
                                ? static_cast<uint64_t>(metres * 1000)
                                : support::encodeFloat(dtype, lost ? std::nan("") : metres);
      std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(dtype)));
    });
    const bool shared = random.chance(0.5);
    intrinsics = shared ? Array(kF64, {4}) : Array(kF32, {images, 4}, writable(random));
    // Also numbers whose quotient differs from products with reciprocals, and rays that are 0.
    const double power =
        random.chance(0.2) ? std::ldexp(1.0, 35 * static_cast<int>(random.below(5) - 2)) : 1;
    const bool whole = random.chance(0.3);
    fill(intrinsics, [&] {
      return whole ? static_cast<double>(20 + random.below(70)) : random.uniform(20, 90) * power;
    });
    if (random.chance(0.2)) params.depth_scale = random.chance(0.5) ? 1e-9 : 3e7;
    if (random.chance(0.6)) {
      pose = Array(random.chance(0.5) ? kF32 : kF64, {images, 4, 4}, writable(random));
      fill(pose, [&] { return random.uniform(-1, 1); });
    }
    const int64_t channels = random.chance(0.5) ? 0 : 1 + random.below(4);
    if (channels > 0) {
      constexpr rbcDType kColors[] = {support::kU8, support::kF16, support::kBF16, kF32, kF64};
      const rbcDType color = random.pick(kColors);
      colors = Array(color, {images, height, width, channels}, random.pick(support::kLayouts));
      colors.each([&](std::byte* p) {
        const uint64_t bits = color.code == RBC_DTYPE_UINT
                                  ? random.bits() % 256
                                  : support::encodeFloat(color, random.uniform());
        std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(color)));
      });
    }
    params.pixel_stride = static_cast<int32_t>(1 + (random.chance(0.3) ? random.below(3) : 0));
    params.pixel_offset = random.chance(0.5) ? 0.5 : 0;
    if (random.chance(0.3)) params.color_divisor = 255;
    if (random.chance(0.3)) params.min_depth = 1, params.max_depth = 4;
    if (random.chance(0.4)) params.crop_min[0] = -2, params.crop_max[0] = 3, params.crop_max[2] = 4;
    const int64_t step = params.pixel_stride;
    const int64_t all = ((height + step - 1) / step) * ((width + step - 1) / step);
    const int64_t room = random.chance(0.6) ? all : 1 + random.below(all + 20);
    points = Array(random.pick(support::kFloatDTypes), {images, room, 3 + channels},
                   random.chance(0.5) ? Layout::kContiguous : writable(random));
    counts = Array(kI64, {images});
    overflow = Array(kI64, {images});
    if (random.chance(0.7)) {
      pixels = Array(random.chance(0.5) ? kI32 : kI64, {images, room}, writable(random));
    }
  }

  std::vector<uint64_t> run(const Context& context) {
    for (Array* output : {&points, &counts, &overflow, &pixels}) {
      if (output->ndim() > 0) output->memory().poison();
    }
    Calls calls(context);
    const rbcTensor* p = pose.ndim() > 0 ? calls.in(pose) : nullptr;
    const rbcTensor* c = colors.ndim() > 0 ? calls.in(colors) : nullptr;
    const rbcTensor* to = calls.out(points);
    const rbcTensor* n = calls.out(counts);
    const rbcTensor* more = calls.out(overflow);
    const rbcTensor* where = pixels.ndim() > 0 ? calls.out(pixels) : nullptr;
    CHECK_SUCCEEDS(rbcUnproject(context.get(), calls.in(depth), calls.in(intrinsics), p, c, to, n,
                                more, where, &params));
    return calls.finish();
  }
};

// Indices are checked one by one, even if the rows have nothing to copy.
class TakingRows : public support::LongCall {
 public:
  TakingRows() { outputs_.emplace_back(kF32, std::vector<int64_t>{kPlaces, 0}); }

 private:
  static constexpr int64_t kPlaces = 1'000'000;

  rbcStatus_t call(rbcContext_t context) override {
    const rbcTensor values = values_.tensor();
    const rbcTensor indices = indices_.tensor();
    const rbcTensor out = outputs_[0].tensor();
    return rbcTakeRows(context, &values, &indices, &out, nullptr);
  }

  support::CallMemory values_{kF32, {7, 0}};
  support::CallMemory indices_{support::kI64, {kPlaces}};
};

}  // namespace

TEST_CASE("farthest points: by definition, at every SIMD level") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    FarthestCase c(seed, seed % 10 == 0 ? 3000 : 150);
    const std::vector<uint64_t> expected = c.expectedBits();
    for (const int32_t level : support::simdLevels()) {
      const Context context = support::cpuContext(1 + static_cast<int32_t>(seed % 3), level);
      CHECK(c.run(context) == expected);
    }
  }
}

TEST_CASE("unproject: where a pinhole in f64 puts a pixel, and no pixel is lost") {
  const Context context = support::cpuContext(2);
  constexpr int64_t kHeight = 31;
  constexpr int64_t kWidth = 47;
  Random random(5);
  const Array depth(kF32, {kHeight, kWidth});
  fill(depth, [&] { return random.uniform(0.5, 5); });
  const Array camera =
      support::arrayOf(kF64, {4},
                       {support::encodeFloat(kF64, 40), support::encodeFloat(kF64, 50),
                        support::encodeFloat(kF64, 22), support::encodeFloat(kF64, 16)});
  Array points(kF64, {kHeight * kWidth, 3});
  Array counts(kI64, {});
  Calls calls(context);
  const rbcTensor* to = calls.out(points);
  CHECK_SUCCEEDS(rbcUnproject(context.get(), calls.in(depth), calls.in(camera), nullptr, nullptr,
                              to, calls.out(counts), nullptr, nullptr, nullptr));
  CHECK(counts.elements() == std::vector<uint64_t>{kHeight * kWidth});
  for (int64_t i = 0; i < kHeight * kWidth; ++i) {
    const auto number = [&](const Array& array, std::initializer_list<int64_t> at) {
      return static_cast<double>(support::decodeFloat(array.dtype(), array.get(at)));
    };
    const double z = number(depth, {i / kWidth, i % kWidth});
    const double x = (static_cast<double>(i % kWidth) - 22) * z / 40;
    const double y = (static_cast<double>(i / kWidth) - 16) * z / 50;
    CHECK(number(points, {i, 0}) == doctest::Approx(x).epsilon(1e-14));
    CHECK(number(points, {i, 1}) == doctest::Approx(y).epsilon(1e-14));
    CHECK(number(points, {i, 2}) == z);
  }
}

TEST_CASE("unproject: the same bits from any number of threads") {
  const Context one = support::cpuContext(1, RBC_SIMD_PORTABLE);
  for (uint64_t seed = 0; seed < (support::kThreadSanitizer ? 30u : 120u); ++seed) {
    CAPTURE(seed);
    UnprojectCase c(seed, seed % 20 == 0 ? 600 : 60);
    const std::vector<uint64_t> expected = c.run(one);
    for (const int32_t threads : {2, 5}) CHECK(c.run(support::cpuContext(threads)) == expected);
  }
}

TEST_CASE("clouds cuda: farthest points by definition") {
  WITH_CUDA(cuda);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    if (!support::inShare(seed)) continue;
    CAPTURE(seed);
    FarthestCase c(seed, seed % 10 == 0 ? 30000 : seed % 3 == 0 ? 5000 : 300);
    CHECK(c.run(cuda) == c.expectedBits());
  }
}

TEST_CASE("clouds cuda: farthest points of clouds of all sizes") {
  WITH_CUDA(cuda);
  struct Size {
    rbcDType dtype;
    int64_t clouds, rows, count;
  };
  // Kept and in the workspace, by a single block and by clusters; in the workspace with buckets of
  // one part, and of several; and with as many points as a block writes at once, or more.
  constexpr Size kSizes[] = {
      {kF32, 5, 1024, 70},      {kF32, 5, 4096, 70},    {kF32, 5, 8192, 300},
      {kF32, 5, 8193, 70},      {kF32, 1, 131'000, 70}, {kF32, 1, 140'000, 70},
      {kF32, 70, 9000, 40},     {kF32, 70, 66'000, 12}, {kF32, 20, 30'000, 40},
      {kF32, 1, 1'200'000, 20}, {kF64, 5, 8192, 70},    {kF64, 70, 9000, 40},
      {kF64, 1, 140'000, 70},   {kF32, 3, 4096, 700},   {kF32, 2, 8192, 1100},
      {kF32, 1, 140'000, 600},  {kF64, 5, 1024, 70},    {kF64, 5, 4096, 300},
      {kF32, 3, 700, 256},      {kF32, 3, 700, 257},    {kF32, 1, 20'000, 600}};
  for (uint64_t i = 0; i < FarthestCase::kSpreads * std::size(kSizes); ++i) {
    if (!support::inShare(i)) continue;
    const Size& size = kSizes[i / FarthestCase::kSpreads];
    CAPTURE(size.clouds);
    CAPTURE(size.rows);
    FarthestCase c(i, size.dtype, size.clouds, size.rows, size.count,
                   static_cast<FarthestCase::Spread>(i % FarthestCase::kSpreads));
    CHECK(c.run(cuda) == c.expectedBits());
  }
}

TEST_CASE("clouds cuda: farthest points of many small clouds and a few large ones") {
  WITH_CUDA(cuda);
  for (uint64_t seed = 0; seed < FarthestCase::kSpreads; ++seed) {
    if (!support::inShare(seed)) continue;
    CAPTURE(seed);
    Random random(seed);
    // Packed: only the device knows the sizes of clouds. Clouds of at least 1025 points are in the
    // workspace.
    std::vector<int64_t> sizes;
    for (int i = 0; i < 3000; ++i) sizes.push_back(random.below(20));
    for (const int64_t large : {1024, 1025, 1026, 9000, 1025, 30'000, 1100}) {
      const auto at = static_cast<size_t>(random.below(static_cast<int64_t>(sizes.size())));
      sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(at), large);
    }
    FarthestCase c(seed, sizes, 40, static_cast<FarthestCase::Spread>(seed));
    CHECK(c.run(cuda) == c.expectedBits());
  }
}

TEST_CASE("clouds cuda: many small clouds need little memory besides their points") {
  WITH_CUDA(cuda);
  FarthestCase c(1, std::vector<int64_t>(100'000, 16), 4, FarthestCase::Spread::kEven);
  Calls calls(cuda);
  rbcFarthestPointsParams params = rbcFarthestPointsParamsInit();
  params.batch_offsets = calls.in(c.offsets);
  const rbcTensor* from = calls.in(c.points);
  const rbcTensor* to = calls.out(c.indices);
  size_t bytes = 0;
  CHECK_SUCCEEDS(rbcFarthestPointsWorkspaceSize(cuda.get(), from, to, nullptr, &params, &bytes));
  const auto rows = static_cast<size_t>(c.points.extent(0));
  CHECK(bytes >= rows * 20);
  CHECK(bytes <= rows * 26);
}

TEST_CASE("clouds cuda: unproject gives the bits of the CPU") {
  WITH_CUDA(cuda);
  const Context cpu = support::cpuContext();
  for (uint64_t seed = 0; seed < 300; ++seed) {
    if (!support::inShare(seed)) continue;
    CAPTURE(seed);
    UnprojectCase c(seed, seed % 20 == 0 ? 600 : 100);
    const std::vector<uint64_t> expected = c.run(cpu);
    CHECK(c.run(cuda) == expected);
  }
}

TEST_CASE("clouds cuda: rows by index equal the CPU's") {
  WITH_CUDA(cuda);
  const Context cpu = support::cpuContext();
  for (uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const int64_t rows = 1 + random.below(40);
    const int64_t channels = 1 + random.below(9);
    constexpr rbcDType kDTypes[] = {support::kU8, support::kF16, kF32, kI64};
    const rbcDType dtype = random.pick(kDTypes);
    const Array values(dtype, {3, rows, channels}, random.pick(support::kLayouts));
    values.each([&](std::byte* p) {
      const uint64_t bits = random.bits();
      std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(dtype)));
    });
    const Array indices(random.chance(0.5) ? kI32 : kI64, {3, 50}, writable(random));
    indices.each([&](std::byte* p) {
      const int64_t index = random.below(rows + 1) - 1;
      std::memcpy(p, &index, static_cast<size_t>(support::sizeOf(indices.dtype())));
    });
    Array out(dtype, {3, 50, channels}, writable(random));
    const auto run = [&](const Context& context) {
      out.memory().poison();
      Calls calls(context);
      CHECK_SUCCEEDS(
          rbcTakeRows(context.get(), calls.in(values), calls.in(indices), calls.out(out), nullptr));
      return calls.finish();
    };
    const std::vector<uint64_t> expected = run(cpu);
    CHECK(run(cuda) == expected);
  }
}

TEST_CASE("interrupt: rows by index") { support::checkInterrupts(TakingRows()); }
