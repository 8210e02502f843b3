// A case of the shared table with its data, the bytes that it must move, and the answer.
#pragma once

#include <cstdint>
#include <optional>

#include "robocache/robocache.hpp"
#include "support/cases.h"

namespace bench {

// One call, ready to go.
struct ResampleCall {
  robocache::Tensor values, times, query_times, out;
  std::optional<robocache::Tensor> mask = {}, lengths = {}, query_lengths = {}, offsets = {};
  rbcResampleParams params = rbcResampleParamsInit();

  void operator()(const robocache::Context& context) const {
    rbcResampleParams p = params;
    p.lengths = robocache::detail::optional(lengths);
    p.query_lengths = robocache::detail::optional(query_lengths);
    p.offsets = robocache::detail::optional(offsets);
    robocache::check(rbcResample(context.get(), values.get(), times.get(), query_times.get(),
                                 out.get(), robocache::detail::optional(mask), &p));
  }
};

class ResampleData {
 public:
  // A large batch repeats a block of rows, so that making and checking the data takes less than
  // timing it; in memory it is as large as ever. 61 is prime: an index that is off by a power of
  // two does not meet the same data.
  static constexpr int64_t kBlock = 61;
  static constexpr int64_t kWholeElements = int64_t{1} << 24;
  static bool isWhole(const support::ResampleCase& c) {
    return c.packed || c.batch <= kBlock || c.batch * c.samples * c.channels <= kWholeElements;
  }

  explicit ResampleData(const support::ResampleCase& c);

  const support::ResampleCase& whole() const { return whole_; }
  const support::ResampleInputs& block() const { return block_; }

  // The block's outputs by the portable CPU code on one thread. Its first and last row are held
  // against tests/support/reference.h; the constructor throws if they are wrong.
  const support::Array& out() const { return out_; }
  const support::Array& mask() const { return mask_; }

  // Each row of values that a query needs, each time and each query once; out and mask once.
  int64_t bytes() const { return bytes_; }
  double inRange() const {
    return in_range_;
  }  // share of the queries within their row's first and last time

  // The shape of one of the arrays above in the whole batch.
  std::vector<int64_t> wholeShape(const support::Array& array) const;

  // A call on the tensors that tensorOf(array) gives for the arrays above.
  template <class TensorOf>
  ResampleCall call(TensorOf&& tensorOf) const {
    ResampleCall call{tensorOf(block_.values), tensorOf(block_.times), tensorOf(block_.query_times),
                      tensorOf(out_)};
    if (whole_.mask) call.mask.emplace(tensorOf(mask_));
    if (whole_.lengths) call.lengths.emplace(tensorOf(block_.lengths));
    if (whole_.query_lengths) call.query_lengths.emplace(tensorOf(block_.query_lengths));
    if (whole_.packed) call.offsets.emplace(tensorOf(block_.offsets));
    call.params.method = whole_.method;
    call.params.bounds = whole_.bounds;
    call.params.fill_value = whole_.fill_value;
    return call;
  }

 private:
  void answer();
  void checkRow(int64_t b) const;
  void countTraffic();

  support::ResampleCase whole_;
  support::ResampleInputs block_;
  support::Array out_;
  support::Array mask_;
  int64_t bytes_ = 0;
  double in_range_ = 0;
};

// The data of a case; that of the last one asked for is kept.
const ResampleData& dataOf(const support::ResampleCase& c);

}  // namespace bench
