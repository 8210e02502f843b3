// A tile of a resized image: 16 rows of pixels at a time are transposed, so that a vector holds the
// same pixel of 16 rows; their sums along the rows are then added to the output rows that need
// them. Integers are exact in any order; the f32 sums of OpenCV's cells are added in order.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "images/resize_tile.cpp"
#include "runtime/simd_targets.h"
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include <algorithm>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "images/color_row-inl.h"
#include "images/resize_tile.h"
#include "resize_sums.h"

HWY_BEFORE_NAMESPACE();

namespace rbc::cpu {
namespace HWY_NAMESPACE {

constexpr int kLanes = kTileRows;

// ---- blocks of pixels ---------------------------------------------------------------------------

#if HWY_TARGET != HWY_STATIC_TARGET
// Vectors of one or more blocks of 16 bytes.
using OneBlock = hwy::HWY_NAMESPACE::Full128<uint8_t>;
using Blocks = hwy::HWY_NAMESPACE::CappedTag<uint8_t, 4 * kLanes>;

template <class Vector>
HWY_INLINE void storeBlocks(const Vector& v, uint8_t* to, int64_t step) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::DFromV<Vector> tag;
  if constexpr (hn::MaxLanes(tag) == kLanes) {
    hn::Store(v, tag, to);
  } else {
    const hn::Half<decltype(tag)> half;
    storeBlocks(hn::LowerHalf(half, v), to, step);
    storeBlocks(hn::UpperHalf(half, v),
                to + step * static_cast<int64_t>(hn::MaxLanes(half)) / kLanes, step);
  }
}

template <class Tag>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<Tag> loadBlocks(Tag tag, const uint8_t* from, int64_t step) {
  namespace hn = hwy::HWY_NAMESPACE;
  if constexpr (hn::MaxLanes(tag) == kLanes) {
    return hn::Load(tag, from);
  } else {
    const hn::Half<Tag> half;
    return hn::Combine(
        tag,
        loadBlocks(half, from + step * static_cast<int64_t>(hn::MaxLanes(half)) / kLanes, step),
        loadBlocks(half, from, step));
  }
}

// Transposes 16 x 16 bytes in each block: vectors load(r) are rows, store(r, v) gets columns.
template <class Tag, class Load, class Store>
HWY_INLINE void transposeSquares(Tag tag, const Load& load, const Store& store) {
  namespace hn = hwy::HWY_NAMESPACE;
  hn::Vec<Tag> rows[kLanes];
  hn::Vec<Tag> mixed[kLanes];
  for (int r = 0; r < kLanes; ++r) rows[r] = load(r);
  for (int round = 0; round < 4; ++round) {
    for (int r = 0; r < kLanes / 2; ++r) {
      mixed[2 * r] = hn::InterleaveLower(tag, rows[r], rows[r + kLanes / 2]);
      mixed[2 * r + 1] = hn::InterleaveUpper(tag, rows[r], rows[r + kLanes / 2]);
    }
    for (int r = 0; r < kLanes; ++r) rows[r] = mixed[r];
  }
  for (int r = 0; r < kLanes; ++r) store(r, rows[r]);
}
#endif

#if HWY_TARGET != HWY_STATIC_TARGET
// Transposes as many of the columns i .. count - 1 of 16 rows as fill vectors; returns the next one.
template <class Tag>
HWY_INLINE int64_t transposeColumns(Tag tag, const uint8_t* const (&rows)[kLanes], int64_t i,
                                    int64_t count, int64_t ahead, uint8_t* block) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr auto kSize = static_cast<int64_t>(hn::MaxLanes(tag));
  for (; i + kSize <= count; i += kSize) {
    transposeSquares(
        tag,
        [&](int r) {
          hwy::Prefetch(rows[r] + i + ahead);
          return hn::LoadU(tag, rows[r] + i);
        },
        [&](int r, const auto& v) { storeBlocks(v, block + (i + r) * kLanes, kLanes * kLanes); });
  }
  return i;
}

// The reverse: columns i .. count - 1, [16] each, to 16 rows.
template <class Tag>
HWY_INLINE int64_t transposeBack(Tag tag, const uint8_t* columns, int64_t i, int64_t count,
                                 uint8_t* rows) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr auto kSize = static_cast<int64_t>(hn::MaxLanes(tag));
  for (; i + kSize <= count; i += kSize) {
    transposeSquares(
        tag, [&](int r) { return loadBlocks(tag, columns + (i + r) * kLanes, kLanes * kLanes); },
        [&](int r, const auto& v) { hn::StoreU(v, tag, rows + r * kTileValues + i); });
  }
  return i;
}
#endif

