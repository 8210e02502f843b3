#include "case_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "data_arrays.h"
#include "expected.h"
#include "support/cases.h"

namespace bench {
namespace {

using support::Array;
using support::Random;
using support::sizeOf;

constexpr double kPeriod = 0.01;  // seconds between samples of the fastest stream, on average
constexpr double kLeastInRange = 0.99;

Case blockOf(Case c) {
  if (!CaseData::isWhole(c)) c.batch = CaseData::kBlock;
  return c;
}

// Seconds since the recording began as f32 seconds since boot, f64 seconds since the epoch, i64
// nanoseconds since the epoch.
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

long double numberAt(const Array& array, int64_t i) {
  uint64_t bits = 0;
  const auto size = static_cast<size_t>(sizeOf(array.dtype()));
  std::memcpy(&bits, array.memory().data() + i * sizeOf(array.dtype()), size);
  return support::isFloat(array.dtype()) ? support::decodeFloat(array.dtype(), bits)
                                         : static_cast<long double>(bits);
}

// Random elements, drawn from some thousand: encoding each one anew would take a minute.
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
  for (int64_t i = 0; i < array.count(); ++i, at += size) {
    std::memcpy(at, &drawn[random.bits() % kDrawn], size);
  }
}

// A full row, an empty one and one of a single sample are among ragged ones.
int64_t raggedCount(Random& random, int64_t b, int64_t samples) {
  if (b == 0) return samples;
  if (b == 1) return 0;
  return b == 2 ? std::min<int64_t>(1, samples) : random.below(samples + 1);
}

// The groups of a stream, of one that has none as well.
std::vector<rbcChannelGroup> groupsOf(const StreamCase& stream) {
  if (!stream.groups.empty()) return stream.groups;
  return {{0, stream.channels, stream.method, 0}};
}

}  // namespace

bool CaseData::isWhole(const Case& c) {
  int64_t elements = 0;
  for (const StreamCase& stream : c.streams) {
    if (stream.packed || stream.lengths) return true;
    elements += c.batch * stream.samples * stream.channels;
  }
  return c.batch <= kBlock || elements <= kWholeElements;
}

CaseData::CaseData(const Case& c) : whole_(c), block_(blockOf(c)) {
  makeQueries(makeStreams());
  out_ = makeArray(c.out, {block_.batch, c.queries, c.channels()});
  std::vector<int64_t> mask = {block_.batch, c.queries};
  if (c.fuses()) mask.push_back(static_cast<int64_t>(c.streams.size()));
  mask_ = makeArray(support::kBool, mask);
  answer();
  checkSample();
  countTraffic();
  if (in_range_ < kLeastInRange) {
    throw std::runtime_error("only " + std::to_string(in_range_) + " of the queries are in range");
  }
}

// Every stream of a recording begins and ends at about the same time.
std::vector<CaseData::Span> CaseData::makeStreams() {
  std::vector<Span> spans(static_cast<size_t>(block_.batch));
  int64_t most = 0;
  for (const StreamCase& stream : block_.streams) most = std::max(most, stream.samples);
  const double spread = block_.wild ? 0.8 : 0.3;
  for (size_t n = 0; n < block_.streams.size(); ++n) {
    const StreamCase& c = block_.streams[n];
    Random random(n + 1);
    const double period = kPeriod * static_cast<double>(most) / static_cast<double>(c.samples);

    std::vector<int64_t> ends;
    for (int64_t b = 0; b < block_.batch; ++b) {
      const int64_t count = c.lengths || c.packed ? raggedCount(random, b, c.samples) : c.samples;
      ends.push_back(count + (c.packed && b > 0 ? ends.back() : 0));
    }
    StreamArrays arrays;
    if (c.lengths) {
      arrays.lengths = makeArray(support::kI64, {block_.batch});
      std::copy(ends.begin(), ends.end(), elements<int64_t>(arrays.lengths));
    }
    if (c.packed) {
      arrays.offsets = makeArray(support::kI64, {block_.batch + 1});
      elements<int64_t>(arrays.offsets)[0] = 0;
      std::copy(ends.begin(), ends.end(), elements<int64_t>(arrays.offsets) + 1);
    }

    std::vector<int64_t> shape = {block_.batch, c.samples};
    if (c.packed) shape = {ends.back()};
    arrays.times = makeArray(block_.times, shape);
    streams_.push_back(std::move(arrays));
    for (int64_t b = 0; b < block_.batch; ++b) {
      const Row row = rowOf(n, b);
      double seconds = random.uniform(0, period);
      Span& span = spans[static_cast<size_t>(b)];
      span.first = std::max(span.first, seconds);
      for (int64_t i = 0; i < row.count; ++i) {
        if (i > 0) seconds += period * random.uniform(1 - spread, 1 + spread);
        setTime(streams_[n].times, row.begin + i, seconds);
      }
      span.last = std::min(span.last, seconds);
    }
    shape.push_back(c.channels);
    streams_[n].values = makeArray(c.dtype, shape);
    fill(streams_[n].values, random, -2, 2);
    if (c.affine) {
      streams_[n].mean = makeArray(support::kF32, {c.channels});
      streams_[n].inv_std = makeArray(support::kF32, {c.channels});
      fill(streams_[n].mean, random, -1, 1);
      fill(streams_[n].inv_std, random, 0.5, 2);
    }
  }
  return spans;
}

