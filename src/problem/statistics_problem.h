// Statistics as plain numbers: what the validating calls hand to a backend.
#pragma once

#include "exact_moments.h"
#include "output.h"
#include "quantile.h"
#include "ragged.h"
#include "value_key.h"

namespace rbc {

inline constexpr int kMaxLevels = 64;

// Which axes samples have between the batch and the channels, fewest first: neighbours that lie as
// one axis are one. Strides are in elements throughout.
struct SampleAxis {
  int64_t extent;
  int64_t stride;
  int64_t mask_stride;
};

// Samples of some channels, in rows of a batch.
struct Samples {
  static constexpr int kMaxAxes = RBC_TENSOR_MAX_NDIM;

  const void* data;
  DType dtype;
  int64_t channels;
  int64_t channel_stride;
  const uint8_t* mask;  // bytes: 0 leaves a sample out; null: there is none
  // Each so many channels have bytes of their own, so far apart; 0: all channels share theirs.
  int64_t mask_channels;
  int64_t mask_channel_stride;
  int64_t batch;         // rows
  int64_t batch_stride;  // 0 where they are packed
  int64_t batch_mask_stride;
  int64_t rows;  // samples of a padded row, or of all packed ones: the extents' product
  int axes;      // 1 at least, and 1 alone with lengths or offsets
  SampleAxis axis[kMaxAxes];  // slowest first
  IndexArray lengths;
  IndexArray offsets;

  // Where the mask of a channel begins, after that of channel 0.
  RBC_HD int64_t maskOffset(int64_t channel) const {
    return mask_channels > 0 ? channel / mask_channels * mask_channel_stride : 0;
  }
  // How many channels from this one on share its mask.
  RBC_HD int64_t channelsFrom(int64_t channel) const {
    const int64_t rest = channels - channel;
    const int64_t alike = mask_channels > 0 ? mask_channels - channel % mask_channels : rest;
    return rest < alike ? rest : alike;
  }
  RBC_HD bool packed() const { return offsets.data != nullptr; }
  RBC_HD int64_t total() const { return packed() ? rows : batch * rows; }
};

RBC_HD RowRange samplesOf(const Samples& s, int64_t row) {
  return rangeOf(s.lengths, s.offsets, s.rows, row);
}

// Where a sample lies, in elements of values and of the mask.
struct SamplePlace {
  int64_t value;
  int64_t mask;
};

RBC_HD SamplePlace placeOf(const Samples& s, int64_t row, int64_t sample) {
  SamplePlace place = {row * s.batch_stride, row * s.batch_mask_stride};
  for (int i = s.axes - 1; i > 0; --i) {
    const int64_t outer = sample / s.axis[i].extent;
    const int64_t inner = sample - outer * s.axis[i].extent;
    place.value += inner * s.axis[i].stride;
    place.mask += inner * s.axis[i].mask_stride;
    sample = outer;
  }
  place.value += sample * s.axis[0].stride;
  place.mask += sample * s.axis[0].mask_stride;
  return place;
}

// A group is what statistics are of: a row of the batch, or all of them.
struct StatisticsProblem {
  Samples samples;
  bool per_row;
  int32_t ddof;
  int32_t num_levels;  // 0 if no quantiles are wanted
  double levels[kMaxLevels];
  Output<2> count;  // group, channel; i64
  Output<2> nonfinite;
  Output<2> min;  // f64
  Output<2> max;
  Output<2> mean;
  Output<2> std;
  Output<3> quantiles;  // group, level, channel; f64

  RBC_HD int64_t groups() const { return per_row ? samples.batch : 1; }
  // What has to be computed for the outputs.
  RBC_HD bool needsMoments() const {
    return count.data != nullptr || nonfinite.data != nullptr || min.data != nullptr ||
           max.data != nullptr || needsSums();
  }
  RBC_HD bool needsSums() const { return mean.data != nullptr || std.data != nullptr; }
};

// ---- accumulators --------------------------------------------------------------------------------

// The values with these leading bits of their key, of one channel; in later passes alone.
struct Bucket {
  uint64_t prefix;
  int64_t channel;
};

// The memory of an accumulator, which its backend adds to. In the first pass the moments, and with
// quantiles a table of each channel; in a later pass the tables of buckets, and how many values each
// channel had. A value's place in a table is its key >> shift, the lower table_bits bits; it is of
// the bucket whose prefix is key >> (shift + table_bits).
struct AccumulatorState {
  int64_t channels;
  int32_t pass;        // from 1
  int32_t table_bits;  // 0: no tables
  int32_t shift;
  bool wide_keys;               // of f64, else of f32
  Moments* moments;             // channel; normalized. In the first pass
  int64_t* seen;                // [2, channels]: finite and other values. In later passes
  int64_t* tables;              // [channels or buckets, 1 << table_bits]
  const Bucket* buckets;        // by channel, then by prefix
  const int64_t* first_bucket;  // [channels + 1]
  int64_t num_buckets;
};

// rbcAccumulatorUpdate
struct AccumulateProblem {
  Samples samples;
  AccumulatorState state;
};

// rbcAccumulatorMerge: of one pass, with the same buckets.
struct MergeProblem {
  AccumulatorState to;
  AccumulatorState from;
};

}  // namespace rbc
