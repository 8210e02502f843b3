// Which windows are gathered rows in vectors, and how they are shared out.

#include "windows/rows_plan.h"

#include <algorithm>
#include <cstdlib>

#include "ceil_div.h"
#include "runtime/suits_vecs.h"

namespace rbc::cuda {
namespace windows {
namespace {

constexpr int64_t kFew = int64_t{1} << 31;
constexpr int kWarpsThatFit = 20;  // on a multiprocessor
constexpr int kMostTurns = 4;      // of a lane over kItems vectors

bool isShort(int64_t step) { return step < kFew && step > -kFew; }

bool isHalf(DType dtype) { return dtype == DType::BF16 || dtype == DType::F16; }
bool isNarrow(DType dtype) { return isHalf(dtype) || dtype == DType::F32; }

// What references are read from, as well.
bool suitsRows(const WindowStream& s) {
  const int64_t size = sizeOf(s.values_dtype);
  const int64_t offset_size = s.offsets.is_64 ? 8 : 4;
  return !s.interpolates && s.values != nullptr && s.rows < kFew && s.num_offsets < kFew / 2 &&
         s.channels < kFew / 2 && isShort(s.values_stride[0] * size) &&
         isShort(s.offsets.stride * offset_size);
}

// Whether a factor is of each channel, and can be read in vectors of `count`.
bool suitsFactor(const RealGrid& grid, const WindowStream& s, int64_t count) {
  if (grid.data == nullptr) return true;
  if (grid.stride[0] != 0 && s.num_offsets > 1) return false;
  if (grid.stride[1] != 1 && s.out_channels > 1) return false;
  return grid.is_64 || suitsVecs(grid.data, {0}, sizeof(float), count);
}

bool suitsCount(const WindowStream& s, int64_t count) {
  if (s.channels % count != 0) return false;
  return suitsVecs(s.values, {s.values_stride[0]}, sizeOf(s.values_dtype), count) &&
         suitsVecs(s.out.data, {s.out.stride[0], s.out.stride[1]}, sizeOf(s.out.dtype), count) &&
         suitsFactor(s.shift, s, count) && suitsFactor(s.scale, s, count) &&
         suitsFactor(s.bias, s, count) && suitsFactor(s.low, s, count) &&
         suitsFactor(s.high, s, count);
}

// Channels of a vector; 0: it takes the kernel of any windows.
int vectorOf(const WindowProblem& p, const WindowStream& s) {
  if (s.out.data == nullptr || s.counted != nullptr || s.in_double || s.channels == 0) return 0;
  if (!isNarrow(s.values_dtype) || !isNarrow(s.out.dtype)) return 0;
  if (s.channels > 1 && (s.values_stride[1] != 1 || s.out.stride[2] != 1)) return 0;
  if (!isShort(s.out.stride[1] * sizeOf(s.out.dtype)) || !isShort(s.valid_stride[1])) return 0;
  for (int32_t i = s.first_segment; i < s.first_segment + s.num_segments; ++i) {
    if (p.segments[i].isPose()) return 0;
  }
  for (const int count : {4, 2, 1}) {
    if (suitsCount(s, count)) return count;
  }
  return 0;
}

ChannelFactor factorOf(const RealGrid& grid) { return {grid.data, grid.is_64}; }

void describe(const WindowProblem& p, int32_t n, RowsLaunch* launch, int* num_references) {
  const WindowStream& s = p.streams[n];
  RowsTask& task = launch->tasks[n];
  const int64_t size = sizeOf(s.values_dtype);
  const int64_t out_size = sizeOf(s.out.dtype);
  task.pad = s.pad;
  const bool own = !p.anchors_are_times && n == p.anchor_stream;
  task.by_time = p.anchors_are_times ||
                 (!own && s.times != nullptr && p.streams[p.anchor_stream].times != nullptr);
  task.normalizes = s.normalizes();
  task.clips = s.clips();
  task.offsets_are_64 = s.offsets.is_64;
  task.in = s.values_dtype;
  task.out_dtype = s.out.dtype;
  task.num_offsets = static_cast<int32_t>(s.num_offsets);
  task.values = static_cast<const char*>(s.values);
  task.offsets = static_cast<const char*>(s.offsets.data);
  task.out = static_cast<char*>(s.out.data);
  task.valid = s.valid;
  task.sample_mask = s.sample_mask;
  task.episode_offsets = s.episode_offsets;
  task.rows = s.rows;
  task.window_step = s.out.stride[0] * out_size;
  task.valid_window_step = s.valid_stride[0];
  task.sample_mask_step = s.sample_mask_stride;
  task.row_step = static_cast<int32_t>(s.values_stride[0] * size);
  task.offset_stride = static_cast<int32_t>(s.offsets.stride * (s.offsets.is_64 ? 8 : 4));
  task.out_step = static_cast<int32_t>(s.out.stride[1] * out_size);
  task.valid_step = static_cast<int32_t>(s.valid_stride[1]);
  task.fill_bits = s.fill_bits;
  task.shift = factorOf(s.shift);
  task.scale = factorOf(s.scale);
  task.bias = factorOf(s.bias);
  task.low = factorOf(s.low);
  task.high = factorOf(s.high);
  launch->extras[n] = {s.times,   s.times_stride,     s.clock_offset,
                       s.neutral, s.neutral_channels, s.neutral_channels_stride};

  task.first_reference = *num_references;
  for (int32_t i = s.first_segment; i < s.first_segment + s.num_segments; ++i) {
    const WindowSegment& segment = p.segments[i];
    if (segment.kind != WindowKind::kSubtract) continue;
    const int64_t stride = p.streams[segment.reference_stream].values_stride[1];
    launch->references[(*num_references)++] = {segment.reference_begin * stride,
                                               stride,
                                               static_cast<int32_t>(segment.begin),
                                               static_cast<int32_t>(segment.begin + segment.count),
                                               segment.reference_stream,
                                               segment.reference_offset,
                                               segment.inverse};
  }
  task.num_references = *num_references - task.first_reference;
}

// Cuts windows into units, such that a lane has kItems vectors or more where there are enough.
void shareOut(const WindowProblem& p, const LaunchDevice& device, RowsLaunch* launch) {
  const auto batches = [&](const RowsTask& task, int64_t items) {
    return p.windows * task.chunks * ceilDiv(int64_t{task.num_offsets}, task.step * items);
  };
  const auto all = [&](int64_t items) {
    int64_t sum = 0;
    for (int32_t n = 0; n < p.num_streams; ++n) {
      if (launch->tasks[n].count > 0) sum += batches(launch->tasks[n], items);
    }
    return sum;
  };
  const int64_t wave = int64_t{device.multiprocessors} * kWarpsThatFit;
  int64_t items = kItems;
  while (items > 1 && all(items) < wave / 2) items /= 2;
  while (items < kMostTurns * kItems && all(items) > wave) items += kItems;
  launch->units = 0;
  for (int32_t n = 0; n < p.num_streams; ++n) {
    RowsTask& task = launch->tasks[n];
    task.first_unit = launch->units;
    task.group = 1;
    task.parts = FastDivmod(1);
    if (task.count == 0) continue;
    const int64_t groups = ceilDiv(int64_t{task.num_offsets}, task.step * items);
    const int64_t group = ceilDiv(ceilDiv(int64_t{task.num_offsets}, groups), int64_t{task.step});
    task.group = static_cast<int32_t>(group * task.step);
    const int64_t parts = ceilDiv(int64_t{task.num_offsets}, int64_t{task.group}) * task.chunks;
    task.parts = FastDivmod(parts);
    launch->units += p.windows * parts;
  }
}

}  // namespace

bool planRows(const WindowProblem& p, const LaunchDevice& device, RowsLaunch* launch) {
  int num_references = 0;
  for (int32_t n = 0; n < p.num_streams; ++n) {
    const WindowStream& s = p.streams[n];
    if (!suitsRows(s)) return false;
    const int count = writes(s) ? vectorOf(p, s) : 0;
    if (count == 0 && writes(s)) return false;
    describe(p, n, launch, &num_references);
    RowsTask& task = launch->tasks[n];
    task.count = static_cast<int8_t>(count);
    if (count == 0) continue;
    task.body = static_cast<int8_t>(rowsBody(isHalf(s.values_dtype), isHalf(s.out.dtype), count));
    task.vectors = static_cast<int32_t>(s.channels / count);
    task.chunks = static_cast<int32_t>(ceilDiv(int64_t{task.vectors}, int64_t{kWarp}));
    task.step = std::max(kWarp / task.vectors, 1);
  }
  launch->shared = {p.windows,        p.episodes,      p.episode_of,        p.anchors,
                    p.anchors_stride, p.anchor_stream, p.anchors_are_times, p.time_dtype};
  launch->num_streams = p.num_streams;
  shareOut(p, device, launch);
  return launch->units > 0 && launch->units < kFew;
}

}  // namespace windows
}  // namespace rbc::cuda
