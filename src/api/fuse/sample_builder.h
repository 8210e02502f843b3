// What the calls for statistics have in common: samples in a batch, and levels of quantiles.
#pragma once

#include "runtime/call.h"
#include "statistics_problem.h"

namespace rbc {

// A call on its way to become a problem.
class SampleBuilder : public CallBase {
 public:
  template <class Visitor>
  void visitIndexes(Visitor&& visit) {
    if (samples_.lengths.data != nullptr) visit(samples_.lengths, samples_.batch);
    if (samples_.offsets.data != nullptr) visit(samples_.offsets, samples_.batch + 1);
  }
  void verifyIndexes() const {
    requireRagged(samples_.lengths, samples_.offsets, samples_.batch, samples_.rows, "values");
  }

 protected:
  // `samples` are the problem's.
  SampleBuilder(const rbcContext& context, Samples& samples)
      : CallBase(context), samples_(samples) {}

  struct Arguments {
    const rbcTensor* values;
    const rbcTensor* lengths;
    const rbcTensor* batch_offsets;
    const rbcTensor* sample_mask;
  };
  // The rows of the batch stay apart only if asked: as one they may be one axis.
  void addSamples(const Arguments& arguments, bool per_row);

  // Whether there are rows that could be apart.
  bool batched() const { return batched_; }

 private:
  void addAxes(const View& values, const View* mask, bool per_row);
  void addAxis(int64_t extent, int64_t stride, int64_t mask_stride);

  Samples& samples_;
  bool batched_ = false;
};

// Copies the levels that a tensor of the host has, and returns how many; null: 0. Fails for what is
// no level.
int32_t readLevels(const rbcTensor* tensor, double (&levels)[kMaxLevels]);

// Fails unless the host can read or write the tensor.
void requireHost(const View& view, const char* argument);

// 0 or 1.
int32_t checkedDdof(int32_t ddof);

}  // namespace rbc
