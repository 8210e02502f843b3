// What an accumulator has summed up, in memory of the host: between passes, to export and to tell
// results, all backends' accumulators come here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "statistics_problem.h"

namespace rbc {

inline constexpr int32_t kMinBucketBits = 8;
inline constexpr int32_t kMaxBucketBits = 20;
inline constexpr int64_t kMaxAccumulatorChannels = int64_t{1} << 24;
inline constexpr int32_t kBitsPerPass = 16;  // that a pass after the first resolves

// The values of a channel that share the leading bits of their key.
struct RankBucket {
  uint64_t prefix;
  int64_t before;  // how many values are less
  int64_t count;
};

inline bool operator==(const RankBucket& one, const RankBucket& other) {
  return one.prefix == other.prefix && one.before == other.before && one.count == other.count;
}

// What an accumulator is for, and how far it is.
struct AccumulatorKind {
  int64_t channels = 0;
  int32_t ddof = 0;
  int32_t bucket_bits = 16;
  int32_t num_levels = 0;
  double levels[kMaxLevels] = {};
  bool has_dtype = false;
  DType dtype = DType::F32;  // if it is known
  int32_t pass = 1;
  bool resolved = false;  // the buckets in `buckets` are values: there are no more passes

  int32_t passesAfterFirst() const;
  // Leading bits of the keys that are known when this pass begins, and that it tells.
  int32_t knownBits() const;
  int32_t tableBits() const;
  int32_t shift() const { return keyWidth(dtype) - knownBits() - tableBits(); }
  int64_t tableSize() const { return tableBits() > 0 ? int64_t{1} << tableBits() : 0; }
};

struct AccumulatorData {
  AccumulatorKind kind;
  std::vector<Moments> moments;  // of the first pass
  // Of later passes: the buckets that hold values which the levels need, by channel; and what this
  // pass has seen of each channel: finite values, then others.
  std::vector<RankBucket> buckets;
  std::vector<int64_t> first_bucket;
  std::vector<int64_t> seen;
  std::vector<int64_t> tables;  // of the channels, later of the buckets; empty without levels

  int64_t numTables() const {
    return kind.pass == 1 ? kind.channels : static_cast<int64_t>(buckets.size());
  }
};

// An empty one.
AccumulatorData emptyData(const AccumulatorKind& kind);

// Fails unless a pass after the first has counted what the first one did.
void requireComplete(const AccumulatorData& data);

// The buckets that a complete pass tells, of as many bits more.
AccumulatorData afterPass(const AccumulatorData& data);

// The level's quantile of a channel with values; after a complete pass.
double quantileOf(const AccumulatorData& resolved, int64_t channel, double level);

// ---- as bytes: words of 64 bits, the least significant byte first; one state has one form -----------

std::vector<uint64_t> toWords(const AccumulatorData& data);

// Fails with INVALID_ARGUMENT or UNSUPPORTED for what toWords() has not made, unless somebody has made
// it up with the right checksum: then all that is used as a place or a size is in range.
AccumulatorData fromWords(const uint64_t* words, size_t count);

// A number for what later passes have to agree in: all but what the pass itself has counted.
uint64_t digestOf(const AccumulatorData& data);

}  // namespace rbc
