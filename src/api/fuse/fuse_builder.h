// Converts the arguments of a call to a FuseProblem: the common part of rbcResample and rbcFuse.
#pragma once

#include "fuse/times_check.h"
#include "fuse_problem.h"
#include "params.h"
#include "robocache/fuse.h"
#include "runtime/call.h"

namespace rbc {

template <>
inline constexpr KnownFlags kKnownFlags<rbcResampleParams> = {
    RBC_FLAG_CHECK_TIMES | RBC_FLAG_CAUSAL, "RBC_FLAG_CHECK_TIMES, RBC_FLAG_CAUSAL or 0"};
template <>
inline constexpr KnownFlags kKnownFlags<rbcFuseParams> = {RBC_FLAG_CHECK_TIMES,
                                                          "RBC_FLAG_CHECK_TIMES or 0"};

// The arguments that the streams share; valid and query_lengths may be null.
struct SharedArguments {
  const rbcTensor* query_times;
  const rbcTensor* out;
  const rbcTensor* valid;
  const rbcTensor* query_lengths;
  double lag = 0;
  int64_t lag_ticks = 0;
};

struct StreamArguments {
  const rbcTensor* values;
  const rbcTensor* times;
  const rbcResampleParams& params;  // as checkedParams() returns them
  double clock_offset;
  int64_t clock_offset_ticks;
};

// Reads params by the struct_size rule and verifies the fields that do not depend on tensors.
// The value of `outside` that is allowed in addition to hold and fill.
enum class OwnOutside : int32_t {
  kExtrapolate = RBC_OUTSIDE_EXTRAPOLATE,
  kNeutral = RBC_OUTSIDE_NEUTRAL,  // for windows
};

rbcResampleParams checkedParams(const rbcResampleParams* input,
                                OwnOutside own = OwnOutside::kExtrapolate);

// Fails if a field is set that belongs to the params of the whole call, named `owner`.
[[noreturn]] void failUnshared(const rbcResampleParams& params, const char* owner);
inline void requireUnshared(const rbcResampleParams& params, const char* owner) {
  const bool set =
      (params.flags & ~RBC_FLAG_CAUSAL) != 0 || params.lag != 0 || params.lag_ticks != 0;
  if (set) failUnshared(params, owner);
}

// Builds the problem of a call: first the shared tensors, then each stream, then finish().
// Everything except the data is verified. The problem points into this object.
class FuseBuilder : public CallBase {
 public:
  const FuseProblem& problem() const { return problem_; }
  bool empty() const {
    return problem_.batch == 0 || problem_.queries == 0 ||
           (problem_.channels == 0 && problem_.valid == nullptr);
  }
  template <class Visitor>
  void visitIndexes(Visitor&& visit);
  void verifyIndexes() const { verifySampleIndexes(problem_, stream_array_); }

  size_t checkBytes(const rbcContext& context) const {
    return check_times_ ? checkTimesBytes(context) : 0;
  }
  void requireCheckable(const rbcContext& context) const {
    if (check_times_) rbc::requireCheckable(context);
  }
  void check(rbcContext& context, Scratch scratch) const {
    if (check_times_) checkTimes(context, problem_, scratch, stream_array_);
  }

 protected:
  // `stream_array` is the name of the array of streams in errors, or null.
  FuseBuilder(const rbcContext& context, const SharedArguments& shared, bool check_times,
              const char* stream_array);

  // Integers are allowed for one stream, not for several.
  void requireFloatOut() const;
  void add(const StreamArguments& stream);
  // `valid_rank` is the rank of `valid` with a batch: 2 for [B,T], 3 for [B,T,N].
  void finish(int valid_rank);

 private:
  // Reads an optional vector of `count` entries directly into its place: copying a struct that has
  // just been written makes the processor wait.
  void read(const rbcTensor* tensor, const char* argument, int64_t count, IndexArray* array);
  void read(const rbcTensor* tensor, const char* argument, int64_t count, RealArray* array);
  // `of_rows`: each row of the batch may have its own.
  void readSampleMask(const rbcTensor* tensor, int64_t batch, bool of_rows, FuseStream* stream);
  // Arrivals have the shapes and the dtype of times. The tensor is not null.
  void readArrivals(const rbcTensor* tensor, int64_t batch, const View& times, bool of_rows,
                    Arrivals* arrivals);

  const bool check_times_;
  const char* const stream_array_;
  const SharedArguments shared_;
  const View& out_;
  const View* const valid_;
  const View& query_times_;
  bool batched_ = false;
  FuseProblem problem_ = {};
  FuseStream streams_[kMaxStreams];
  ChannelSegment segments_[kMaxSegments];
  CausalFuse causal_ = {};
  Arrivals arrivals_[kMaxStreams];
  SegmentAge ages_[kMaxSegments];
};

template <class Visitor>
void FuseBuilder::visitIndexes(Visitor&& visit) {
  const auto visitArray = [&](IndexArray& array, int64_t entries) {
    if (array.data != nullptr) visit(array, entries);
  };
  for (int n = 0; n < problem_.num_streams; ++n) {
    visitArray(streams_[n].lengths, problem_.batch);
    // Without offsets the batch has no limit.
    IndexArray& offsets = streams_[n].offsets;
    if (offsets.data != nullptr) visit(offsets, problem_.batch + 1);
  }
  visitArray(problem_.query_lengths, problem_.batch);
}

}  // namespace rbc