// Transposes 16 rows of `count` bytes, and fetches the bytes that are `ahead` of them.
void transposeRows(const uint8_t* const (&rows)[kLanes], int64_t count,
                   [[maybe_unused]] int64_t ahead, uint8_t* block) {
  int64_t i = 0;
#if HWY_TARGET != HWY_STATIC_TARGET
  i = transposeColumns(Blocks(), rows, i, count, ahead, block);
  i = transposeColumns(OneBlock(), rows, i, count, ahead, block);
#endif
  for (; i < count; ++i) {
    for (int r = 0; r < kLanes; ++r) block[i * kLanes + r] = rows[r][i];
  }
}

// One pixel of the crop, with the colours of its frame.
template <int kChannels>
ImagePixel readPixel(const Tile& tile, const uint8_t* row, int64_t column) {
  const ImagePlan& plan = *tile.plan;
  const uint8_t* from = row + clampIndex(column, 0, plan.in[1] - 1) * plan.stride[1];
  ImagePixel pixel = {};
  for (int c = 0; c < kChannels; ++c) pixel.value[c] = from[c * plan.stride[2]];
  if (tile.colored) {
    applyColors<kChannels>(plan.colors, 0, plan.colors.count, tile.mean, &pixel);
  }
  return pixel;
}

// Loads columns begin .. end - 1 of 16 rows. Rows with colours pass through `middle`, which has no
// sums yet: pixels that do not fit in a block have tiles of one column.
template <int kChannels>
void loadBlock(const Tile& tile, const uint8_t* const (&rows)[kLanes], int64_t begin, int64_t end,
               ResizeMemory* memory) {
  const ImagePlan& plan = *tile.plan;
  uint8_t* const block = memory->block;
  if (begin >= 0 && end <= plan.in[1] && plan.stride[1] == kChannels &&
      (kChannels == 1 || plan.stride[2] == 1)) {
    const uint8_t* from[kLanes];
    for (int r = 0; r < kLanes; ++r) from[r] = rows[r] + begin * kChannels;
    if (tile.colored) {
      static_assert(sizeof(memory->middle) >= kLanes * kBlockColumns);
      auto* copies = reinterpret_cast<uint8_t*>(memory->middle);
      for (int r = 0; r < kLanes; ++r, copies += kBlockColumns) {
        std::memcpy(copies, from[r], static_cast<size_t>((end - begin) * kChannels));
        colorPixels<kChannels>(plan.colors, 0, plan.colors.count, tile.mean, end - begin, copies);
        from[r] = copies;
      }
    }
    transposeRows(from, (end - begin) * kChannels, tile.colored ? 0 : kLanes * plan.stride[0],
                  block);
    return;
  }
  for (int r = 0; r < kLanes; ++r) {
    for (int64_t x = begin; x < end; ++x) {
      const ImagePixel pixel = readPixel<kChannels>(tile, rows[r], x);
      uint8_t* to = block + (x - begin) * kChannels * kLanes + r;
      for (int c = 0; c < kChannels; ++c) to[c * kLanes] = pixel.value[c];
    }
  }
}

// ---- sums along the rows ------------------------------------------------------------------------

#if HWY_TARGET != HWY_STATIC_TARGET
// Vectors of sums, and of as many bytes.
using Wide = hwy::HWY_NAMESPACE::CappedTag<int32_t, 16>;
using WideBytes = hwy::HWY_NAMESPACE::Rebind<uint8_t, Wide>;
constexpr int kWideSize = static_cast<int>(hwy::HWY_NAMESPACE::MaxLanes(Wide()));

// sum = first + sum of weights[j] * block[j], for the values of a pixel in 16 rows.
template <int kVectors>
HWY_INLINE void sumVectors(const uint8_t* block, const int32_t* weights, int64_t count,
                           int32_t first, hwy::HWY_NAMESPACE::Vec<Wide> (&sum)[kVectors]) {
  namespace hn = hwy::HWY_NAMESPACE;
  for (auto& each : sum) each = hn::Set(Wide(), first);
  for (int64_t j = 0; j < count; ++j, block += kVectors * kWideSize) {
    const auto w = hn::Set(Wide(), weights[j]);
    for (int v = 0; v < kVectors; ++v) {
      const auto x = hn::PromoteTo(Wide(), hn::Load(WideBytes(), block + v * kWideSize));
      sum[v] = hn::Add(sum[v], hn::Mul(x, w));
    }
  }
}
#endif

