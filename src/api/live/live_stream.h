// A stream of live fusion: its ring, how it is fused, and the memory of what a call has taken of it.
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
  // Reads the description and copies what it points to. What rbcFuse verifies is left to it.
  LiveStream(const rbcLiveStream& input, DType time_dtype);
  LiveStream(const LiveStream&) = delete;

  LiveRing& ring() { return *ring_; }
  const LiveRing& ring() const { return *ring_; }
  DType dtype() const { return dtype_; }
  int64_t channels() const { return channels_; }
  // For a row that is pushed, of the thread that does.
  std::byte* room() { return room_.data(); }

  // What rbcFuse gets: the samples that take() has taken, all places before that.
  const rbcFuseStream& forFuse() const { return fuse_; }

  // Queries on the clock that streams share, of first .. last; none of them is a number where `none`.
  // Where they are few and ascend, `few` has them.
  static constexpr int64_t kMaxFew = 64;
  template <class Time>
  struct Queries {
    Time first;
    Time last;
    bool none;
    int64_t count;  // of `few`
    Time few[kMaxFew];
  };

  // Takes the samples that the queries need. `query_times` has all queries of the call.
  template <class Time>
  void take(const Queries<Time>& queries, const View& query_times);

  // Queries that were before all samples. From any thread.
  int64_t queriesBeforeFirst() const {
    return queries_before_first_.load(std::memory_order_relaxed);
  }

  // The age after take(), as the dtype of ages has it; bits of f64 or i64.
  uint64_t age() const { return age_; }

 private:
  void keepGroups();
  void describe(rbcTensor* tensor, void* data, DType dtype, int ndim, int64_t* shape);
  // The caller's shift or scale, copied.
  void keep(const rbcTensor* tensor, const char* name, std::vector<double>* values, rbcTensor* kept,
            const rbcTensor** used);

  const DType dtype_;
  const int64_t channels_;
  std::unique_ptr<LiveRing> ring_;
  int times_around_;
  TimeLimit max_age_;
  TimeOffset clock_offset_;

  std::vector<std::byte> times_;
  std::vector<uint64_t> rows_;
  std::vector<uint64_t> numbers_;
  std::vector<std::byte> room_;
  int64_t shape_[2];  // of values; times have the first
  int64_t strides_[2];
  rbcTensor values_tensor_;
  rbcTensor times_tensor_;

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
