#include "statistics/accumulator_state.h"
#include "status.h"

#include <algorithm>
#include <cinttypes>

namespace rbc {
namespace {

// Calls visit(rank) for what the levels need of n > 0 sorted values, ascending, each once.
template <class Visitor>
void visitRanks(const AccumulatorKind& kind, int64_t n, Visitor&& visit) {
  int64_t ranks[2 * kMaxLevels] = {};
  int count = 0;
  for (int i = 0; i < kind.num_levels; ++i) {
    const QuantilePlace place = quantilePlace(kind.levels[i], n);
    ranks[count++] = place.lower;
    ranks[count++] = place.upper;
  }
  std::sort(ranks, ranks + count);
  const int64_t* end = std::unique(ranks, ranks + count);
  for (const int64_t* rank = ranks; rank != end; ++rank) visit(*rank);
}

// The bucket of a channel that holds a rank.
const RankBucket& bucketAround(const AccumulatorData& data, int64_t channel, int64_t rank) {
  const RankBucket* begin = data.buckets.data() + data.first_bucket[channel];
  const RankBucket* end = data.buckets.data() + data.first_bucket[channel + 1];
  const RankBucket* after = std::upper_bound(
      begin, end, rank, [](int64_t r, const RankBucket& bucket) { return r < bucket.before; });
  if (after == begin || rank - after[-1].before >= after[-1].count) {
    fail(RBC_STATUS_INTERNAL, "accumulator: no bucket holds rank %" PRId64, rank);
  }
  return after[-1];
}

// Walks through a table: from one rank to a later one.
struct TableWalk {
  const int64_t* table;
  int64_t last;
  int64_t place;
  int64_t before;

  // To the place that holds the rank. The table does not where values changed during an update.
  void walkTo(int64_t rank) {
    while (place < last && rank - before >= table[place]) before += table[place++];
  }
};

// A key of so many leading bits, completed: by what is certain of the dtype's values, else to the
// middle of where they may be.
uint64_t completedKey(const AccumulatorKind& kind, uint64_t prefix, int32_t known) {
  const int width = keyWidth(kind.dtype);
  const int rest = width - known;
  if (rest <= 0 || known <= 0) return prefix;
  const uint64_t zero = uint64_t{1} << (known - 1);
  if (prefix == zero)
    return prefix << rest;  // where 0 is, and numbers so small that it does for them
  const bool negative = prefix < zero;
  const uint64_t magnitude = known >= keyBits(kind.dtype) ? 0 : uint64_t{1} << (rest - 1);
  const uint64_t mask = (uint64_t{1} << rest) - 1;
  return prefix << rest | (negative ? ~magnitude & mask : magnitude);
}

double valueOf(const AccumulatorData& data, int64_t channel, const RankBucket& bucket) {
  const uint64_t key = completedKey(data.kind, bucket.prefix, data.kind.knownBits());
  const double value = keyWidth(data.kind.dtype) == 32
                           ? static_cast<double>(fromValueKey<float>(static_cast<uint32_t>(key)))
                           : fromValueKey<double>(key);
  const Moments& m = data.moments[channel];
  return std::min(std::max(value, smallest(m)), largest(m));
}

}  // namespace

int32_t AccumulatorKind::passesAfterFirst() const {
  if (num_levels == 0 || !has_dtype) return 0;
  return (std::max(keyBits(dtype) - bucket_bits, 0) + kBitsPerPass - 1) / kBitsPerPass;
}

int32_t AccumulatorKind::knownBits() const {
  if (pass == 1) return 0;
  // A first pass may tell more than there is to know.
  return std::max(bucket_bits, std::min(bucket_bits + (pass - 2) * kBitsPerPass, keyBits(dtype)));
}

int32_t AccumulatorKind::tableBits() const {
  if (num_levels == 0 || resolved) return 0;
  return pass == 1 ? bucket_bits : std::min(kBitsPerPass, keyBits(dtype) - knownBits());
}

AccumulatorData emptyData(const AccumulatorKind& kind) {
  AccumulatorData data;
  data.kind = kind;
  data.moments.resize(static_cast<size_t>(kind.channels));
  for (Moments& m : data.moments) clearMoments(&m);
  data.tables.assign(static_cast<size_t>(kind.channels * kind.tableSize()), 0);
  return data;
}

void requireComplete(const AccumulatorData& data) {
  if (data.kind.pass == 1 || data.kind.resolved) return;
  const int64_t size = data.kind.tableSize();
  for (int64_t c = 0; c < data.kind.channels; ++c) {
    const Moments& m = data.moments[c];
    const int64_t* seen = data.seen.data() + c;
    if (seen[0] != m.count || seen[data.kind.channels] != m.nonfinite) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "accumulator: pass %d has seen %" PRId64 " finite and %" PRId64
           " other values of channel %" PRId64 ", expected %" PRId64 " and %" PRId64
           " as in the first pass",
           data.kind.pass, seen[0], seen[data.kind.channels], c, m.count, m.nonfinite);
    }
    for (int64_t b = data.first_bucket[c]; b < data.first_bucket[c + 1]; ++b) {
      const int64_t* table = data.tables.data() + b * size;
      int64_t count = 0;
      for (int64_t i = 0; i < size; ++i) count += table[i];
      if (count == data.buckets[b].count) continue;
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "accumulator: pass %d has other values of channel %" PRId64
           " than the first pass, expected the same samples",
           data.kind.pass, c);
    }
  }
}

AccumulatorData afterPass(const AccumulatorData& data) {
  AccumulatorData next;
  next.kind = data.kind;
  ++next.kind.pass;
  next.kind.resolved = next.kind.knownBits() >= keyBits(next.kind.dtype);
  next.moments = data.moments;
  const int64_t size = data.kind.tableSize();
  for (int64_t c = 0; c < data.kind.channels; ++c) {
    const auto first = static_cast<int64_t>(next.buckets.size());
    next.first_bucket.push_back(first);
    const int64_t n = data.moments[c].count;
    if (n == 0) continue;
    TableWalk walk = {data.kind.pass == 1 ? data.tables.data() + c * size : nullptr, size - 1, 0,
                      0};
    const RankBucket* in = nullptr;
    visitRanks(data.kind, n, [&](int64_t rank) {
      if (data.kind.pass > 1) {
        const RankBucket& around = bucketAround(data, c, rank);
        if (&around != in) {
          in = &around;
          walk = {data.tables.data() + (in - data.buckets.data()) * size, size - 1, 0, in->before};
        }
      }
      walk.walkTo(rank);
      const uint64_t prefix = (in != nullptr ? in->prefix << data.kind.tableBits() : 0) +
                              static_cast<uint64_t>(walk.place);
      if (static_cast<int64_t>(next.buckets.size()) > first &&
          next.buckets.back().prefix == prefix) {
        return;
      }
      next.buckets.push_back({prefix, walk.before, walk.table[walk.place]});
    });
  }
  next.first_bucket.push_back(static_cast<int64_t>(next.buckets.size()));
  if (!next.kind.resolved) {
    next.seen.assign(static_cast<size_t>(2 * data.kind.channels), 0);
    next.tables.assign(next.buckets.size() * static_cast<size_t>(next.kind.tableSize()), 0);
  }
  return next;
}

double quantileOf(const AccumulatorData& resolved, int64_t channel, double level) {
  const QuantilePlace place = quantilePlace(level, resolved.moments[channel].count);
  const auto at = [&](int64_t rank) {
    return valueOf(resolved, channel, bucketAround(resolved, channel, rank));
  };
  return quantileBetween(at(place.lower), at(place.upper), place.t);
}

}  // namespace rbc
