// The state of an accumulator in host memory. All backends use it between passes, for exports and
// for results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "statistics_problem.h"

namespace rbc {

inline constexpr int32_t kMinBucketBits = 8;
inline constexpr int32_t kMaxBucketBits = 20;
inline constexpr int64_t kMaxAccumulatorChannels = int64_t{1} << 24;
inline constexpr int32_t kBitsPerPass = 16;  // resolved by a pass after the first

// The values of a channel that share the leading bits of their key.
struct RankBucket {
  uint64_t prefix;
  int64_t before;  // the number of smaller values
  int64_t count;
};

inline bool operator==(const RankBucket& one, const RankBucket& other) {
  return one.prefix == other.prefix && one.before == other.before && one.count == other.count;
}

// The settings of an accumulator, and its pass.
struct AccumulatorKind {
  int64_t channels = 0;
  int32_t ddof = 0;
  int32_t bucket_bits = 16;
  int32_t num_levels = 0;
  double levels[kMaxLevels] = {};
  bool has_dtype = false;
  DType dtype = DType::F32;  // if has_dtype
  int32_t pass = 1;
  bool resolved = false;  // each bucket is a single value: no more passes follow

  int32_t passesAfterFirst() const;
  // Leading bits of the keys: those known when this pass begins, and those that it resolves.
  int32_t knownBits() const;
  int32_t tableBits() const;
  int32_t shift() const { return keyWidth(dtype) - knownBits() - tableBits(); }
  int64_t tableSize() const { return tableBits() > 0 ? int64_t{1} << tableBits() : 0; }
};

struct AccumulatorData {
  AccumulatorKind kind;
  std::vector<Moments> moments;  // of the first pass
  // For later passes: the buckets with values that the levels need, by channel; and the counts of
  // this pass for each channel: finite values, then others.
  std::vector<RankBucket> buckets;
  std::vector<int64_t> first_bucket;
  std::vector<int64_t> seen;
  std::vector<int64_t> tables;  // per channel, later per bucket; empty without levels

  int64_t numTables() const {
    return kind.pass == 1 ? kind.channels : static_cast<int64_t>(buckets.size());
  }
};

// Returns an empty state.
AccumulatorData emptyData(const AccumulatorKind& kind);

// Fails unless a pass after the first has the same counts as the first.
void requireComplete(const AccumulatorData& data);

// Returns the buckets that a complete pass resolves, with that many more bits.
AccumulatorData afterPass(const AccumulatorData& data);

// Returns the quantile of a level, for a channel with values, after a complete pass.
double quantileOf(const AccumulatorData& resolved, int64_t channel, double level);

// ---- as bytes: words of 64 bits, the least significant byte first; one state has one form
// -----------

std::vector<uint64_t> toWords(const AccumulatorData& data);

// Fails with INVALID_ARGUMENT or UNSUPPORTED for words that toWords() has not written. Forged words
// with a correct checksum may pass, but then every index and size in them is in range.
AccumulatorData fromWords(const uint64_t* words, size_t count);

// Returns a digest of the part of the state in which merged accumulators must agree: everything
// except the counts of the current pass.
uint64_t digestOf(const AccumulatorData& data);

}  // namespace rbc
