#include "statistics/accumulator_state.h"
#include "status.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <numeric>
#include <vector>

namespace rbc {
namespace {

// Calls visit(rank) for each rank that the levels need of n > 0 sorted values, ascending, once
// each.
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

// Returns the bucket of a channel that contains a rank.
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

// Walks through a table, from one rank to a later one.
struct TableWalk {
  const int64_t* table;
  int64_t last;
  int64_t place;
  int64_t before;

  // Moves to the place of the rank. The table may lack it if values changed during an update.
  void walkTo(int64_t rank) {
    while (place < last && rank - before >= table[place]) before += table[place++];
  }
};

// Completes a key from its leading bits: with bits that the dtype determines, else with the middle
// of the possible range.
uint64_t completedKey(const AccumulatorKind& kind, uint64_t prefix, int32_t known) {
  const int width = keyWidth(kind.dtype);
  const int rest = width - known;
  if (rest <= 0 || known <= 0) return prefix;
  const uint64_t zero = uint64_t{1} << (known - 1);
  if (prefix == zero) return prefix << rest;  // the bucket of 0 and of tiny numbers
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
  // A first pass may resolve more bits than the dtype has.
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

// ---- as bytes -----------------------------------------------------------------------------------

namespace {

// Layout of the export. Each entry is one or more 64-bit words:
//   magic, version, number of words, channels, kind (below), levels
//   moments of each channel: count, nonfinite, keys of min and max, sum and squares as magnitudes
//   in the first pass with levels, of each channel: its table
//   in later passes, of each channel: number of buckets, and of each its prefix, values before and
//   in in later passes that are not resolved: the counts of each channel, and the buckets' tables
//   checksum of all words before
// A magnitude is a word (sign << 63 | lowest limb << 32 | limbs) and then two limbs per word. A
// table is the number of its entries that are not 0, and then these entries (place << 44 | count).
constexpr uint64_t kMagic = 0x5354415453434252;  // "RBCSTATS"
constexpr uint64_t kVersion = 1;
constexpr int kCountBits = 44;
constexpr size_t kHeaderWords = 5;

// FNV-1a over words. A change of a single word always changes the hash.
uint64_t checksum(const uint64_t* words, size_t count) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < count; ++i) {
    hash = (hash ^ words[i]) * 0x100000001b3;
    hash ^= hash >> 32;  // multiplication never moves bits down
  }
  return hash;
}

uint64_t kindWord(const AccumulatorKind& k) {
  const auto field = [](int64_t value, int at) { return static_cast<uint64_t>(value) << at; };
  return field(k.has_dtype ? 1 + static_cast<int>(k.dtype) : 0, 0) | field(k.ddof, 8) |
         field(k.bucket_bits, 16) | field(k.num_levels, 24) | field(k.pass, 32) |
         field(k.resolved ? 1 : 0, 40);
}

class Writer {
 public:
  explicit Writer(std::vector<uint64_t>* words) : words_(*words) {}

  void put(uint64_t word) { words_.push_back(word); }
  void put(int64_t number) { put(static_cast<uint64_t>(number)); }

  template <class Limbs>
  void putLimbs(const int64_t (&limbs)[Limbs::kCount]) {
    const Magnitude<Limbs> m(limbs);
    if (m.high < m.low) return put(uint64_t{0});
    const int count = m.high - m.low + 1;
    put(static_cast<uint64_t>(m.negative) << 63 | static_cast<uint64_t>(m.low) << 32 |
        static_cast<uint64_t>(count));
    for (int i = 0; i < count; i += 2) {
      const uint64_t high = i + 1 < count ? m.limb[m.low + i + 1] : 0;
      put(high << 32 | m.limb[m.low + i]);
    }
  }

  void putTable(const int64_t* table, int64_t size) {
    const size_t at = words_.size();
    put(uint64_t{0});
    for (int64_t i = 0; i < size; ++i) {
      if (table[i] == 0) continue;
      put(static_cast<uint64_t>(i) << kCountBits | static_cast<uint64_t>(table[i]));
      ++words_[at];
    }
  }

  // In the first pass all words except the tables; in later ones the words that do not change.
  void putSettled(const AccumulatorData& data) {
    const AccumulatorKind& kind = data.kind;
    put(kind.channels);
    put(kindWord(kind));
    for (int i = 0; i < kind.num_levels; ++i) put(bitCast<uint64_t>(kind.levels[i]));
    for (const Moments& m : data.moments) {
      put(m.count);
      put(m.nonfinite);
      put(m.min_key);
      put(m.max_key);
      putLimbs<SumLimbs>(m.sum);
      putLimbs<SquareLimbs>(m.squares);
    }
    for (int64_t c = 0; c < kind.channels && kind.pass > 1; ++c) {
      put(data.first_bucket[c + 1] - data.first_bucket[c]);
      for (int64_t b = data.first_bucket[c]; b < data.first_bucket[c + 1]; ++b) {
        put(data.buckets[b].prefix);
        put(data.buckets[b].before);
        put(data.buckets[b].count);
      }
    }
  }