void CaseData::makeQueries(const std::vector<Span>& spans) {
  Random random(block_.streams.size() + 1);
  query_times_ = makeArray(block_.times, {block_.batch, block_.queries});
  const auto count = static_cast<double>(block_.queries);
  for (int64_t b = 0; b < block_.batch; ++b) {
    const Span& span = spans[static_cast<size_t>(b)];
    const double phase = random.uniform();
    for (int64_t k = 0; k < block_.queries; ++k) {
      const double share =
          block_.random ? random.uniform() : (static_cast<double>(k) + phase) / count;
      setTime(query_times_, b * block_.queries + k, span.first + (span.last - span.first) * share);
    }
  }
}

// ---- what the arrays hold -----------------------------------------------------------------------

CaseData::Row CaseData::rowOf(size_t stream, int64_t b) const {
  const StreamCase& c = block_.streams[stream];
  const StreamArrays& arrays = streams_[stream];
  if (c.packed) {
    const int64_t* offsets = elements<int64_t>(arrays.offsets);
    return {offsets[b], offsets[b + 1] - offsets[b]};
  }
  return {b * c.samples, c.lengths ? elements<int64_t>(arrays.lengths)[b] : c.samples};
}

std::vector<long double> CaseData::timesOf(size_t stream, int64_t b) const {
  const Row row = rowOf(stream, b);
  std::vector<long double> times;
  for (int64_t i = 0; i < row.count; ++i)
    times.push_back(timeAt(streams_[stream].times, row.begin + i));
  return times;
}

long double CaseData::queryOf(int64_t b, int64_t k) const {
  return timeAt(query_times_, b * block_.queries + k);
}

std::vector<int64_t> CaseData::wholeShape(const Array& array) const {
  std::vector<int64_t> shape = array.placement().shape;
  // Of a batch that repeats a block, what has one dimension belongs to all of it.
  if (!isWhole(whole_) && shape.size() > 1) shape[0] = whole_.batch;
  return shape;
}

// ---- the answer ---------------------------------------------------------------------------------

void CaseData::answer() {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = 1;
  params.simd = RBC_SIMD_PORTABLE;
  const robocache::Context context(params);
  const Call call(*this, [](const Array& array) { return robocache::Tensor(array.tensor()); });
  call(context);
}

void CaseData::checkSample() const {
  constexpr int kRows = 64;
  constexpr int kElements = 64;  // of each row
  Random random(7);
  for (int i = 0; i < kRows && out_.count() > 0; ++i) {
    const int64_t b = i == 0 ? 0 : i == 1 ? block_.batch - 1 : random.below(block_.batch);
    const auto n = static_cast<size_t>(random.below(static_cast<int64_t>(streams_.size())));
    const std::vector<long double> times = timesOf(n, b);
    for (int j = 0; j < kElements; ++j) {
      checkElement(n, b, random.below(block_.queries), random.below(block_.streams[n].channels),
                   times);
    }
  }
}

