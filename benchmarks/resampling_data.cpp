// The data of a case of resampling, and the rows that its queries need.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "resampling.h"
#include "support/random.h"

namespace bench {
namespace {

using support::Array;
using support::Random;
using support::sizeOf;

constexpr double kPeriod = 0.01;  // average seconds between samples of the fastest stream
// A large batch repeats a block of rows, so that making and checking the data takes less time than
// measuring; in memory it has the full size. 61 is prime: an index that is off by a power of two
// gets different data.
constexpr int64_t kBlock = 61;
constexpr int64_t kWholeElements = int64_t{1} << 25;

int64_t blockOf(const ResamplingCase& c) {
  int64_t elements = 0;
  for (const StreamCase& stream : c.streams) {
    if (stream.packed || stream.lengths) return c.batch;
    elements += c.batch * stream.samples * stream.channels;
  }
  return elements <= kWholeElements ? c.batch : std::min(c.batch, kBlock);
}

// A time, given in seconds since the start of the recording: as f32 seconds since boot, f64 seconds
// since the epoch, i64 nanoseconds since the epoch.
void setTime(const Array& array, int64_t i, double seconds) {
  if (support::same(array.dtype(), support::kF32)) {
    elements<float>(array)[i] = static_cast<float>(3 + seconds);
  } else if (support::same(array.dtype(), support::kF64)) {
    elements<double>(array)[i] = 1.7e9 + seconds;
  } else {
    elements<int64_t>(array)[i] = INT64_C(1700000000123456789) + std::llround(seconds * 1e9);
  }
}

long double timeAt(const Array& array, int64_t i) {
  if (support::same(array.dtype(), support::kF32)) return elements<float>(array)[i];
  if (support::same(array.dtype(), support::kF64)) return elements<double>(array)[i];
  return static_cast<long double>(elements<int64_t>(array)[i]);
}

// Random elements, drawn from several thousand: encoding each one would take a minute.
void fill(const Array& array, Random& random, double low, double high) {
  constexpr size_t kDrawn = 4096;
  std::vector<uint64_t> drawn;
  while (drawn.size() < kDrawn) {
    const double x = random.uniform(low, high);
    drawn.push_back(support::isFloat(array.dtype()) ? support::encodeFloat(array.dtype(), x)
                                                    : random.bits());
  }
  const auto size = static_cast<size_t>(sizeOf(array.dtype()));
  std::byte* at = array.memory().data();
  for (int64_t i = 0; i < array.count(); ++i, at += size)
    std::memcpy(at, &drawn[random.bits() % kDrawn], size);
}

// Ragged rows include a full one, an empty one and one with a single sample.
int64_t raggedCount(Random& random, int64_t b, int64_t samples) {
  if (b == 0) return samples;
  if (b == 1) return 0;
  return b == 2 ? std::min<int64_t>(1, samples) : random.below(samples + 1);
}

// Samples of a row, as indices of its times.
struct Range {
  size_t begin = 0, end = 0;
};

// The samples that the value at q depends on; queries outside are held at the edge.
Range neighboursOf(const std::vector<long double>& times, long double q, int32_t method) {
  const size_t n = times.size();
  if (n == 0) return {};
  const auto after =
      static_cast<size_t>(std::upper_bound(times.begin(), times.end(), q) - times.begin());
  if (after == 0) return {0, 1};
  const size_t left = after - 1;
  if (times[left] == q || after == n) return {left, after};
  const bool nearer_left = q - times[left] <= times[after] - q;
  switch (method) {
    case RBC_METHOD_NEAREST: return nearer_left ? Range{left, after} : Range{after, after + 1};
    case RBC_METHOD_PREVIOUS: return {left, after};
    case RBC_METHOD_NEXT: return {after, after + 1};
    case RBC_METHOD_CUBIC:
    case RBC_METHOD_PCHIP: return {left == 0 ? 0 : left - 1, std::min(after + 2, n)};
    default: return {left, after + 1};
  }
}

class ResamplingData : public Data {
 public:
  explicit ResamplingData(const ResamplingCase& c)
      : c_(c), block_(blockOf(c)), spans_(static_cast<size_t>(block_)) {
    for (const StreamCase& stream : c.streams) most_ = std::max(most_, stream.samples);
    for (size_t n = 0; n < c.streams.size(); ++n) addStream(n);
    addQueries();
    addOutput(c.out, {block_, c.queries, c.channels()});
    if (c.mask && c.fuses) {
      addOutput(support::kBool, {block_, c.queries, static_cast<int64_t>(c.streams.size())});
    } else if (c.mask) {
      addOutput(support::kBool, {block_, c.queries});
    }
    answer();
    countTraffic();
  }

