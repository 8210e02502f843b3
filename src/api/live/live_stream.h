// A stream of live fusion: its ring, how it is fused, and memory for the samples that a call uses.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "fuse_problem.h"
#include "live/live_ring.h"
#include "robocache/live.h"
#include "view.h"

namespace rbc {

class LiveStream {
 public:
  // Reads the description and copies the arrays that it points to. rbcFuse verifies the rest.
  LiveStream(const rbcLiveStream& input, DType time_dtype);
  LiveStream(const LiveStream&) = delete;

  LiveRing& ring() { return *ring_; }
  const LiveRing& ring() const { return *ring_; }
  DType dtype() const { return dtype_; }
  int64_t channels() const { return channels_; }
  // Memory for one row, for the thread that pushes.
  std::byte* room() { return room_.data(); }

  // The stream for rbcFuse: the samples of the last take(); before it, as many as the capacity.
  const rbcFuseStream& forFuse() const { return fuse_; }

  // Queries on the streams' common clock, first .. last. `none` if all are NaN. If they are few and
  // ascend, `few` contains them.
  static constexpr int64_t kMaxFew = 64;
  template <class Time>
  struct Queries {
    Time first;
    Time last;
    bool none;
    int64_t count;  // entries of `few`
    Time few[kMaxFew];
  };

  // Takes the samples that the queries need. `query_times` has all queries of the call.
  template <class Time>
  void take(const Queries<Time>& queries, const TimeOffset& lag, const View& query_times);

  // The number of queries that were before all samples. Any thread may call it.
  int64_t queriesBeforeFirst() const {
    return queries_before_first_.load(std::memory_order_relaxed);
  }

  // The age after take(): the bits of f64 or i64, the dtype of ages.
  uint64_t age() const { return age_; }

 private:
  void keepGroups();
  // The age at a time on the stream's clock, for samples that arrived up to `until`.
  template <class Time>
  uint64_t ageAt(Time now, Time until, const LiveRing::Taken<Time>& taken) const;
  void describe(rbcTensor* tensor, void* data, DType dtype, int ndim, int64_t* shape);
  // Copies the caller's shift or scale.
  void keep(const rbcTensor* tensor, const char* name, std::vector<double>* values, rbcTensor* kept,
            const rbcTensor** used);

  const DType dtype_;
  const int64_t channels_;
  std::unique_ptr<LiveRing> ring_;
  int times_around_;
  TimeOffset clock_offset_;

  std::vector<std::byte> times_;
  std::vector<std::byte> arrivals_;
  std::vector<uint64_t> rows_;
  std::vector<uint64_t> numbers_;
  std::vector<std::byte> room_;
  int64_t shape_[2];  // of values; the first is also the shape of times
  int64_t strides_[2];
  rbcTensor values_tensor_;
  rbcTensor times_tensor_;
  rbcTensor arrivals_tensor_;

  rbcResampleParams params_;
  std::vector<rbcChannelGroup> groups_;
  std::vector<double> shift_;
  std::vector<double> scale_;
  rbcTensor shift_tensor_;
  rbcTensor scale_tensor_;
  rbcFuseStream fuse_;
  uint64_t age_ = 0;
  std::atomic<int64_t> queries_before_first_{0};
};

}  // namespace rbc
