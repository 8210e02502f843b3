// Sums along 16 values of four rows, and along the fours of rows below each other, by vpdpbusd.

#include "images/byte_products.h"

#if RBC_HAS_BYTE_PRODUCTS

// GCC 12 warns of its own header.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <algorithm>

namespace rbc::cpu {
namespace {

constexpr int kRows = 4;
// Half a unit of a sum whose parts are shifted by 8 bits twice.
constexpr int32_t kHalf = 1 << (kFilterBits - 1 - 16);

RBC_BYTE_PRODUCTS_INLINE __m512i load(const void* from) { return _mm512_loadu_si512(from); }

// The bytes at some places of the 64 or 128 that follow.
template <bool kWide>
RBC_BYTE_PRODUCTS_INLINE __m512i pick(const uint8_t* from, __m512i places) {
  if constexpr (kWide) return _mm512_permutex2var_epi8(load(from), places, load(from + 64));
  return _mm512_permutexvar_epi8(places, load(from));
}

// The bytes of four vectors of sums: a block of 16 bytes has four from each vector.
RBC_BYTE_PRODUCTS_INLINE __m512i packSums(const __m512i (&sum)[4]) {
  __m512i whole[4];
  for (int i = 0; i < 4; ++i) whole[i] = _mm512_srai_epi32(sum[i], kFilterBits);
  return _mm512_packus_epi16(_mm512_packs_epi32(whole[0], whole[1]),
                             _mm512_packs_epi32(whole[2], whole[3]));
}

RBC_BYTE_PRODUCTS_INLINE void storeRows(const __m512i (&sum)[kRows], uint8_t* to) {
  const __m512i rows_together = _mm512_set4_epi32(0x0f0b0703, 0x0e0a0602, 0x0d090501, 0x0c080400);
  _mm512_storeu_si512(to, _mm512_shuffle_epi8(packSums(sum), rows_together));
}

// The sums of a vector of values in fours of rows, [value][row] each. It has kFours fours of
// weights, and the bytes of them stay in registers.
template <bool kWide, int kFours, int kSlots>
RBC_BYTE_PRODUCTS_INLINE void sumValues(const ColumnVector& vector, const FourColumns* columns,
                                        const uint8_t* const* rows, uint8_t* const* to) {
  __m512i bytes[kFours][kSlots][kRows];
  for (int j = 0; j < kFours; ++j) {
    const __m512i places = load(columns[j].places);
    for (int slot = 0; slot < kSlots; ++slot) {
      for (int r = 0; r < kRows; ++r) {
        bytes[j][slot][r] = pick<kWide>(rows[slot * kRows + r] + vector.start[j], places);
      }
    }
  }
  __m512i sum[kSlots][kRows];
  for (auto& slot : sum) {
    for (__m512i& each : slot) each = _mm512_set1_epi32(kHalf);
  }
  for (int part = 0; part < kWeightParts; ++part) {
    for (auto& slot : sum) {
      for (int r = 0; r < kRows && part > 0; ++r) slot[r] = _mm512_slli_epi32(slot[r], 8);
    }
    for (int j = 0; j < kFours; ++j) {
      const __m512i weights = load(columns[j].weights[part]);
      for (int slot = 0; slot < kSlots; ++slot) {
        for (int r = 0; r < kRows; ++r) {
          sum[slot][r] = _mm512_dpbusd_epi32(sum[slot][r], bytes[j][slot][r], weights);
        }
      }
    }
  }
  for (int slot = 0; slot < kSlots; ++slot) storeRows(sum[slot], to[slot]);
}

// The same of any number of fours of weights, and one of rows.
template <bool kWide>
RBC_BYTE_PRODUCTS_INLINE void sumLongValues(const ColumnVector& vector, const FourColumns* columns,
                                            const uint8_t* const* rows, uint8_t* to) {
  __m512i parts[kWeightParts][kRows];
  for (int part = 0; part < kWeightParts; ++part) {
    const __m512i first = _mm512_set1_epi32(part == 0 ? kHalf : 0);
    for (int r = 0; r < kRows; ++r) parts[part][r] = first;
  }
  for (int32_t j = 0; j < vector.fours; ++j) {
    const __m512i places = load(columns[j].places);
    __m512i bytes[kRows];
    for (int r = 0; r < kRows; ++r) bytes[r] = pick<kWide>(rows[r] + vector.start[j], places);
    for (int part = 0; part < kWeightParts; ++part) {
      const __m512i weights = load(columns[j].weights[part]);
      for (int r = 0; r < kRows; ++r) {
        parts[part][r] = _mm512_dpbusd_epi32(parts[part][r], bytes[r], weights);
      }
    }
  }
  __m512i sum[kRows];
  for (int r = 0; r < kRows; ++r) {
    sum[r] = parts[0][r];
    for (int part = 1; part < kWeightParts; ++part) {
      sum[r] = _mm512_add_epi32(_mm512_slli_epi32(sum[r], 8), parts[part][r]);
    }
  }
  storeRows(sum, to);
}

// The sums along one or two fours of rows, [value][row] each.
template <bool kWide, int kSlots>
RBC_BYTE_PRODUCTS void sumRows(const PackedTile& tile, const uint8_t* const* rows, int64_t ahead,
                               uint8_t* const* slots) {
  const ByteTable& table = tile.table;
  const int64_t room = table.form->column_room;
  const ColumnVector* vector = table.vectors + tile.first_vector;
  const FourColumns* columns = table.columns + tile.first_vector * room;
  uint8_t* to[kSlots];
  std::copy_n(slots, kSlots, to);
  for (int64_t v = 0; v < tile.vectors; ++v, ++vector, columns += room) {
    for (int r = 0; r < kSlots * kRows; ++r) {
      _mm_prefetch(rows[r] + vector->start[0] + ahead, _MM_HINT_T0);
    }
    if (vector->fours == 1) {
      sumValues<kWide, 1, kSlots>(*vector, columns, rows, to);
    } else if (vector->fours == 2) {
      sumValues<kWide, 2, kSlots>(*vector, columns, rows, to);
    } else {
      for (int slot = 0; slot < kSlots; ++slot) {
        const uint8_t* const* four = rows + slot * kRows;
        if (vector->fours == 3) {
          sumValues<kWide, 3, 1>(*vector, columns, four, to + slot);
        } else {
          sumLongValues<kWide>(*vector, columns, four, to[slot]);
        }
      }
    }
    for (uint8_t*& next : to) next += 64;
  }
}

// The sums of a row of the output along its fours of rows.
template <int kFours>
RBC_BYTE_PRODUCTS_INLINE void sumFours(const uint8_t* const* fours, const int32_t* weights,
                                       int count, int64_t blocks, uint8_t* to) {
  constexpr int kMost = kFours > 0 ? kFours : kMostFours + 1;
  const int n = kFours > 0 ? kFours : count;
  const __m512i in_order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  __m512i weight[kWeightParts][kMost];
  for (int k = 0; k < n; ++k) {
    for (int part = 0; part < kWeightParts; ++part) {
      weight[part][k] = _mm512_set1_epi32(weights[k * kWeightParts + part]);
    }
  }
  for (int64_t block = 0; block < blocks; ++block, to += kPackedBlock) {
    __m512i sum[4];
    for (__m512i& each : sum) each = _mm512_set1_epi32(kHalf);
    for (int part = 0; part < kWeightParts; ++part) {
      for (int i = 0; i < 4 && part > 0; ++i) sum[i] = _mm512_slli_epi32(sum[i], 8);
      for (int k = 0; k < n; ++k) {
        const uint8_t* from = fours[k] + block * 4 * kPackedBlock;
        for (int i = 0; i < 4; ++i) {
          sum[i] = _mm512_dpbusd_epi32(sum[i], load(from + 64 * i), weight[part][k]);
        }
      }
    }
    _mm512_storeu_si512(to, _mm512_permutexvar_epi32(in_order, packSums(sum)));
  }
}

RBC_BYTE_PRODUCTS void sumRow(const uint8_t* const* fours, const int32_t* weights, int count,
                              int64_t blocks, uint8_t* to) {
  switch (count) {
    case 1: return sumFours<1>(fours, weights, count, blocks, to);
    case 2: return sumFours<2>(fours, weights, count, blocks, to);
    case 3: return sumFours<3>(fours, weights, count, blocks, to);
    default: return sumFours<0>(fours, weights, count, blocks, to);
  }
}

}  // namespace

RBC_BYTE_PRODUCTS void resizePacked(const PackedTile& tile, PackedMemory* memory) {
  const ImagePlan& plan = *tile.plan;
  const ByteTable& table = tile.table;
  const bool wide = table.form->wide != 0;
  const int64_t blocks = (tile.vectors + 3) / 4;
  const int64_t last = int64_t{table.rows[tile.last].first} + table.rows[tile.last].fours;
  const auto slotOf = [&](int64_t four) {
    return memory->ring + (four & (table.form->ring_slots - 1)) * blocks * 4 * kPackedBlock;
  };
  for (int64_t y = tile.begin; y < tile.end; ++y) {
    const RowFours row = table.rows[y];
    memory->next = std::max<int64_t>(memory->next, row.first);
    while (memory->next < int64_t{row.first} + row.fours) {
      const uint8_t* rows[2 * kRows];
      // Rows after the last one have weights of 0.
      for (int64_t r = 0; r < 2 * kRows; ++r) {
        const int64_t number = std::min(kRows * memory->next + r, plan.in[0] - 1);
        rows[r] = plan.pixels + number * plan.stride[0];
      }
      // Two fours at once share what is loaded of the table, if another row needs the second.
      const int count = memory->next + 1 < last ? 2 : 1;
      uint8_t* const slots[2] = {slotOf(memory->next), slotOf(memory->next + 1)};
      const int64_t ahead = count * kRows * plan.stride[0];
      const auto sum = count == 2 ? (wide ? sumRows<true, 2> : sumRows<false, 2>)
                                  : (wide ? sumRows<true, 1> : sumRows<false, 1>);
      sum(tile, rows, ahead, slots);
      memory->next += count;
    }
    const uint8_t* fours[kMostFours + 1];
    for (int k = 0; k < row.fours; ++k) fours[k] = slotOf(row.first + k);
    sumRow(fours, table.weights + y * table.form->row_room * kWeightParts, row.fours, blocks,
           memory->bytes + (y - tile.begin) * kPackedValues);
  }
}

}  // namespace rbc::cpu

#endif  // RBC_HAS_BYTE_PRODUCTS