  std::unique_ptr<Call> callOn(const Tensors& tensors) const override {
    return bench::callOn(c_, tensors);
  }

  std::vector<int64_t> wholeShape(const Array& array) const override {
    std::vector<int64_t> shape = array.placement().shape;
    // Arrays of one dimension are for the whole batch, even if it repeats a block.
    if (block_ < c_.batch && shape.size() > 1) shape[0] = c_.batch;
    return shape;
  }

 private:
  // The time span in which every stream of a recording has samples.
  struct Span {
    double first = 0, last = INFINITY;
  };
  struct Stream {
    const Array* times;
    const Array* sample_mask;             // null: no sample is missing
    std::vector<int64_t> begins, counts;  // of each recording's samples
  };

  // Every stream of a recording begins and ends at about the same time.
  void addStream(size_t n) {
    const StreamCase& c = c_.streams[n];
    Random random(n + 1);
    const double spread = c_.wild ? 0.8 : 0.3;
    const double period = kPeriod * static_cast<double>(most_) / static_cast<double>(c.samples);
    Stream stream;
    int64_t total = 0;
    for (int64_t b = 0; b < block_; ++b) {
      stream.begins.push_back(c.packed ? total : b * c.samples);
      stream.counts.push_back(c.lengths || c.packed ? raggedCount(random, b, c.samples)
                                                    : c.samples);
      total += stream.counts.back();
    }

    std::vector<int64_t> shape = {block_, c.samples};
    if (c.packed) shape = {total};
    std::vector<int64_t> with_channels = shape;
    with_channels.push_back(c.channels);
    const Array& values = addInput("values", c.dtype, with_channels);
    stream.times = &addInput("times", c_.times, shape);
    std::vector<double> stamps(static_cast<size_t>(stream.times->count()));
    for (size_t b = 0; b < spans_.size(); ++b) {
      double seconds = random.uniform(0, period);
      spans_[b].first = std::max(spans_[b].first, seconds);
      for (int64_t i = 0; i < stream.counts[b]; ++i) {
        if (i > 0) seconds += period * random.uniform(1 - spread, 1 + spread);
        setTime(*stream.times, stream.begins[b] + i, seconds);
        stamps[static_cast<size_t>(stream.begins[b] + i)] = seconds;
      }
      spans_[b].last = std::min(spans_[b].last, seconds);
    }
    fill(values, random, -2, 2);

    if (c.lengths) {
      const Array& lengths = addInput("lengths", support::kI64, {block_});
      std::copy(stream.counts.begin(), stream.counts.end(), elements<int64_t>(lengths));
    }
    if (c.packed) {
      const Array& offsets = addInput("offsets", support::kI64, {block_ + 1});
      std::copy(stream.begins.begin(), stream.begins.end(), elements<int64_t>(offsets));
      elements<int64_t>(offsets)[block_] = total;
    }
    if (c.affine) {
      fill(addInput("mean", support::kF32, {c.channels}), random, -1, 1);
      fill(addInput("scale", support::kF32, {c.channels}), random, 0.5, 2);
    }
    stream.sample_mask = nullptr;
    if (c.missing) {
      stream.sample_mask = &addInput("sample_mask", support::kBool, shape);
      bool* there = elements<bool>(*stream.sample_mask);
      for (int64_t i = 0; i < stream.sample_mask->count(); ++i) there[i] = !random.chance(0.05);
    }
    if (c.arrives) {
      const Array& arrivals = addInput("arrivals", c_.times, shape);
      for (size_t i = 0; i < stamps.size(); ++i) {
        setTime(arrivals, static_cast<int64_t>(i), stamps[i] + random.uniform(0, 2 * period));
      }
    }
    streams_.push_back(std::move(stream));
  }

