// Which windows are gathered rows in vectors, and how they are shared out.

#include "windows/rows_plan.h"

#include <algorithm>

#include "ceil_div.h"
#include "runtime/suits_vecs.h"

namespace rbc::cuda {
namespace windows {
namespace {

constexpr int64_t kFew = int64_t{1} << 31;
constexpr int kWarpsWanted = 8;  // of a multiprocessor

bool isShort(int64_t step) { return step < kFew && step > -kFew; }

int64_t indexStep(const IndexArray& array) { return array.stride * (array.is_64 ? 8 : 4); }

// What references are read from, as well.
bool suitsRows(const WindowStream& s) {
  const int64_t size = sizeOf(s.values_dtype);
  return !s.interpolates && s.values != nullptr && s.rows < kFew && s.num_offsets < kFew / 2 &&
         s.channels < kFew / 2 && isShort(s.values_stride[0] * size) &&
         isShort(indexStep(s.offsets)) && isShort(indexStep(s.episode_offsets));
}

// Whether a factor is of each channel, and can be read in vectors of `count`.
bool suitsFactor(const RealGrid& grid, const WindowStream& s, int64_t count) {
  if (grid.data == nullptr) return true;
  if (grid.stride[0] != 0 && s.num_offsets > 1) return false;
  if (grid.stride[1] != 1 && s.out_channels > 1) return false;
  return grid.is_64 ? count <= 4 : suitsVecs(grid.data, {0}, sizeof(float), count);
}

bool suitsCount(const WindowStream& s, int64_t count) {
  if (s.channels % count != 0) return false;
  return suitsVecs(s.values, {s.values_stride[0]}, sizeOf(s.values_dtype), count) &&
         suitsVecs(s.out.data, {s.out.stride[0], s.out.stride[1]}, sizeOf(s.out.dtype), count) &&
         suitsFactor(s.shift, s, count) && suitsFactor(s.scale, s, count) &&
         suitsFactor(s.bias, s, count) && suitsFactor(s.low, s, count) &&
         suitsFactor(s.high, s, count);
}

bool subtracts(const WindowProblem& p, const WindowStream& s) {
  const WindowSegment* const segments = p.segments + s.first_segment;
  return std::any_of(segments, segments + s.num_segments, [](const WindowSegment& segment) {
    return segment.kind == WindowKind::kSubtract;
  });
}

// Channels of a vector; 0: it takes the kernel of any windows.
int vectorOf(const WindowProblem& p, const WindowStream& s) {
  if (s.out.data == nullptr || s.counted != nullptr || s.in_double || s.channels == 0) return 0;
  if (p.windows > (kFew - 1) / s.num_offsets) return 0;
  if (s.channels > 1 && (s.values_stride[1] != 1 || s.out.stride[2] != 1)) return 0;
  if (!isShort(s.out.stride[1] * sizeOf(s.out.dtype)) || !isShort(s.valid_stride[1])) return 0;
  for (int32_t i = s.first_segment; i < s.first_segment + s.num_segments; ++i) {
    if (p.segments[i].isPose()) return 0;
  }
  for (const int count : {8, 4, 2, 1}) {
    if (count == 8 && (s.clips() || subtracts(p, s))) continue;
    if (rowsBodyOf(s.values_dtype, s.out.dtype, count) >= 0 && suitsCount(s, count)) return count;
  }
  return 0;
}

uint32_t flagsOf(const WindowProblem& p, int32_t n) {
  const WindowStream& s = p.streams[n];
  const bool own = !p.anchors_are_times && n == p.anchor_stream;
  const bool by_time = p.anchors_are_times ||
                       (!own && s.times != nullptr && p.streams[p.anchor_stream].times != nullptr);
  uint32_t flags = 0;
  const auto set = [&](uint32_t flag, bool condition) { flags |= condition ? flag : 0; };
  set(kNormalizes, s.normalizes());
  set(kClips, s.clips());
  set(kSubtracts, subtracts(p, s));
  set(kFills, s.pad == WindowPad::kFill);
  set(kNeutral, s.pad == WindowPad::kNeutral);
  set(kByTime, by_time);
  set(kHasMask, s.sample_mask != nullptr);
  set(kWideOffsets, s.offsets.is_64);
  set(kWideEpisodes, s.episode_offsets.is_64);
  return flags;
}

void describe(const WindowProblem& p, int32_t n, RowsLaunch* launch, int* num_references) {
  const WindowStream& s = p.streams[n];
  RowsTask& task = launch->tasks[n];
  const int64_t out_size = sizeOf(s.out.dtype);
  task.flags = flagsOf(p, n);
  task.offsets = FastDivmod(s.num_offsets);
  task.all_rows = static_cast<int32_t>(p.windows * s.num_offsets);
  task.row_step = static_cast<int32_t>(s.values_stride[0] * sizeOf(s.values_dtype));
  task.offset_step = static_cast<int32_t>(indexStep(s.offsets));
  task.out_step = static_cast<int32_t>(s.out.stride[1] * out_size);
  task.rows = static_cast<int32_t>(s.rows);
  task.episode_step = static_cast<int32_t>(indexStep(s.episode_offsets));
  task.values = static_cast<const char*>(s.values);
  task.offset_of = static_cast<const char*>(s.offsets.data);
  task.episode_offsets = static_cast<const char*>(s.episode_offsets.data);
  task.out = static_cast<char*>(s.out.data);
  task.window_step = s.out.stride[0] * out_size;
  const RealGrid* const grids[] = {&s.shift, &s.scale, &s.bias, &s.low, &s.high};
  const void** const factors[] = {&task.shift, &task.scale, &task.bias, &task.low, &task.high};
  task.wide_factors = 0;
  for (int i = 0; i < 5; ++i) {
    *factors[i] = grids[i]->data;
    task.wide_factors |= (grids[i]->is_64 ? 1u : 0u) << i;
  }
  task.valid = s.valid;
  task.valid_step = static_cast<int32_t>(s.valid_stride[1]);
  task.valid_window_step = s.valid_stride[0];

  RowsExtra& extra = launch->extras[n];
  extra = {s.sample_mask,
           s.sample_mask_stride,
           s.times,
           s.times_stride,
           s.clock_offset,
           s.neutral,
           s.neutral_channels,
           s.neutral_channels_stride,
           s.fill_bits,
           s.values_dtype,
           s.out.dtype,
           static_cast<int32_t>(out_size),
           0,
           *num_references,
           0};
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
  extra.num_references = *num_references - extra.first_reference;
}

// Cuts windows into units, of as many rows as leave enough of them. False, if they are too many.
bool shareOut(const WindowProblem& p, const LaunchDevice& device, RowsLaunch* launch) {
  const auto units = [&](int32_t n, int64_t group) {
    const RowsTask& task = launch->tasks[n];
    const auto offsets = static_cast<int64_t>(task.offsets.divisor);
    const int64_t pieces = (task.flags & kSubtracts) != 0 ? p.windows * ceilDiv(offsets, group)
                                                          : ceilDiv(p.windows * offsets, group);
    return pieces * static_cast<int64_t>(task.chunks.divisor);
  };
  const auto all = [&](int64_t group) {
    int64_t sum = 0;
    for (int32_t n = 0; n < p.num_streams; ++n) {
      if (launch->extras[n].count > 0) sum += units(n, group);
    }
    return sum;
  };
  const int64_t wanted = int64_t{device.multiprocessors} * kWarpsWanted;
  int64_t rows = kWarp;
  while (rows > 1 && all(rows) < wanted) rows /= 2;
  int64_t first = 0;
  for (int32_t n = 0; n < p.num_streams; ++n) {
    RowsTask& task = launch->tasks[n];
    launch->first_unit[n] = static_cast<int32_t>(first);
    task.parts = FastDivmod(1);
    if (launch->extras[n].count == 0) continue;
    int64_t group = std::min<int64_t>(ceilDiv(rows, int64_t{task.step}) * task.step, kWarp);
    if ((task.flags & kSubtracts) != 0) {
      const auto offsets = static_cast<int64_t>(task.offsets.divisor);
      const int64_t parts = ceilDiv(offsets, group);
      group = ceilDiv(offsets, parts);
      task.parts = FastDivmod(parts);
    }
    task.group = static_cast<int32_t>(group);
    first += units(n, group);
    if (first >= kFew) return false;
  }
  launch->units = static_cast<int32_t>(first);
  return first > 0;
}

}  // namespace

bool planRows(const WindowProblem& p, const LaunchDevice& device, RowsLaunch* launch) {
  if (p.windows >= kFew) return false;
  const int64_t anchor_size = p.anchors_are_times ? sizeOf(p.time_dtype) : 8;
  if (!isShort(p.anchors_stride * anchor_size) || !isShort(indexStep(p.episode_of))) return false;
  int num_references = 0;
  for (int32_t n = 0; n < p.num_streams; ++n) {
    const WindowStream& s = p.streams[n];
    if (!suitsRows(s)) return false;
    const int count = writes(s) ? vectorOf(p, s) : 0;
    if (count == 0 && writes(s)) return false;
    describe(p, n, launch, &num_references);
    launch->extras[n].count = count;
    if (count == 0) continue;
    RowsTask& task = launch->tasks[n];
    task.body = rowsBodyOf(s.values_dtype, s.out.dtype, count);
    const int64_t vectors = s.channels / count;
    task.vectors = static_cast<int32_t>(vectors);
    task.chunks = FastDivmod(ceilDiv(vectors, int64_t{kWarp}));
    task.width = static_cast<int32_t>(std::min<int64_t>(vectors, kWarp));
    task.per_width = static_cast<uint32_t>(ceilDiv(int64_t{1} << 16, int64_t{task.width}));
    task.step = kWarp / task.width;
  }
  launch->num_streams = p.num_streams;
  launch->episode_of = static_cast<const char*>(p.episode_of.data);
  launch->anchors = static_cast<const char*>(p.anchors);
  launch->episodes = p.episodes;
  launch->episode_step = static_cast<int32_t>(indexStep(p.episode_of));
  launch->anchor_step = static_cast<int32_t>(p.anchors_stride * anchor_size);
  launch->wide_episodes = p.episode_of.is_64;
  launch->anchors_are_times = p.anchors_are_times;
  launch->time_dtype = p.time_dtype;
  launch->anchor_stream = p.anchor_stream;
  return shareOut(p, device, launch);
}

}  // namespace windows
}  // namespace rbc::cuda