// out[k] = first + sum of weights[j] * block[j][k], for the values of a pixel in 16 rows.
template <int kValues>
void sumPixels(const uint8_t* block, const int32_t* weights, int64_t count, int32_t first,
               int32_t* out) {
#if HWY_TARGET != HWY_STATIC_TARGET
  namespace hn = hwy::HWY_NAMESPACE;
  hn::Vec<Wide> sum[kValues / kWideSize];
  sumVectors(block, weights, count, first, sum);
  for (const auto& each : sum) {
    hn::Store(each, Wide(), out);
    out += kWideSize;
  }
#else
  for (int k = 0; k < kValues; ++k) out[k] = first;
  for (int64_t j = 0; j < count; ++j, block += kValues) {
    for (int k = 0; k < kValues; ++k) out[k] += weights[j] * int32_t{block[k]};
  }
#endif
}

template <int kValues>
void sumPixels(const uint8_t* block, const int32_t* weights, int64_t count, float, float* out) {
  for (int k = 0; k < kValues; ++k) out[k] = 0;
  for (int64_t j = 0; j < count; ++j, block += kValues) {
    const float w = bitCast<float>(weights[j]);
    for (int k = 0; k < kValues; ++k) out[k] = out[k] + static_cast<float>(block[k]) * w;
  }
}

#if HWY_TARGET != HWY_STATIC_TARGET
// The bytes that the sums of a pixel in 16 rows are rounded to.
template <int kValues>
HWY_INLINE void sumPixels(const uint8_t* block, const int32_t* weights, int64_t count,
                          const RoundedSums& sums, uint8_t* out) {
  namespace hn = hwy::HWY_NAMESPACE;
  hn::Vec<Wide> sum[kValues / kWideSize];
  sumVectors(block, weights, count, sums.firstAcross(), sum);
  for (const auto& each : sum) {
    hn::StoreU(hn::DemoteTo(WideBytes(), hn::ShiftRightSame(each, sums.across)), WideBytes(), out);
    out += kWideSize;
  }
}

// Adds weights times rows of bytes to sums of `count` elements, rounded up to whole vectors.
template <int kRows>
HWY_INLINE void addRows(const int32_t* weights, const uint8_t* const* rows, int64_t count,
                        int32_t* total) {
  namespace hn = hwy::HWY_NAMESPACE;
  hn::Vec<Wide> w[kRows];
  for (int k = 0; k < kRows; ++k) w[k] = hn::Set(Wide(), weights[k]);
  for (int64_t i = 0; i < count; i += kWideSize) {
    auto sum = hn::Load(Wide(), total + i);
    for (int k = 0; k < kRows; ++k) {
      const auto x = hn::PromoteTo(Wide(), hn::Load(WideBytes(), rows[k] + i));
      sum = hn::Add(sum, hn::Mul(x, w[k]));
    }
    hn::Store(sum, Wide(), total + i);
  }
}
#endif

// ---- tiles --------------------------------------------------------------------------------------

struct Range {
  int64_t begin;
  int64_t end;
};

Range neededBy(const TapRange* ranges, int64_t begin, int64_t end) {
  Range all = {ranges[begin].first, 0};
  for (int64_t i = begin; i < end; ++i) {
    all.begin = std::min(all.begin, ranges[i].first);
    all.end = std::max(all.end, ranges[i].first + ranges[i].count);
  }
  return all;
}