 private:
  std::vector<uint64_t>& words_;
};

[[noreturn]] void failMalformed() {
  fail(RBC_STATUS_DAMAGED, "data: is not the state of an accumulator, or is truncated");
}

class Reader {
 public:
  Reader(const uint64_t* words, size_t count) : words_(words), left_(count) {}

  uint64_t take() {
    require(left_ > 0);
    --left_;
    return *words_++;
  }
  int64_t takeWithin(int64_t low, int64_t high) {
    const uint64_t word = take();
    require(word <= static_cast<uint64_t>(INT64_MAX));
    const auto number = static_cast<int64_t>(word);
    require(number >= low && number <= high);
    return number;
  }
  size_t left() const { return left_; }

  static void require(bool condition) {
    if (!condition) failMalformed();
  }

  template <class Limbs>
  void takeLimbs(int64_t (&limbs)[Limbs::kCount]) {
    const uint64_t head = take();
    const auto low = static_cast<int64_t>(head >> 32 & 0x7fffffff);
    const auto count = static_cast<int64_t>(head & 0xffffffff);
    const bool negative = head >> 63 != 0;
    require(low + count <= Limbs::kCount);
    for (int64_t i = 0; i < count; i += 2) {
      const uint64_t word = take();
      const auto first = static_cast<int64_t>(word & 0xffffffff);
      const auto second = static_cast<int64_t>(word >> 32);
      limbs[low + i] = negative ? -first : first;
      if (i + 1 < count) {
        limbs[low + i + 1] = negative ? -second : second;
      } else {
        require(second == 0);
      }
    }
    normalizeLimbs(limbs, Limbs::kCount);
  }

  void takeTable(int64_t* table, int64_t size, int64_t most) {
    const int64_t entries = takeWithin(0, size);
    int64_t before = -1;
    for (int64_t i = 0; i < entries; ++i) {
      const uint64_t word = take();
      const auto place = static_cast<int64_t>(word >> kCountBits);
      const auto count = static_cast<int64_t>(word & ((uint64_t{1} << kCountBits) - 1));
      require(place > before && place < size && count > 0 && count <= most);
      most -= count;
      table[place] = count;
      before = place;
    }
  }

