// The common part of the calls for statistics: samples in a batch, and levels of quantiles.
#pragma once

#include "runtime/call.h"
#include "statistics_problem.h"

namespace rbc {

// Builds the problem of a call.
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
  // `samples` belongs to the problem.
  SampleBuilder(const rbcContext& context, Samples& samples)
      : CallBase(context), samples_(samples) {}

  struct Arguments {
    const rbcTensor* values;
    const rbcTensor* lengths;
    const rbcTensor* batch_offsets;
    const rbcTensor* sample_mask;
  };
  // Rows of the batch are separate only if needed; otherwise they may be merged into one axis.
  void addSamples(const Arguments& arguments, bool per_row);

  // Whether there are rows that can be separate.
  bool batched() const { return batched_; }

 private:
  void addAxes(const View& values, const View* mask, bool per_row);
  void addAxis(int64_t extent, int64_t stride, int64_t mask_stride);

  Samples& samples_;
  bool batched_ = false;
};

// Copies the levels in a tensor of the host, and returns their number; null: 0. Fails for a number
// that is not a level.
int32_t readLevels(const rbcTensor* tensor, double (&levels)[kMaxLevels]);

// Fails unless the host can read or write the tensor.
void requireHost(const View& view, const char* argument);

// Returns ddof; fails unless it is 0 or 1.
int32_t checkedDdof(int32_t ddof);

}  // namespace rbc