// The sums along 16 rows, for all columns of the tile. If the pixels do not fit in a block, each
// output pixel loads its own in pieces.
template <class Sums, int kChannels>
void sumAcross(const Tile& tile, const Sums& sums, const uint8_t* const (&rows)[kLanes],
               const Range& needed, ResizeMemory* memory) {
  using Across = typename Sums::Across;
  constexpr int kValues = kChannels * kLanes;
  const bool fits = (needed.end - needed.begin) * kChannels <= kBlockColumns;
  if (fits) loadBlock<kChannels>(tile, rows, needed.begin, needed.end, memory);
  auto* lanes = reinterpret_cast<Across*>(memory->lanes);
  auto* middle = reinterpret_cast<typename Sums::Middle*>(memory->middle);
#if HWY_TARGET != HWY_STATIC_TARGET
  if constexpr (std::is_same_v<Sums, RoundedSums>) {
    if (fits) {
      // The bytes of 16 rows first, [column * C + c][16], behind those that they become.
      uint8_t* const columns = middle + kLanes * kTileValues;
      for (int64_t x = tile.begin[1]; x < tile.end[1]; ++x) {
        const TapRange range = tile.columns.ranges[x];
        sumPixels<kValues>(memory->block + (range.first - needed.begin) * kValues,
                           tile.columns.weights + x * tile.column_room, range.count, sums,
                           columns + (x - tile.begin[1]) * kValues);
      }
      const int64_t values = (tile.end[1] - tile.begin[1]) * kChannels;
      // Whole blocks: there is room, and what is beyond the values is not read.
      const int64_t room = (values + kLanes - 1) / kLanes * kLanes;
      const int64_t done = transposeBack(Blocks(), columns, 0, room, middle);
      transposeBack(OneBlock(), columns, done, room, middle);
      return;
    }
  }
#endif
  for (int64_t x = tile.begin[1]; x < tile.end[1]; ++x) {
    const TapRange range = tile.columns.ranges[x];
    const int32_t* weights = tile.columns.weights + x * tile.column_room;
    if (fits) {
      sumPixels<kValues>(memory->block + (range.first - needed.begin) * kValues, weights,
                         range.count, sums.firstAcross(), lanes);
    } else {
      constexpr int64_t kPiece = kBlockColumns / kChannels;
      Across total[kValues];
      for (Across& each : total) each = sums.firstAcross();
      for (int64_t j = 0; j < range.count; j += kPiece) {
        const int64_t end = std::min(j + kPiece, range.count);
        loadBlock<kChannels>(tile, rows, range.first + j, range.first + end, memory);
        if constexpr (std::is_same_v<Across, float>) {
          for (int64_t i = j; i < end; ++i) {  // in order
            sumPixels<kValues>(memory->block + (i - j) * kValues, weights + i, 1, Across{}, lanes);
            for (int k = 0; k < kValues; ++k) total[k] = total[k] + lanes[k];
          }
        } else {
          sumPixels<kValues>(memory->block, weights + j, end - j, Across{}, lanes);
          for (int k = 0; k < kValues; ++k) total[k] = total[k] + lanes[k];
        }
      }
      std::copy_n(total, kValues, lanes);
    }
    auto* to = middle + (x - tile.begin[1]) * kChannels;
    for (int c = 0; c < kChannels; ++c) {
      for (int r = 0; r < kLanes; ++r) {
        to[r * kTileValues + c] = sums.middle(lanes[c * kLanes + r]);
      }
    }
  }
}

// Adds rows begin .. end - 1 of a block, weighted, to the sums of an output row.
template <class Sums, class Middle, class Down>
HWY_INLINE void addBlock(const Sums& sums, const int32_t* weights, int64_t first,
                         const int64_t* numbers, const Middle* middle, int begin, int end,
                         int64_t values, Down* total) {
#if HWY_TARGET != HWY_STATIC_TARGET
  if constexpr (std::is_same_v<Sums, RoundedSums>) {
    constexpr int kMost = 4;
    for (int r = begin; r < end; r += kMost) {
      const uint8_t* rows[kMost] = {};
      int32_t w[kMost] = {};
      const int n = std::min(kMost, end - r);
      for (int k = 0; k < n; ++k) {
        rows[k] = middle + (r + k) * kTileValues;
        w[k] = weights[numbers[r + k] - first];
      }
      switch (n) {
        case 1: addRows<1>(w, rows, values, total); break;
        case 2: addRows<2>(w, rows, values, total); break;
        case 3: addRows<3>(w, rows, values, total); break;
        default: addRows<4>(w, rows, values, total);
      }
    }
    return;
  }
#endif
  for (int r = begin; r < end; ++r) {
    const int32_t w = weights[numbers[r] - first];
    const Middle* x = middle + r * kTileValues;
    for (int64_t i = 0; i < values; ++i) total[i] = total[i] + sums.term(w, x[i]);
  }
}

// The bytes that sums are rounded to.
template <class Sums, class Down>
HWY_INLINE void writeBytes(const Sums& sums, const Down* total, int64_t values, uint8_t* to) {
#if HWY_TARGET != HWY_STATIC_TARGET
  if constexpr (std::is_same_v<Sums, RoundedSums>) {
    namespace hn = hwy::HWY_NAMESPACE;
    for (int64_t i = 0; i < values; i += kWideSize) {
      const auto sum = hn::ShiftRightSame(hn::Load(Wide(), total + i), sums.down);
      hn::Store(hn::DemoteTo(WideBytes(), sum), WideBytes(), to + i);
    }
    return;
  }
#endif
  for (int64_t i = 0; i < values; ++i) to[i] = sums.result(total[i]);
}

