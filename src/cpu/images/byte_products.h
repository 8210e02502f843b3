// Resizes by products of bytes: AVX-512 with VBMI and VNNI gathers any four pixels of a row into a
// lane, and multiplies them by four bytes of weights at once. Weights of up to 24 bits are three
// bytes. The sums equal RoundedSums, bit for bit: integers are exact in any order.
//
// For pixels that are side by side, in bytes that are side by side, and few weights.
#pragma once

#include <cstdint>

#include "images_problem.h"
#include "resize_tile.h"
#include "runtime/simd.h"
#include "runtime/simd_targets.h"

// Whether this build has the instructions; functions that use them have the attribute.
#define RBC_HAS_BYTE_PRODUCTS RBC_HAS_AVX512
#define RBC_BYTE_PRODUCTS __attribute__((target("avx512f,avx512bw,avx512vbmi,avx512vnni")))
#define RBC_BYTE_PRODUCTS_INLINE RBC_BYTE_PRODUCTS __attribute__((always_inline)) inline

namespace rbc::cpu {

// Whether the machine has them, at this level.
bool hasByteProducts(SimdLevel level);

inline constexpr int kWeightParts = 3;         // bytes of a weight
inline constexpr int kVectorValues = 16;       // values of a row that a vector has
inline constexpr int kMostFours = 8;           // fours of weights of a value
inline constexpr int kRingSlots = 16;          // fours of rows that are kept
inline constexpr int64_t kPackedValues = 768;  // values of a row of a tile: whole blocks and pixels
inline constexpr int64_t kPackedBlock = 64;    // values that are packed at once
inline constexpr int64_t kPackedPad = 3 * kPackedBlock;  // bytes that blocks of pixels may exceed

// Four pixels of each of the 16 values of a vector: lane i has bytes 4 i to 4 i + 3.
struct FourColumns {
  uint8_t places[64];                // the places of the bytes in what is loaded
  int8_t weights[kWeightParts][64];  // the highest part first
};

// The 16 values of a vector: which fours they need, and where the bytes of each begin in a row.
struct ColumnVector {
  int32_t fours;
  int32_t start[kMostFours];
};

// The rows of an output row: `fours` fours of rows from row 4 `first`.
struct RowFours {
  int32_t first;
  int32_t fours;
};

// The weights of an image in bytes.
struct ByteTable {
  struct Form {
    int32_t suits;        // whether the image can be made by products of bytes
    int32_t wide;         // whether loads are of 128 bytes instead of 64
    int32_t ring_slots;   // a power of two
    int32_t column_room;  // fours of a vector that there is room for
    int32_t row_room;     // fours of an output row
  };
  Form* form;
  ColumnVector* vectors;
  FourColumns* columns;  // [vector][column_room]
  RowFours* rows;        // of the rows of the image
  int32_t* weights;      // [row][row_room][part], four bytes each
};

// Whether frames suit products of bytes; and the fours that the weights of any image may need.
bool suitsByteProducts(const ImagesProblem& p);
int64_t mostFours(const ImagesProblem& p);
inline int64_t columnVectors(const ImagesProblem& p) {
  return (p.out_width * p.channels + kVectorValues - 1) / kVectorValues;
}

// Fills a table from the weights of an image, if they suit.
void fillByteTable(const ImagesProblem& p, const ImagePlan& plan, const AxisTable& rows,
                   const AxisTable& columns, const ByteTable& table);

// Less than 64 KiB.
struct PackedMemory {
  // Sums along rows, as bytes: [four of rows][value][row].
  alignas(64) uint8_t ring[kRingSlots * 4 * kPackedValues];
  int64_t next;                                          // the four of rows that comes next
  alignas(64) uint8_t before[kPackedPad];                // which blocks of pixels may begin in
  alignas(64) uint8_t bytes[kTileRows * kPackedValues];  // the result, [row][value]
  alignas(64) uint8_t after[kPackedPad];
};

// Rows begin .. end - 1 of some columns of an image before it is flipped, at most kTileRows. Rows
// come in order; the first time, memory->next is 0.
struct PackedTile {
  const ImagePlan* plan;
  ByteTable table;
  int64_t begin;
  int64_t end;
  int64_t last;  // the last row of all calls
  int64_t first_vector;
  int64_t vectors;
};
#if RBC_HAS_BYTE_PRODUCTS
void resizePacked(const PackedTile& tile, PackedMemory* memory);
#endif

// Rows of pixels that become values of 1, 2 or 4 bytes, each channel by its own table.
struct ValueRows {
  const uint8_t* pixels;  // of PackedMemory::bytes
  int64_t pitch;
  int64_t rows;
  int64_t count;       // pixels of a row
  int channels;        // 1 or 3
  bool reversed;       // `out` is where the last pixel of a row comes
  void* out;           // the values of a channel are side by side
  int64_t row_stride;  // in elements
  int64_t channel_stride;
  const uint8_t* parts;  // [channel][byte of a value][256]
};
#if RBC_HAS_BYTE_PRODUCTS
void putByteValues(const ValueRows& rows, int value_bytes);
#endif

}  // namespace rbc::cpu
