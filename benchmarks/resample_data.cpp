#include "resample_data.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include "support/reference.h"

namespace bench {

using support::Array;
using support::ResampleCase;
using support::ResampleInputs;

namespace {

ResampleCase blockOf(ResampleCase c) {
  if (!ResampleData::isWhole(c)) c.batch = ResampleData::kBlock;
  c.flush = support::Flush::kBegin;  // aligned to a page
  return c;
}

long double timeOf(rbcDType dtype, uint64_t bits) {
  if (support::isFloat(dtype)) return support::decodeFloat(dtype, bits);
  return static_cast<long double>(static_cast<int64_t>(bits));
}

// Elements [first, first + count) of the last dimensions of a contiguous array, as an array of that
// shape.
Array slice(const Array& array, int64_t first, std::vector<int64_t> shape) {
  Array part(array.dtype(), std::move(shape));
  const int64_t size = support::sizeOf(array.dtype());
  if (part.count() > 0) {
    std::memcpy(part.memory().data(), array.memory().data() + first * size,
                static_cast<size_t>(part.count() * size));
  }
  return part;
}

// One row of the batch as a case without batch.
ResampleInputs rowOf(const ResampleInputs& in, int64_t b) {
  ResampleInputs row;
  row.c = in.c;
  row.c.batched = row.c.packed = row.c.lengths = row.c.query_lengths = false;
  row.c.batch = 1;
  row.c.samples = in.count(b);
  row.c.queries = in.queryCount(b);
  const int64_t start = (in.c.packed ? 0 : b * in.c.samples) + in.begin(b);
  const int64_t time_start = in.times.ndim() == 2 || in.c.packed ? start : 0;
  const int64_t query_start = in.query_times.ndim() == 2 ? b * in.c.queries : 0;
  row.values = slice(in.values, start * in.c.channels, {row.c.samples, row.c.channels});
  row.times = slice(in.times, time_start, {row.c.samples});
  row.query_times = slice(in.query_times, query_start, {row.c.queries});
  return row;
}

}  // namespace

ResampleData::ResampleData(const ResampleCase& c)
    : whole_(c), block_(makeInputs(blockOf(c))), out_(block_.makeOut()), mask_(block_.makeMask()) {
  answer();
  countTraffic();
}

std::vector<int64_t> ResampleData::wholeShape(const Array& array) const {
  std::vector<int64_t> shape = array.placement().shape;
  const bool shared = (&array == &block_.times && whole_.shared_times) ||
                      (&array == &block_.query_times && whole_.shared_queries);
  if (!isWhole(whole_) && !shared) shape[0] = whole_.batch;
  return shape;
}

void ResampleData::answer() {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = 1;
  params.simd = RBC_SIMD_PORTABLE;
  const robocache::Context context(params);
  call([](const Array& array) { return robocache::Tensor(array.tensor()); })(context);
  checkRow(0);
  checkRow(block_.c.batch - 1);
}

void ResampleData::checkRow(int64_t b) const {
  const ResampleInputs row = rowOf(block_, b);
  const int64_t first = b * block_.c.queries;
  support::ResampleOutput output;
  output.out = slice(out_, first * row.c.channels, {row.c.queries, row.c.channels}).elements();
  if (row.c.mask) output.mask = slice(mask_, first, {row.c.queries}).elements();
  const std::string error = support::firstError(row, output);
  if (!error.empty()) throw std::runtime_error("row " + std::to_string(b) + " is wrong: " + error);
}

void ResampleData::countTraffic() {
  const ResampleCase& c = block_.c;
  std::vector<int64_t> rows_touched, times_read, queries_in_range, queries_asked;
  for (int64_t b = 0; b < c.batch; ++b) {
    const ResampleInputs row = rowOf(block_, b);
    std::vector<long double> t;
    for (int64_t i = 0; i < row.c.samples; ++i) t.push_back(timeOf(c.times, row.times.get({i})));
    std::vector<char> touched(t.size(), 0);
    int64_t in_range = 0;
    for (int64_t k = 0; k < row.c.queries && !t.empty(); ++k) {
      const long double q = timeOf(c.times, row.query_times.get({k}));
      const auto after = std::upper_bound(t.begin(), t.end(), q);
      const size_t right = std::min<size_t>(static_cast<size_t>(after - t.begin()), t.size() - 1);
      const size_t left = after == t.begin() ? 0 : static_cast<size_t>(after - t.begin()) - 1;
      in_range += q >= t.front() && q <= t.back();
      const bool takes_left = t[left] == q || after == t.end() || c.method == RBC_METHOD_LINEAR ||
                              c.method == RBC_METHOD_PREVIOUS ||
                              (c.method == RBC_METHOD_NEAREST && q - t[left] <= t[right] - q);
      const bool takes_right = t[left] != q && (c.method == RBC_METHOD_LINEAR || !takes_left);
      if (takes_left) touched[left] = 1;
      if (takes_right) touched[right] = 1;
    }
    rows_touched.push_back(std::count(touched.begin(), touched.end(), 1));
    times_read.push_back(row.c.samples);
    queries_in_range.push_back(in_range);
    queries_asked.push_back(row.c.queries);
  }
  // Over the whole batch, which repeats the block.
  const auto total = [&](const std::vector<int64_t>& of_row) {
    int64_t sum = 0;
    for (int64_t b = 0; b < whole_.batch; ++b) sum += of_row[static_cast<size_t>(b % c.batch)];
    return sum;
  };
  const int64_t time_size = support::sizeOf(c.times);
  const int64_t outputs = whole_.batch * c.queries;
  bytes_ = total(rows_touched) * c.channels * support::sizeOf(c.values);
  bytes_ += (c.shared_times ? c.samples : total(times_read)) * time_size;
  bytes_ += (c.shared_queries ? c.queries : total(queries_asked)) * time_size;
  bytes_ += outputs * c.channels * support::sizeOf(c.out) + (c.mask ? outputs : 0);
  const int64_t asked = total(queries_asked);
  in_range_ =
      asked > 0 ? static_cast<double>(total(queries_in_range)) / static_cast<double>(asked) : 0;
}

const ResampleData& dataOf(const ResampleCase& c) {
  static std::unique_ptr<ResampleData> last;
  if (last == nullptr || last->whole().name != c.name) {
    last.reset();
    last = std::make_unique<ResampleData>(c);
  }
  return *last;
}

}  // namespace bench
