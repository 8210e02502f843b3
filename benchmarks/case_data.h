// A case with its data, the bytes that it must move, and the answer.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <benchmark/benchmark.h>

#include "cases.h"
#include "robocache/robocache.hpp"
#include "support/arrays.h"

namespace bench {

// The arrays of one stream; those that it does without are empty.
struct StreamArrays {
  support::Array values, times, lengths, offsets, mean, inv_std;
};

class CaseData {
 public:
  using Case = bench::Case;

  // A large batch repeats a block of rows, so that making and checking the data takes less than
  // timing it; in memory it is as large as ever. 61 is prime: an index that is off by a power of
  // two does not meet the same data.
  static constexpr int64_t kBlock = 61;
  static constexpr int64_t kWholeElements = int64_t{1} << 25;
  static bool isWhole(const Case& c);

  explicit CaseData(const Case& c);

  const Case& whole() const { return whole_; }
  const std::vector<StreamArrays>& streams() const { return streams_; }
  const support::Array& queryTimes() const { return query_times_; }

  // The block's outputs by the portable CPU code on one thread. A sample of them is held against
  // expected.h; the constructor throws if they are wrong.
  const support::Array& out() const { return out_; }
  const support::Array& mask() const { return mask_; }
  std::vector<const support::Array*> outputs() const { return {&out_, &mask_}; }
  // A call writes its outputs whole.
  bool accumulates() const { return false; }

  // Each row of values that a query needs, each time and each query once; out and mask once.
  int64_t bytes() const { return bytes_; }
  // Distinct rows of values that some query needs, of all streams and recordings.
  int64_t rows() const { return rows_; }
  // Share of the queries within the first and the last time of every stream.
  double inRange() const { return in_range_; }

  // The shape of one of the arrays above in the whole batch.
  std::vector<int64_t> wholeShape(const support::Array& array) const;

 private:
  // Where a recording's samples of a stream lie.
  struct Row {
    int64_t begin;  // among all samples of the stream
    int64_t count;
  };

  // Seconds that every stream of a recording has samples in.
  struct Span {
    double first = 0;
    double last = INFINITY;
  };

  std::vector<Span> makeStreams();
  void makeQueries(const std::vector<Span>& spans);
  void answer();
  void checkSample() const;
  void checkElement(size_t stream, int64_t b, int64_t k, int64_t channel,
                    const std::vector<long double>& times) const;
  void countTraffic();

  Row rowOf(size_t stream, int64_t b) const;
  std::vector<long double> timesOf(size_t stream, int64_t b) const;
  long double queryOf(int64_t b, int64_t k) const;

  Case whole_;
  Case block_;
  std::vector<StreamArrays> streams_;
  support::Array query_times_;
  support::Array out_;
  support::Array mask_;
  int64_t bytes_ = 0;
  int64_t rows_ = 0;
  double in_range_ = 0;
};

// What a reader needs to know of the data beside the time.
inline void reportData(benchmark::State& state, const CaseData& data) {
  state.counters["in_range"] = data.inRange();
  state.counters["rows"] = static_cast<double>(data.rows());
}

// One call, ready to go: rbcResample or rbcFuse on the tensors that tensorOf(array) gives for the
// arrays of the data.
class Call {
 public:
  using Data = CaseData;
  static constexpr int kMostLaunches = 2;  // of a call on CUDA

  template <class TensorOf>
  Call(const CaseData& data, TensorOf&& tensorOf)
      : fuses_(data.whole().fuses()),
        query_times_(tensorOf(data.queryTimes())),
        out_(tensorOf(data.out())) {
    if (data.whole().mask) mask_.emplace(tensorOf(data.mask()));
    for (size_t n = 0; n < data.streams().size(); ++n) {
      add(data.whole().streams[n], data.streams()[n], tensorOf);
    }
  }
  Call(const Call&) = delete;

  void operator()(const robocache::Context& context) const {
    const rbcTensor* mask = mask_ ? mask_->get() : nullptr;
    const rbcFuseStream& first = streams_[0];
    robocache::check(fuses_ ? rbcFuse(context.get(), streams_.data(),
                                      static_cast<int32_t>(streams_.size()), query_times_.get(),
                                      out_.get(), mask, nullptr)
                            : rbcResample(context.get(), first.values, first.times,
                                          query_times_.get(), out_.get(), mask, first.params));
  }

  // It needs no workspace.
  void reserve(robocache::Context&) const {}

 private:
  template <class TensorOf>
  void add(const StreamCase& c, const StreamArrays& arrays, TensorOf&& tensorOf) {
    const auto place = [&](const support::Array& array) {
      inputs_.push_back(std::make_unique<robocache::Tensor>(tensorOf(array)));
      return inputs_.back()->get();
    };
    params_.push_back(std::make_unique<rbcResampleParams>(rbcResampleParamsInit()));
    rbcResampleParams& params = *params_.back();
    params.method = c.method;
    params.groups = c.groups.empty() ? nullptr : c.groups.data();
    params.num_groups = static_cast<int32_t>(c.groups.size());
    if (c.lengths) params.lengths = place(arrays.lengths);
    if (c.packed) params.offsets = place(arrays.offsets);
    if (c.affine) params.mean = place(arrays.mean);
    if (c.affine) params.inv_std = place(arrays.inv_std);
    rbcFuseStream stream = rbcFuseStreamInit();
    stream.values = place(arrays.values);
    stream.times = place(arrays.times);
    stream.params = &params;
    streams_.push_back(stream);
  }

  bool fuses_;
  robocache::Tensor query_times_, out_;
  std::optional<robocache::Tensor> mask_;
  std::vector<std::unique_ptr<robocache::Tensor>> inputs_;
  std::vector<std::unique_ptr<rbcResampleParams>> params_;
  std::vector<rbcFuseStream> streams_;
};

}  // namespace bench