  void addQueries() {
    Random random(c_.streams.size() + 1);
    query_times_ = &addInput("query_times", c_.times, {block_, c_.queries});
    const auto count = static_cast<double>(c_.queries);
    for (int64_t b = 0; b < block_; ++b) {
      const Span& span = spans_[static_cast<size_t>(b)];
      const double phase = random.uniform();
      for (int64_t k = 0; k < c_.queries; ++k) {
        const double share =
            c_.random ? random.uniform() : (static_cast<double>(k) + phase) / count;
        setTime(*query_times_, b * c_.queries + k, span.first + (span.last - span.first) * share);
      }
    }
  }

  // Each row of values that a query needs, each time and each query once; out and mask once.
  void countTraffic() {
    int64_t inside = 0;  // queries
    for (int64_t b = 0; b < block_; ++b) {
      // The whole batch repeats the block.
      const int64_t times = (c_.batch - b + block_ - 1) / block_;
      inside += times * countRecording(b, times);
    }
    const int64_t results = c_.batch * c_.queries;
    in_range = results == 0 ? 1 : static_cast<double>(inside) / static_cast<double>(results);
    bytes += results * c_.channels() * sizeOf(c_.out);
    if (c_.mask) bytes += c_.batch * outputs[1].count() / block_;
    for (const auto& [name, array] : inputs) {
      if (name == "mean" || name == "scale") bytes += static_cast<int64_t>(array.memory().bytes());
    }
  }

  // Counts a recording as often as it occurs, and returns how many of its queries have samples of
  // every stream on both sides.
  int64_t countRecording(int64_t b, int64_t times_there) {
    std::vector<long double> queries, times;
    for (int64_t k = 0; k < c_.queries; ++k)
      queries.push_back(timeAt(*query_times_, b * c_.queries + k));
    std::vector<char> inside(queries.size(), 1);
    int64_t moved = c_.queries * sizeOf(c_.times);
    for (size_t n = 0; n < streams_.size(); ++n) {
      const StreamCase& c = c_.streams[n];
      const int64_t begin = streams_[n].begins[static_cast<size_t>(b)];
      const int64_t count = streams_[n].counts[static_cast<size_t>(b)];
      times.clear();
      const Array* mask = streams_[n].sample_mask;
      for (int64_t i = begin; i < begin + count; ++i) {
        if (mask == nullptr || elements<bool>(*mask)[i])
          times.push_back(timeAt(*streams_[n].times, i));
      }
      moved += count * (sizeOf(c_.times) + (mask != nullptr ? 1 : 0));
      std::vector<char> touched(times.size(), 0);  // by any group
      std::vector<rbcChannelGroup> groups = c.groups;
      if (groups.empty()) groups = {{0, c.channels, c.method, 0, 0, 0, 0}};
      for (const rbcChannelGroup& group : groups) {
        std::vector<char> read(times.size(), 0);
        for (const long double q : queries) {
          const Range near = neighboursOf(times, q, group.method);
          for (size_t i = near.begin; i < near.end; ++i) read[i] = touched[i] = 1;
        }
        moved += std::count(read.begin(), read.end(), 1) * group.count * sizeOf(c.dtype);
      }
      rows += times_there * std::count(touched.begin(), touched.end(), 1);
      for (size_t k = 0; k < queries.size(); ++k) {
        if (times.empty() || queries[k] < times.front() || queries[k] > times.back()) inside[k] = 0;
      }
    }
    bytes += times_there * moved;
    return std::count(inside.begin(), inside.end(), 1);
  }

  const ResamplingCase c_;
  int64_t block_;
  int64_t most_ = 0;  // samples per stream
  std::vector<Span> spans_;
  std::vector<Stream> streams_;
  const Array* query_times_ = nullptr;
};

}  // namespace

std::unique_ptr<const Data> ResamplingCase::load() const {
  return std::make_unique<ResamplingData>(*this);
}

}  // namespace bench