template <class Sums, int kChannels>
void resizeAs(const Tile& tile, const ThreadPool& pool, ResizeMemory* memory) {
  using Down = typename Sums::Down;
  const Sums sums(tile.numbers);
  const ImagePlan& plan = *tile.plan;
  const int64_t height = tile.end[0] - tile.begin[0];
  const int64_t values = (tile.end[1] - tile.begin[1]) * kChannels;
  auto* totals = reinterpret_cast<Down*>(memory->sums);
  const auto* middle = reinterpret_cast<const typename Sums::Middle*>(memory->middle);
  std::fill_n(totals, height * kTileValues, sums.firstDown());
  const Range columns = neededBy(tile.columns.ranges, tile.begin[1], tile.end[1]);
  const TapRange* ranges = tile.rows.ranges;
  // The rows that are needed, in order: 16 at a time.
  int64_t next = tile.begin[0];  // the output row whose rows come next
  int64_t row = ranges[next].first;
  bool first = true;
  while (next < tile.end[0]) {
    if (!first && pool.stops()) return;
    first = false;
    int64_t numbers[kLanes];
    const uint8_t* rows[kLanes];
    int count = 0;
    while (count < kLanes && next < tile.end[0]) {
      if (row >= ranges[next].first + ranges[next].count) {
        if (++next < tile.end[0]) row = std::max(row, ranges[next].first);
        continue;
      }
      numbers[count] = row;
      rows[count++] = plan.pixels + clampIndex(row, 0, plan.in[0] - 1) * plan.stride[0];
      ++row;
    }
    if (count == 0) break;
    for (int r = count; r < kLanes; ++r) rows[r] = rows[0];
    sumAcross<Sums, kChannels>(tile, sums, rows, columns, memory);
    for (int64_t y = 0; y < height; ++y) {
      const TapRange range = ranges[tile.begin[0] + y];
      const int32_t* weights = tile.rows.weights + (tile.begin[0] + y) * tile.row_room;
      // Numbers increase: rows begin .. end - 1 of the block belong to the output row.
      int begin = 0;
      while (begin < count && numbers[begin] < range.first) ++begin;
      int end = begin;
      while (end < count && numbers[end] < range.first + range.count) ++end;
      addBlock(sums, weights, range.first, numbers, middle, begin, end, values,
               totals + y * kTileValues);
    }
  }
  for (int64_t y = 0; y < height; ++y) {
    writeBytes(sums, totals + y * kTileValues, values, memory->bytes + y * kTileValues);
  }
}

template <class Sums>
void resizeWith(const Tile& tile, const ThreadPool& pool, ResizeMemory* memory) {
  switch (tile.channels) {
    case 1: return resizeAs<Sums, 1>(tile, pool, memory);
    case 3: return resizeAs<Sums, 3>(tile, pool, memory);
    default: return resizeAs<Sums, 4>(tile, pool, memory);
  }
}

void resizeTile(const Tile& tile, const ThreadPool& pool, ResizeMemory* memory) {
  switch (tile.sums) {
    case ResizeSums::kRounded: return resizeWith<RoundedSums>(tile, pool, memory);
    case ResizeSums::kExact: return resizeWith<ExactSums>(tile, pool, memory);
    case ResizeSums::kLinear: return resizeWith<LinearSums>(tile, pool, memory);
    case ResizeSums::kLinearExact: return resizeWith<LinearExactSums>(tile, pool, memory);
    case ResizeSums::kBlocks: return resizeWith<BlocksSums>(tile, pool, memory);
    default: return resizeWith<CellsSums>(tile, pool, memory);
  }
}

int64_t colorRow(const ColorSteps& steps, int begin, int end, float mean, int channels,
                 int64_t count, uint8_t* pixels) {
  return channels == 3 ? colorPixels<3>(steps, begin, end, mean, count, pixels)
                       : colorPixels<1>(steps, begin, end, mean, count, pixels);
}

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace rbc::cpu {

ResizeTile resizeTileFor(SimdLevel level) { return RBC_AT_LEVEL(level, resizeTile); }
ColorRow colorRowFor(SimdLevel level) { return RBC_AT_LEVEL(level, colorRow); }

int64_t columnsOfTile(const ResizeAxis& axis, int channels) {
  const int64_t most = kTileValues / channels;
  const double room = static_cast<double>(kBlockColumns / channels) - 2 * axis.support - 4;
  const auto fit = static_cast<int64_t>(room / axis.scale);
  return std::clamp<int64_t>(fit, 1, most);
}

}  // namespace rbc::cpu

#endif  // HWY_ONCE
