// Statistics as plain numbers, after validation: the input of a backend.
#pragma once

#include "exact_moments.h"
#include "output.h"
#include "quantile.h"
#include "ragged.h"
#include "value_key.h"

namespace rbc {

inline constexpr int kMaxLevels = 64;

// An axis of the samples between the batch and the channels. There are as few as possible: adjacent
// axes that can be merged are merged. Strides are in elements throughout.
struct SampleAxis {
  int64_t extent;
  int64_t stride;
  int64_t mask_stride;
};

// The samples of some channels, in rows of a batch.
struct Samples {
  static constexpr int kMaxAxes = RBC_TENSOR_MAX_NDIM;

  const void* data;
  DType dtype;
  int64_t channels;
  int64_t channel_stride;
  const uint8_t* mask;  // bytes: 0 excludes a sample; null: no mask
  // Every `mask_channels` channels have their own bytes, `mask_channel_stride` apart; 0: all
  // channels share them.
  int64_t mask_channels;
  int64_t mask_channel_stride;
  int64_t batch;         // rows
  int64_t batch_stride;  // 0 if they are packed
  int64_t batch_mask_stride;
  int64_t rows;  // samples of a padded row, or of all packed ones: the extents' product
  int axes;      // at least 1; exactly 1 with lengths or offsets
  SampleAxis axis[kMaxAxes];  // slowest first
  IndexArray lengths;
  IndexArray offsets;

  // Where the mask of a channel begins, relative to channel 0.
  RBC_HD int64_t maskOffset(int64_t channel) const {
    return mask_channels > 0 ? channel / mask_channels * mask_channel_stride : 0;
  }
  // Number of channels, from this one on, that share its mask.
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

// The position of a sample, in elements of values and of the mask.
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

// A group is the set of samples that statistics cover: a row of the batch, or all rows.
struct StatisticsProblem {
  Samples samples;
  bool per_row;
  int32_t ddof;
  int32_t num_levels;  // 0: no quantiles
  double levels[kMaxLevels];
  Output<2> count;  // group, channel; i64
  Output<2> nonfinite;
  Output<2> min;  // f64
  Output<2> max;
  Output<2> mean;
  Output<2> std;
  Output<3> quantiles;  // group, level, channel; f64

  RBC_HD int64_t groups() const { return per_row ? samples.batch : 1; }
  // Whether the outputs need moments.
  RBC_HD bool needsMoments() const {
    return count.data != nullptr || nonfinite.data != nullptr || min.data != nullptr ||
           max.data != nullptr || needsSums();
  }
  RBC_HD bool needsSums() const { return mean.data != nullptr || std.data != nullptr; }
};

// ---- accumulators -------------------------------------------------------------------------------

// The values of one channel whose keys begin with these bits; only in later passes.
struct Bucket {
  uint64_t prefix;
  int64_t channel;
};

// The memory of an accumulator, which its backend adds to. In the first pass: the moments, and with
// quantiles a table per channel. In a later pass: the tables of the buckets, and the number of
// values of each channel. A value's index in a table is the lower table_bits bits of key >> shift;
// its bucket is the one whose prefix is key >> (shift + table_bits).
struct AccumulatorState {
  int64_t channels;
  int32_t pass;        // from 1
  int32_t table_bits;  // 0: no tables
  int32_t shift;
  bool wide_keys;               // keys of f64, else of f32
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

// rbcAccumulatorMerge: both in the same pass, with the same buckets.
struct MergeProblem {
  AccumulatorState to;
  AccumulatorState from;
};

}  // namespace rbc
