// The kernel that statistics run, on three devices.
#include "statistics/select.h"

#include "select_table.h"

namespace {

using rbc::DType;
using rbc::StatisticsProblem;
using select_table::addressOf;

// Mean and standard deviation of the channels of contiguous rows.
StatisticsProblem moments(int64_t rows, int64_t channels, DType dtype) {
  StatisticsProblem p = {};
  p.samples.dtype = dtype;
  p.samples.channels = channels;
  p.samples.channel_stride = 1;
  p.samples.batch = 1;
  p.samples.rows = rows;
  p.samples.axes = 1;
  p.samples.axis[0] = {rows, channels, 0};
  p.mean.data = p.std.data = addressOf(0);
  return p;
}

StatisticsProblem withQuantiles(StatisticsProblem p, int count) {
  p.num_levels = count;
  return p;
}

StatisticsProblem quantilesOnly(StatisticsProblem p, int count) {
  p.mean.data = p.std.data = nullptr;
  return withQuantiles(p, count);
}

constexpr int64_t kMillion = 1000000;

constexpr select_table::Row<StatisticsProblem> kRows[] = {
    {"a million samples of 14 channels, f32",
     [] { return moments(kMillion, 14, DType::F32); },
     {"channel_pass (float32 at one stride), grid 324 x 256, shared 0 bytes",
      "channel_pass (float32 at one stride), grid 396 x 256, shared 0 bytes",
      "channel_pass (float32 at one stride), grid 24 x 256, shared 0 bytes"}},
    {"a million samples of 14 channels, with 2 quantiles",
     [] { return withQuantiles(moments(kMillion, 14, DType::F32), 2); },
     {"channel_pass (float32 at one stride), grid 324 x 256, shared 0 bytes",
      "channel_pass (float32 at one stride), grid 396 x 256, shared 0 bytes",
      "channel_pass (float32 at one stride), grid 24 x 256, shared 0 bytes"}},
    {"a million samples of 14 channels, bf16",
     [] { return moments(kMillion, 14, DType::BF16); },
     {"channel_pass (16-bit floats at one stride), grid 324 x 256, shared 0 bytes",
      "channel_pass (16-bit floats at one stride), grid 396 x 256, shared 0 bytes",
      "channel_pass (16-bit floats at one stride), grid 24 x 256, shared 0 bytes"}},
    {"a million samples of 14 channels, f64",
     [] { return moments(kMillion, 14, DType::F64); },
     {"channel_pass (float64 at one stride), grid 216 x 256, shared 0 bytes",
      "channel_pass (float64 at one stride), grid 264 x 256, shared 0 bytes",
      "channel_pass (float64 at one stride), grid 16 x 256, shared 0 bytes"}},
    {"a million samples of 14 channels, i64",
     [] { return moments(kMillion, 14, DType::I64); },
     {"channel_pass (any computed in float64), grid 216 x 256, shared 0 bytes; not "
      "channel_pass at one stride: values: int64, expected a float",
      "channel_pass (any computed in float64), grid 264 x 256, shared 0 bytes; not "
      "channel_pass at one stride: values: int64, expected a float",
      "channel_pass (any computed in float64), grid 16 x 256, shared 0 bytes; not "
      "channel_pass at one stride: values: int64, expected a float"}},
    {"a million samples of 14 channels, u8",
     [] { return moments(kMillion, 14, DType::U8); },
     {"channel_pass (any computed in float32), grid 324 x 256, shared 0 bytes; not "
      "channel_pass at one stride: values: uint8, expected a float",
      "channel_pass (any computed in float32), grid 396 x 256, shared 0 bytes; not "
      "channel_pass at one stride: values: uint8, expected a float",
      "channel_pass (any computed in float32), grid 24 x 256, shared 0 bytes; not "
      "channel_pass at one stride: values: uint8, expected a float"}},
    {"a million samples of 14 channels, with a mask",
     [] {
       StatisticsProblem p = moments(kMillion, 14, DType::F32);
       p.samples.mask = static_cast<const uint8_t*>(addressOf(1));
       return p;
     },
     {"channel_pass (any computed in float32), grid 324 x 256, shared 0 bytes; not "
      "channel_pass at one stride: sample_mask: set, expected none",
      "channel_pass (any computed in float32), grid 396 x 256, shared 0 bytes; not "
      "channel_pass at one stride: sample_mask: set, expected none",
      "channel_pass (any computed in float32), grid 24 x 256, shared 0 bytes; not "
      "channel_pass at one stride: sample_mask: set, expected none"}},
    {"1000 rows of a batch with lengths, as one group",
     [] {
       StatisticsProblem p = moments(1000, 14, DType::F32);
       p.samples.batch = 1000;
       p.samples.lengths.data = addressOf(1);
       return p;
     },
     {"channel_pass (any computed in float32), grid 324 x 256, shared 0 bytes; not "
      "channel_pass at one stride: values: 1000 rows of a batch in one group, expected 1",
      "channel_pass (any computed in float32), grid 396 x 256, shared 0 bytes; not "
      "channel_pass at one stride: values: 1000 rows of a batch in one group, expected 1",
      "channel_pass (any computed in float32), grid 24 x 256, shared 0 bytes; not "
      "channel_pass at one stride: values: 1000 rows of a batch in one group, expected 1"}},
    {"1000 rows of a batch, a group per row",
     [] {
       StatisticsProblem p = moments(1000, 14, DType::F32);
       p.samples.batch = 1000;
       p.per_row = true;
       return p;
     },
     {"channel_pass (float32 at one stride), grid 1000 x 256, shared 0 bytes"}},
    {"images: two axes of samples",
     [] {
       StatisticsProblem p = moments(kMillion, 3, DType::F32);
       p.samples.axes = 2;
       p.samples.axis[0] = {1000, 4000, 0};
       p.samples.axis[1] = {1000, 3, 0};
       return p;
     },
     {"channel_pass (any computed in float32), grid 324 x 256, shared 0 bytes; not "
      "channel_pass at one stride: values: 2 axes of samples, expected one stride",
      "channel_pass (any computed in float32), grid 396 x 256, shared 0 bytes; not "
      "channel_pass at one stride: values: 2 axes of samples, expected one stride",
      "channel_pass (any computed in float32), grid 24 x 256, shared 0 bytes; not "
      "channel_pass at one stride: values: 2 axes of samples, expected one stride"}},
    {"channels first: 3 channels, a million samples each",
     [] {
       StatisticsProblem p = moments(kMillion, 3, DType::F32);
       p.samples.channel_stride = kMillion;
       p.samples.axis[0].stride = 1;
       return p;
     },
     {"channel_pass (float32 at one stride), grid 324 x 256, shared 0 bytes",
      "channel_pass (float32 at one stride), grid 396 x 256, shared 0 bytes",
      "channel_pass (float32 at one stride), grid 24 x 256, shared 0 bytes"}},
    {"5 quantiles of 400 samples of 14 channels",
     [] { return quantilesOnly(moments(400, 14, DType::F32), 5); },
     {"sample_groups (one warp per channel), grid 4 x 128, shared 0 bytes"}},
    {"5 quantiles of 8000 samples of 14 channels",
     [] { return quantilesOnly(moments(8000, 14, DType::F32), 5); },
     {"sample_groups (one block per channel), grid 14 x 512, shared 0 bytes"}},
    {"5 quantiles of 8000 samples of 14 channels, f64",
     [] { return quantilesOnly(moments(8000, 14, DType::F64), 5); },
     {"channel_pass (float64 at one stride), grid 28 x 256, shared 0 bytes", nullptr,
      "channel_pass (float64 at one stride), grid 16 x 256, shared 0 bytes"}},
};

}  // namespace

TEST_CASE("select statistics: each call runs the kernel of the table, for its reason") {
  select_table::check("statistics", kRows,
                      [](const StatisticsProblem& p, const rbc::cuda::LaunchDevice& device) {
                        return rbc::cuda::selectStatistics(p, device);
                      });
}