 private:
  const uint64_t* words_;
  size_t left_;
};

AccumulatorKind takeKind(Reader& reader) {
  AccumulatorKind kind;
  // Each channel has at least six words. This avoids an allocation if the bytes are too few.
  kind.channels = reader.takeWithin(
      1, std::min(static_cast<int64_t>(reader.left() / 6), kMaxAccumulatorChannels));
  const uint64_t word = reader.take();
  const auto field = [&](int at) { return static_cast<int32_t>(word >> at & 0xff); };
  constexpr int32_t kDTypes = static_cast<int32_t>(DType::U64) + 1;
  Reader::require(field(0) <= kDTypes && word >> 48 == 0);
  kind.has_dtype = field(0) > 0;
  if (kind.has_dtype) kind.dtype = static_cast<DType>(field(0) - 1);
  kind.ddof = field(8);
  kind.bucket_bits = field(16);
  kind.num_levels = field(24);
  kind.pass = field(32);
  kind.resolved = field(40) != 0;
  Reader::require(kind.ddof <= 1 && kind.bucket_bits >= kMinBucketBits &&
                  kind.bucket_bits <= kMaxBucketBits && kind.num_levels <= kMaxLevels &&
                  field(40) <= 1 && kind.pass >= 1 && kind.pass <= 1 + kind.passesAfterFirst() + 1);
  Reader::require(kind.pass == 1 || (kind.has_dtype && kind.num_levels > 0));
  Reader::require(kind.pass > 1 ? kind.resolved == (kind.knownBits() >= keyBits(kind.dtype))
                                : !kind.resolved);
  for (int i = 0; i < kind.num_levels; ++i) {
    kind.levels[i] = bitCast<double>(reader.take());
    Reader::require(kind.levels[i] >= 0 && kind.levels[i] <= 1);
  }
  return kind;
}

void takeMoments(Reader& reader, Moments* m) {
  *m = {};
  m->count = reader.takeWithin(0, kMaxSamples);
  m->nonfinite = reader.takeWithin(0, kMaxSamples - m->count);
  m->min_key = reader.take();
  m->max_key = reader.take();
  reader.takeLimbs<SumLimbs>(m->sum);
  reader.takeLimbs<SquareLimbs>(m->squares);
}

void takeBuckets(Reader& reader, AccumulatorData* data) {
  const AccumulatorKind& kind = data->kind;
  const int32_t known = kind.knownBits();
  for (int64_t c = 0; c < kind.channels; ++c) {
    data->first_bucket.push_back(static_cast<int64_t>(data->buckets.size()));
    const int64_t values = data->moments[c].count;
    const int64_t count = reader.takeWithin(0, 2 * kMaxLevels);
    int64_t before = 0;
    for (int64_t i = 0; i < count; ++i) {
      RankBucket bucket = {};
      bucket.prefix = reader.take();
      bucket.before = reader.takeWithin(before, values);
      bucket.count = reader.takeWithin(1, values - bucket.before);
      Reader::require(known == 64 || bucket.prefix >> known == 0);
      Reader::require(i == 0 || bucket.prefix > data->buckets.back().prefix);
      before = bucket.before + bucket.count;
      data->buckets.push_back(bucket);
    }
  }
  data->first_bucket.push_back(static_cast<int64_t>(data->buckets.size()));
}

// Checks that each value that a level needs is in a bucket.
void requireRanks(const AccumulatorData& data) {
  for (int64_t c = 0; c < data.kind.channels; ++c) {
    const int64_t n = data.moments[c].count;
    for (int i = 0; i < data.kind.num_levels && n > 0; ++i) {
      const QuantilePlace place = quantilePlace(data.kind.levels[i], n);
      for (const int64_t rank : {place.lower, place.upper}) {
        bool found = false;
        for (int64_t b = data.first_bucket[c]; b < data.first_bucket[c + 1]; ++b) {
          const RankBucket& bucket = data.buckets[b];
          found = found || (rank >= bucket.before && rank - bucket.before < bucket.count);
        }
        Reader::require(found);
      }
    }
  }
}

void requireWhole(const uint64_t* words, size_t count) {
  if (count < 2 || words[0] != kMagic) failMalformed();
  if (words[1] > kVersion) {
    fail(RBC_STATUS_UNSUPPORTED,
         "data: has version %" PRIu64 " of the format, expected at most %" PRIu64
         ": it is from a newer library",
         words[1], kVersion);
  }
  if (words[1] != kVersion || count < kHeaderWords + 1) failMalformed();
  if (words[2] != count) {
    fail(RBC_STATUS_DAMAGED, "data: has %zu bytes, expected %" PRIu64, 8 * count, words[2] * 8);
  }
  if (checksum(words, count - 1) != words[count - 1]) {
    fail(RBC_STATUS_DAMAGED, "data: is corrupted: its checksum does not match");
  }
}

}  // namespace

std::vector<uint64_t> toWords(const AccumulatorData& data) {
  std::vector<uint64_t> words = {kMagic, kVersion, 0};
  Writer writer(&words);
  writer.putSettled(data);
  for (const int64_t seen : data.seen) writer.put(seen);
  const int64_t size = data.kind.tableSize();
  for (int64_t i = 0; i < data.numTables() && size > 0; ++i) {
    writer.putTable(data.tables.data() + i * size, size);
  }
  words[2] = words.size() + 1;
  words.push_back(checksum(words.data(), words.size()));
  return words;
}

AccumulatorData fromWords(const uint64_t* words, size_t count) {
  requireWhole(words, count);
  Reader reader(words + 3, count - 4);
  const AccumulatorKind kind = takeKind(reader);
  AccumulatorData data;
  data.kind = kind;
  data.moments.resize(static_cast<size_t>(kind.channels));
  for (Moments& m : data.moments) {
    takeMoments(reader, &m);
    Reader::require(kind.has_dtype ||
                    m.count + m.nonfinite == 0);  // with samples the dtype is known
  }
  if (kind.pass > 1) {
    takeBuckets(reader, &data);
    requireRanks(data);
  }
  if (kind.pass > 1 && !kind.resolved) {
    for (int64_t i = 0; i < 2 * kind.channels; ++i) {
      data.seen.push_back(reader.takeWithin(0, kMaxSamples));
    }
  }
  const int64_t size = kind.tableSize();
  data.tables.assign(static_cast<size_t>(data.numTables() * size), 0);
  for (int64_t i = 0; i < data.numTables() && size > 0; ++i) {
    reader.takeTable(data.tables.data() + i * size, size, kMaxSamples);
  }
  Reader::require(reader.left() == 0);
  for (int64_t c = 0; c < kind.channels && kind.pass == 1 && size > 0; ++c) {
    const auto table = data.tables.begin() + c * size;
    Reader::require(std::accumulate(table, table + size, int64_t{0}) == data.moments[c].count);
  }
  return data;
}

uint64_t digestOf(const AccumulatorData& data) {
  std::vector<uint64_t> words;
  Writer(&words).putSettled(data);
  return checksum(words.data(), words.size());
}

}  // namespace rbc
