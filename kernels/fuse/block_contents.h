// The shared memory of blocks of narrow and of mixed fusion: its contents and their sizes, in plain
// C++.
#pragma once

#include <cstdint>

#include "ceil_div.h"
#include "dtype.h"
#include "fuse/fuse_rows_instances.h"
#include "fuse_problem.h"
#include "runtime/launch_device.h"

namespace rbc::cuda {

// ---- Room for whole rows ------------------------------------------------------------------------

inline constexpr int kWordBytes = 16;

// The bytes of a block such that `blocks` of them fit on a multiprocessor: a multiprocessor has the
// memory that one block may request, plus CUDA's own part per block.
inline int64_t sharedBudget(const LaunchDevice& device, int64_t blocks) {
  constexpr int64_t kTaken = 1024;
  return (device.block_memory + kTaken) / blocks - kTaken;
}

inline int64_t wholeWords(int64_t bytes) { return ceilDiv(bytes, kWordBytes) * kWordBytes; }

// The bytes of a row that may begin anywhere in a word.
inline int64_t slotBytes(int64_t count, DType dtype) {
  return wholeWords(count * sizeOf(dtype)) + kWordBytes;
}

// The most times that the search of shared_recordings.cuh handles.
inline constexpr int32_t kMaxSearched = 8022;

// ---- Blocks of narrow fusion: a group of streams, one warp each ---------------------------------

namespace narrow_streams {

inline constexpr int kWarp = 32;
inline constexpr int kQueries = 4;   // per thread at a time
inline constexpr int kChannels = 2;  // per stream, at most

// Blocks that must fit on a multiprocessor, so that one copies while the other searches, and the
// maximum number of warps per block. Times of 8 bytes need more registers.
inline constexpr int kBlocksWanted = 2;
constexpr int mostWarps(int time_bytes) { return time_bytes > 4 ? 12 : 16; }

// There are kernels for the dtypes of training, which come first.
inline constexpr int kNumPairs = 5;
static_assert(rows::kDTypePairs[kNumPairs - 1].least == rows::DTypes::kTraining &&
              rows::kDTypePairs[kNumPairs].least != rows::DTypes::kTraining);

// Queries that a warp processes at a time, and the pitch of a column in a block's tile: threads of
// a warp that write some rows of it then read different banks.
inline constexpr int kTile = kWarp * kQueries;
inline constexpr int kColumn = kTile + 4;

inline int64_t timesSlot(const FuseProblem& p, const FuseStream& s) {
  return slotBytes(s.samples, p.time_dtype);
}
inline int64_t valuesSlot(const FuseStream& s) {
  return slotBytes(s.samples * s.channels, s.values_dtype);
}

// A tile of values, one of the mask, and the slots of all rows.
struct Contents {
  int64_t streams;
  int64_t columns;
  int64_t slots;

  void add(const FuseProblem& p, const FuseStream& s) {
    ++streams;
    columns += s.channels;
    slots += timesSlot(p, s) + valuesSlot(s);
  }
  int64_t rowBytes(const FuseProblem& p) const { return columns * sizeOf(p.out_dtype); }
  int64_t maskAt(const FuseProblem& p) const { return wholeWords(rowBytes(p) * kColumn); }
  int64_t slotsAt(const FuseProblem& p) const {
    return maskAt(p) + (p.valid != nullptr ? wholeWords(streams * kColumn) : 0);
  }
  int64_t bytes(const FuseProblem& p) const { return slotsAt(p) + slots; }
  bool fits(const FuseProblem& p, const LaunchDevice& device) const {
    return streams <= mostWarps(sizeOf(p.time_dtype)) &&
           bytes(p) <= sharedBudget(device, kBlocksWanted);
  }
};

inline Contents contentsOf(const FuseProblem& p, int first, int end) {
  Contents contents = {};
  for (int n = first; n < end; ++n) contents.add(p, p.streams[n]);
  return contents;
}

}  // namespace narrow_streams

// ---- Blocks of mixed fusion: one stream ---------------------------------------------------------

namespace mixed_streams {

inline constexpr int kWarp = 32;
inline constexpr int kMostThreads = 512;  // per block; one query each
// Per multiprocessor, so that one block copies while the other searches.
inline constexpr int kBlocksWanted = 2;

// Streams per launch, and segments of channels: enough for a robot. They are part of the arguments.
inline constexpr int kStreams = 16;
inline constexpr int kSegments = 32;

// A channel's normalization, as one word.
struct alignas(8) Affine {
  float shift;
  float scale;
};

// The pitch of rows in a tile: odd, so that a warp that writes a column writes to different banks.
RBC_HD int32_t pitchOf(int32_t channels) { return channels | 1; }

// The contents of a stream's block, in this order.
struct Contents {
  int64_t times;
  int64_t values;
  int64_t affine;
  int64_t tiles;

  int64_t copied() const { return times + values; }
  int64_t bytes() const { return copied() + affine + tiles; }
};

inline Contents contentsOf(const FuseProblem& p, const FuseStream& s, int64_t threads) {
  const int64_t pitch = pitchOf(static_cast<int32_t>(s.channels));
  return {slotBytes(s.samples, p.time_dtype), slotBytes(s.samples * s.channels, s.values_dtype),
          wholeWords(s.channels * int64_t{sizeof(Affine)}),
          wholeWords(threads * pitch * sizeOf(p.out_dtype))};
}

}  // namespace mixed_streams

}  // namespace rbc::cuda
