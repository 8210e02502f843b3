// A tile of a resized image, and the colours of a row: what each SIMD level computes.
#pragma once

#include <cstdint>

#include "images_problem.h"
#include "resize_sums.h"
#include "runtime/simd.h"
#include "thread_pool.h"

namespace rbc::cpu {

inline constexpr int kTileRows = 16;        // rows of a tile, and lanes of a block
inline constexpr int kTileValues = 336;     // columns times channels of a tile
inline constexpr int kBlockColumns = 1024;  // times channels, that a block has room for

// Less than 64 KiB.
struct ResizeMemory {
  // Pixels of 16 rows, so that a vector has the same value of all rows: [column * C + c][16].
  alignas(64) uint8_t block[kBlockColumns * kTileRows];
  alignas(64) int32_t lanes[kMaxImageChannels * kTileRows];
  // Sums along the rows of a block, [16][columns * C], of bytes, i32 or f32.
  alignas(64) int32_t middle[kTileRows * kTileValues];
  // Sums along the columns: i32 or f32 of all rows, i64 of half of them.
  alignas(64) int32_t sums[kTileRows * kTileValues];
  alignas(64) uint8_t bytes[kTileRows * kTileValues];  // the result, [rows][columns * C]
};

struct Tile {
  const ImagePlan* plan;
  ResizeSums sums;
  SumNumbers numbers;
  int channels;
  AxisTable rows;
  AxisTable columns;
  int64_t row_room;  // weights of an output pixel
  int64_t column_room;
  int64_t begin[2];  // the rows and columns of the image, before it is flipped
  int64_t end[2];
  bool colored;  // pixels are read with colours
  float mean;    // of their contrast
};

// Writes the bytes of a tile; gives up if the call is interrupted.
using ResizeTile = void (*)(const Tile& tile, const ThreadPool& pool, ResizeMemory* memory);
ResizeTile resizeTileFor(SimdLevel level);

// Steps begin .. end - 1 of `count` pixels side by side. Returns the sum of their grays after these.
using ColorRow = int64_t (*)(const ColorSteps& steps, int begin, int end, float mean, int channels,
                             int64_t count, uint8_t* pixels);
ColorRow colorRowFor(SimdLevel level);

// The most rows of a tile with such sums.
constexpr int64_t rowsOfTile(ResizeSums sums) {
  return sums == ResizeSums::kExact || sums == ResizeSums::kBlocks ? kTileRows / 2 : kTileRows;
}

// The columns of a tile, so that it usually fits in a block.
int64_t columnsOfTile(const ResizeAxis& axis, int channels);

}  // namespace rbc::cpu
