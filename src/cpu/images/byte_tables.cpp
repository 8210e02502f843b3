// The weights of an image as bytes.

#include <algorithm>
#include <cstring>

#include "images/byte_products.h"

namespace rbc::cpu {
namespace {

constexpr int64_t kLoad = 64;  // bytes

int64_t foursOf(int64_t count) { return (count + 3) / 4; }

// The parts of four weights, as words.
struct FourWeights {
  uint32_t part[kWeightParts];
};

// Weights with 22 bits of fraction: w = parts[0] 2^16 + parts[1] 2^8 + parts[2]. Returns false for
// one that has more than three signed bytes.
bool addWeight(int32_t w, int place, FourWeights* four) {
  for (int part = kWeightParts - 1; part >= 0; --part) {
    const auto low = static_cast<int8_t>(w & 255);
    four->part[part] |= static_cast<uint32_t>(static_cast<uint8_t>(low)) << (8 * place);
    w = (w - low) >> 8;
  }
  return w == 0;
}

// Weights begin .. begin + 3 of an output pixel; those that it does not have are 0.
bool fourWeights(const int32_t* weights, int64_t begin, int64_t count, int32_t unit,
                 FourWeights* four) {
  *four = {};
  bool fits = true;
  for (int64_t j = std::max<int64_t>(begin, 0); j < std::min(begin + 4, count); ++j) {
    fits = addWeight(weights[j] * unit, static_cast<int>(j - begin), four) && fits;
  }
  return fits;
}

// The pixels of a vector.
struct Pixels {
  int64_t begin;
  int64_t end;
};

Pixels pixelsOf(int64_t vector, int64_t size, int channels) {
  const int64_t first = vector * kVectorValues;
  return {first / channels, std::min(size, (first + kVectorValues + channels - 1) / channels)};
}

// The extent of the bytes of a four of a vector.
struct Extent {
  int64_t begin;
  int64_t end;
};

Extent extentOf(const AxisTable& table, const Pixels& pixels, int64_t four, int channels) {
  Extent extent = {INT64_MAX, 0};
  for (int64_t x = pixels.begin; x < pixels.end; ++x) {
    const TapRange range = table.ranges[x];
    if (4 * four >= range.count) continue;
    extent.begin = std::min(extent.begin, (range.first + 4 * four) * channels);
    const int64_t count = std::min<int64_t>(range.count, 4 * four + 4);
    extent.end = std::max(extent.end, (range.first + count) * channels);
  }
  return extent;
}

bool fillColumns(const ImagePlan& plan, const AxisTable& axis, int64_t room, int channels,
                 const ByteTable& table) {
  ByteTable::Form& form = *table.form;
  const int64_t size = plan.size[1];
  const int64_t vectors = (size * channels + kVectorValues - 1) / kVectorValues;
  for (int64_t v = 0; v < vectors; ++v) {
    const Pixels pixels = pixelsOf(v, size, channels);
    int64_t fours = 0;
    for (int64_t x = pixels.begin; x < pixels.end; ++x) {
      fours = std::max(fours, foursOf(axis.ranges[x].count));
    }
    if (fours > form.column_room) return false;
    table.vectors[v].fours = static_cast<int32_t>(fours);
    for (int64_t j = 0; j < fours; ++j) {
      const Extent extent = extentOf(axis, pixels, j, channels);
      if (extent.end - extent.begin > 2 * kLoad) return false;
      if (extent.end - extent.begin > kLoad) form.wide = 1;
      table.vectors[v].start[j] = static_cast<int32_t>(extent.begin);
    }
  }
  // Loads end with the row at the latest.
  const int64_t last = plan.in[1] * channels - (form.wide != 0 ? 2 : 1) * kLoad;
  if (last < 0) return false;
  const int32_t unit = 1 << (kFilterBits - *axis.bits);
  bool fits = true;
  for (int64_t v = 0; v < vectors; ++v) {
    const Pixels pixels = pixelsOf(v, size, channels);
    ColumnVector& vector = table.vectors[v];
    for (int64_t j = 0; j < vector.fours; ++j) {
      FourColumns& four = table.columns[v * form.column_room + j];
      std::memset(&four, 0, sizeof four);
      vector.start[j] = std::min(vector.start[j], static_cast<int32_t>(last));
      for (int64_t x = pixels.begin; x < pixels.end; ++x) {
        const TapRange range = axis.ranges[x];
        if (4 * j >= range.count) continue;
        FourWeights weights;
        fits = fourWeights(axis.weights + x * room, 4 * j, range.count, unit, &weights) && fits;
        for (int c = 0; c < channels; ++c) {
          const int64_t lane = x * channels + c - v * kVectorValues;
          if (lane < 0 || lane >= kVectorValues) continue;
          const int64_t begin = (range.first + 4 * j) * channels + c - vector.start[j];
          // Weights of 0 have some place.
          for (int t = 0; t < 4; ++t) {
            four.places[4 * lane + t] =
                static_cast<uint8_t>((begin + t * channels) & (2 * kLoad - 1));
          }
          for (int part = 0; part < kWeightParts; ++part) {
            std::memcpy(four.weights[part] + 4 * lane, &weights.part[part], 4);
          }
        }
      }
    }
  }
  return fits;
}

bool fillRows(const ImagePlan& plan, const AxisTable& axis, int64_t room, const ByteTable& table) {
  ByteTable::Form& form = *table.form;
  const int32_t unit = 1 << (kFilterBits - *axis.bits);
  bool fits = true;
  int64_t longest = 1;
  for (int64_t y = 0; y < plan.size[0]; ++y) {
    const TapRange range = axis.ranges[y];
    const int64_t first = range.first / 4;
    const int64_t fours = foursOf(range.first + range.count) - first;
    if (fours > form.row_room) return false;
    longest = std::max(longest, fours);
    table.rows[y] = {static_cast<int32_t>(first), static_cast<int32_t>(fours)};
    for (int64_t k = 0; k < fours; ++k) {
      FourWeights weights;
      fits = fourWeights(axis.weights + y * room, 4 * (first + k) - range.first, range.count, unit,
                         &weights) &&
             fits;
      std::memcpy(table.weights + (y * form.row_room + k) * kWeightParts, weights.part,
                  sizeof weights.part);
    }
  }
  // Another four may be made ahead.
  while (form.ring_slots < longest + 1) form.ring_slots *= 2;
  return fits;
}

}  // namespace

bool hasByteProducts(SimdLevel level) {
#if RBC_HAS_BYTE_PRODUCTS
  return level == SimdLevel::kAvx512 && __builtin_cpu_supports("avx512vbmi") &&
         __builtin_cpu_supports("avx512vnni");
#else
  static_cast<void>(level);
  return false;
#endif
}

bool suitsByteProducts(const ImagesProblem& p) {
  if (p.rule == RBC_IMAGES_RULE_EXACT || p.rule == RBC_IMAGES_RULE_OPENCV) return false;
  if (p.colors != nullptr && p.color_first) return false;
  for (int i = 0; i < p.num_arrays; ++i) {
    const int64_t(&stride)[4] = p.arrays[i].stride;
    if (stride[2] != p.channels || (p.channels > 1 && stride[3] != 1)) return false;
  }
  return true;
}

int64_t mostFours(const ImagesProblem& p) {
  const double down = static_cast<double>(p.height) / static_cast<double>(p.out_height);
  const double across = static_cast<double>(p.width) / static_cast<double>(p.out_width);
  const double weights = 2 * radiusOf(p.filter) * std::max({down, across, 1.0});
  return weights > 4 * kMostFours
             ? kMostFours
             : std::min<int64_t>(kMostFours, static_cast<int64_t>(weights) / 4 + 2);
}

void fillByteTable(const ImagesProblem& p, const ImagePlan& plan, const AxisTable& rows,
                   const AxisTable& columns, const ByteTable& table) {
  ByteTable::Form& form = *table.form;
  const auto room = static_cast<int32_t>(mostFours(p));
  form = {0, 0, 1, room, room + 1};
  // Columns that come first have their bytes elsewhere.
  if (plan.transposed) return;
  form.suits = fillRows(plan, rows, tapRoom(axisOf(p, plan, 0)), table) &&
               fillColumns(plan, columns, tapRoom(axisOf(p, plan, 1)), p.channels, table);
}

}  // namespace rbc::cpu