void CaseData::checkElement(size_t stream, int64_t b, int64_t k, int64_t channel,
                            const std::vector<long double>& times) const {
  // What arithmetic in f32 may lose of values up to 2, and rounding the result.
  constexpr long double kArithmetic = 0x1p-16L;
  const long double rounding = std::scalbn(1.0L, -support::formatOf(block_.out).precision);

  const StreamCase& c = block_.streams[stream];
  const StreamArrays& arrays = streams_[stream];
  const long double q = queryOf(b, k);
  long double expected = 0;
  long double scale = 1;
  const bool in_range = !times.empty() && q >= times.front() && q <= times.back();
  if (!times.empty()) {
    for (const rbcChannelGroup& group : groupsOf(c)) {
      if (channel < group.begin || channel >= group.begin + group.count) continue;
      const int64_t first = rowOf(stream, b).begin;
      const auto valueAt = [&](size_t i, int64_t d) {
        const int64_t row = first + static_cast<int64_t>(i);
        return numberAt(arrays.values, row * c.channels + group.begin + d);
      };
      expected = expectedValue(times, q, group.method, channel - group.begin, valueAt);
    }
    if (c.affine) {
      scale = numberAt(arrays.inv_std, channel);
      expected = (expected - numberAt(arrays.mean, channel)) * scale;
    }
  }

  int64_t begin = 0;  // the stream's first channel
  for (size_t n = 0; n < stream; ++n) begin += block_.streams[n].channels;
  const int64_t query = b * block_.queries + k;
  const long double actual = numberAt(out_, query * block_.channels() + begin + channel);
  const bool near =
      std::fabs(actual - expected) <= kArithmetic * scale + rounding * std::fabs(expected);
  bool mask_right = true;
  if (block_.mask) {
    const auto count = static_cast<int64_t>(mask_.count() / (block_.batch * block_.queries));
    const int64_t place = query * count + (block_.fuses() ? static_cast<int64_t>(stream) : 0);
    mask_right = elements<uint8_t>(mask_)[place] == (in_range ? 1 : 0);
  }
  if (near && mask_right) return;
  throw std::runtime_error("stream " + std::to_string(stream) + ", row " + std::to_string(b) +
                           ", query " + std::to_string(k) + ", channel " + std::to_string(channel) +
                           ": " + std::to_string(actual) + ", expected " +
                           std::to_string(expected) + (mask_right ? "" : "; the mask is wrong"));
}

// ---- the bytes ----------------------------------------------------------------------------------

void CaseData::countTraffic() {
  std::vector<int64_t> bytes_of, rows_of, in_range_of;  // by recording of the block
  const int64_t queries = block_.queries;
  for (int64_t b = 0; b < block_.batch; ++b) {
    int64_t bytes = queries * sizeOf(block_.times);
    int64_t rows = 0;
    std::vector<char> in_range(static_cast<size_t>(queries), 1);
    for (size_t n = 0; n < streams_.size(); ++n) {
      const StreamCase& c = block_.streams[n];
      const std::vector<long double> times = timesOf(n, b);
      bytes += static_cast<int64_t>(times.size()) * sizeOf(block_.times);
      std::vector<char> touched(times.size(), 0);  // by any group
      for (const rbcChannelGroup& group : groupsOf(c)) {
        std::vector<char> read(times.size(), 0);
        for (int64_t k = 0; k < queries; ++k) {
          const Neighbours near = neighboursOf(times, queryOf(b, k), group.method);
          for (size_t i = near.begin; i < near.end; ++i) read[i] = touched[i] = 1;
        }
        bytes += std::count(read.begin(), read.end(), 1) * group.count * sizeOf(c.dtype);
      }
      rows += std::count(touched.begin(), touched.end(), 1);
      for (int64_t k = 0; k < queries; ++k) {
        const long double q = queryOf(b, k);
        if (times.empty() || q < times.front() || q > times.back())
          in_range[static_cast<size_t>(k)] = 0;
      }
    }
    bytes_of.push_back(bytes);
    rows_of.push_back(rows);
    in_range_of.push_back(std::count(in_range.begin(), in_range.end(), 1));
  }

  // Over the whole batch, which repeats the block.
  int64_t in_range = 0;
  for (int64_t b = 0; b < whole_.batch; ++b) {
    const auto row = static_cast<size_t>(b % block_.batch);
    bytes_ += bytes_of[row];
    rows_ += rows_of[row];
    in_range += in_range_of[row];
  }
  const int64_t outputs = whole_.batch * queries;
  in_range_ = static_cast<double>(in_range) / static_cast<double>(outputs);
  bytes_ += outputs * whole_.channels() * sizeOf(whole_.out);
  if (whole_.mask) bytes_ += whole_.batch * mask_.count() / block_.batch;
  for (const StreamArrays& arrays : streams_)
    bytes_ += static_cast<int64_t>(arrays.mean.memory().bytes() + arrays.inv_std.memory().bytes());
}

}  // namespace bench
