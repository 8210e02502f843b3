// Which windows the kernel of rows suits, and how they are shared out.

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

bool isRowFloat(DType dtype) { return isFloat(dtype) && dtype != DType::F64; }

// Channels of a stream that a task takes.
struct Channels {
  int64_t begin;
  int64_t count;
  int64_t out_begin;
};

// Collects the tasks of a problem. Every function is false where one does not suit.
class RowsPlan {
 public:
  RowsPlan(const WindowProblem& p, RowsLaunch* launch) : p_(p), launch_(*launch) {}

  bool add() {
    for (int32_t n = 0; n < p_.num_streams; ++n) {
      const WindowStream& s = p_.streams[n];
      first_task_[n] = num_tasks_;
      if (!suitsRows(s) || !addStream(n)) return false;
    }
    if (!addReferences()) return false;
    launch_.num_tasks = num_tasks_;
    launch_.anchor_task = first_task_[p_.anchor_stream];
    return true;
  }

 private:
  // What references are read from, as well.
  bool suitsRows(const WindowStream& s) const {
    const int64_t offset_step =
        s.interpolates ? s.offsets.stride * sizeOf(p_.time_dtype) : indexStep(s.offsets);
    return s.values != nullptr && s.rows < kFew / 2 && s.num_offsets < kFew / 2 &&
           s.channels < kFew / 2 && isShort(s.values_stride[0] * sizeOf(s.values_dtype)) &&
           isShort(offset_step) && isShort(indexStep(s.episode_offsets));
  }

  bool suitsWriting(const WindowStream& s) const {
    return s.out.data != nullptr && s.counted == nullptr && !s.in_double && s.channels > 0 &&
           isRowFloat(s.values_dtype) && isFloat(s.out.dtype) &&
           p_.windows <= (kFew - 1) / s.num_offsets &&
           (s.out_channels == 1 || s.out.stride[2] == 1) &&
           isShort(s.out.stride[1] * sizeOf(s.out.dtype)) && isShort(s.valid_stride[1]) &&
           std::all_of(kGrids, kGrids + kNumGrids,
                       [&](Grid grid) { return perChannel(s.*grid, s); });
  }

  bool suitsReferences(const WindowStream& s) const {
    const WindowSegment* const segments = p_.segments + s.first_segment;
    return std::none_of(segments, segments + s.num_segments, [&](const WindowSegment& segment) {
      return segment.kind != WindowKind::kCopy && p_.streams[segment.reference_stream].interpolates;
    });
  }

  // Whether a factor is of each channel alone.
  static bool perChannel(const RealGrid& grid, const WindowStream& s) {
    return grid.data == nullptr || ((grid.stride[0] == 0 || s.num_offsets == 1) &&
                                    (grid.stride[1] == 1 || s.out_channels == 1));
  }

  bool addStream(int32_t n) {
    const WindowStream& s = p_.streams[n];
    if (!writes(s)) return addTask(n, {0, 0, 0}, 0, kPosesBody);
    if (!suitsWriting(s) || !suitsReferences(s)) return false;
    if (s.interpolates) return addInterpolated(n);
    return hasPoses(p_, s) ? addPoses(n) : addVectors(n, {0, s.channels, 0}, RowsKind::kCopy);
  }

  // A task of each method. The one that may find quaternions that are none tells what is valid.
  bool addInterpolated(int32_t n) {
    const WindowStream& s = p_.streams[n];
    if (s.sample_mask != nullptr || hasPoses(p_, s)) return false;
    int quaternions = 0;
    bool steps = false;
    for (int32_t i = 0; i < s.num_methods; ++i) {
      const Method method = p_.methods[s.first_method + i].method;
      if (takesFour(method) || isInTurn(method)) return false;
      quaternions += method == Method::kSlerp ? 1 : 0;
      steps |= isStep(method);
    }
    if (quaternions > 1 || (steps && s.num_methods > 1)) return false;
    bool told = false;
    for (int32_t i = 0; i < s.num_methods; ++i) {
      const ChannelSegment& m = p_.methods[s.first_method + i];
      const bool is_slerp = m.method == Method::kSlerp;
      if (!addVectors(n, {m.begin, m.count, m.begin},
                      is_slerp ? RowsKind::kQuaternion : RowsKind::kLine)) {
        return false;
      }
      RowsTask& task = launch_.tasks[num_tasks_ - 1];
      RowsExtra& extra = launch_.extras[num_tasks_ - 1];
      extra.method = m.method;
      task.flags |= m.method == Method::kAngle ? kAngles : 0;
      if (is_slerp && task.chunks.divisor > 1) return false;
      const bool tells = quaternions > 0 ? is_slerp : !told;
      if (!tells) task.valid = nullptr;
      told = true;
    }
    return true;
  }

  // A task of all poses, which tells what is valid, and one of each run of other channels.
  bool addPoses(int32_t n) {
    const WindowStream& s = p_.streams[n];
    if (!addTask(n, {0, s.channels, 0}, 1, kPosesBody)) return false;
    RowsExtra& extra = launch_.extras[num_tasks_ - 1];
    extra.first_pose = num_poses_;
    const WindowSegment* const segments = p_.segments + s.first_segment;
    for (int32_t i = 0; i < s.num_segments; ++i) {
      const WindowSegment& segment = segments[i];
      if (segment.kind == WindowKind::kSubtract || segment.isSum()) return false;
      if (!segment.isPose()) continue;
      const WindowStream& reference = p_.streams[segment.reference_stream];
      if (segment.out_rotation.kind == RotationKind::Euler || !isRowFloat(reference.values_dtype) ||
          num_poses_ == kMaxRowsPoses) {
        return false;
      }
      launch_.poses[num_poses_++] = {segment, segment.reference_stream, s.values_stride[1],
                                     reference.values_stride[1]};
      ++extra.num_poses;
    }
    for (int32_t i = 0; i < s.num_segments; ++i) {
      const WindowSegment& segment = segments[i];
      if (segment.isPose()) continue;
      if (!addVectors(n, {segment.begin, segment.count, segment.out_begin}, RowsKind::kCopy)) {
        return false;
      }
      launch_.tasks[num_tasks_ - 1].valid = nullptr;
    }
    return true;
  }

  // Of whole vectors.
  bool addVectors(int32_t n, const Channels& channels, RowsKind kind) {
    const WindowStream& s = p_.streams[n];
    if (s.channels > 1 && s.values_stride[1] != 1) return false;
    const bool limited = s.clips() || subtracts(s);
    for (const int count : {8, 4, 2, 1}) {
      if (count == 8 && limited) continue;
      const int body = rowsBodyOf(kind, s.values_dtype, s.out.dtype, count);
      if (body >= 0 && suitsVectors(s, channels, count)) return addTask(n, channels, count, body);
    }
    return false;
  }

  static bool suitsVectors(const WindowStream& s, const Channels& channels, int64_t count) {
    const int64_t size = sizeOf(s.values_dtype);
    const int64_t out_size = sizeOf(s.out.dtype);
    const auto at = [](const void* data, int64_t bytes) {
      return static_cast<const char*>(data) + bytes;
    };
    return channels.count % count == 0 &&
           suitsVecs(at(s.values, channels.begin * size), {s.values_stride[0]}, size, count) &&
           suitsVecs(at(s.out.data, channels.out_begin * out_size),
                     {s.out.stride[0], s.out.stride[1]}, out_size, count) &&
           std::all_of(kGrids, kGrids + kNumGrids, [&](Grid member) {
             const RealGrid& grid = s.*member;
             if (grid.data == nullptr) return true;
             if (grid.is_64) return count <= 4;
             return suitsVecs(at(grid.data, channels.out_begin * 4), {0}, sizeof(float), count);
           });
  }

  bool subtracts(const WindowStream& s) const {
    const WindowSegment* const segments = p_.segments + s.first_segment;
    return std::any_of(segments, segments + s.num_segments, [](const WindowSegment& segment) {
      return segment.kind == WindowKind::kSubtract;
    });
  }

  uint32_t flagsOf(int32_t n) const {
    const WindowStream& s = p_.streams[n];
    const bool own = !p_.anchors_are_times && n == p_.anchor_stream;
    const bool by_time = p_.anchors_are_times || (!own && s.times != nullptr &&
                                                  p_.streams[p_.anchor_stream].times != nullptr);
    uint32_t flags = 0;
    const auto set = [&](uint32_t flag, bool condition) { flags |= condition ? flag : 0; };
    set(kNormalizes, s.normalizes());
    set(kClips, s.clips());
    set(kSubtracts, subtracts(s));
    set(kFills, s.pad == WindowPad::kFill);
    set(kNeutral, s.pad == WindowPad::kNeutral);
    set(kByTime, by_time);
    set(kHasMask, s.sample_mask != nullptr);
    set(kWideOffsets, s.offsets.is_64);
    set(kWideEpisodes, s.episode_offsets.is_64);
    set(kInterpolates, s.interpolates);
    return flags;
  }

  // In vectors of `count` channels; 0: nothing is written.
  bool addTask(int32_t n, const Channels& channels, int count, int body) {
    if (num_tasks_ == kMaxRowsTasks) return false;
    const WindowStream& s = p_.streams[n];
    RowsTask& task = launch_.tasks[num_tasks_];
    RowsExtra& extra = launch_.extras[num_tasks_++];
    const int64_t size = sizeOf(s.values_dtype);
    const int64_t out_size = sizeOf(s.out.dtype);
    const int64_t vectors = body == kPosesBody ? 1 : channels.count / count;
    task.flags = flagsOf(n);
    task.body = body;
    task.vectors = static_cast<int32_t>(vectors);
    task.width = static_cast<int32_t>(std::min<int64_t>(vectors, kWarp));
    task.per_width = static_cast<uint32_t>(ceilDiv(int64_t{1} << 16, int64_t{task.width}));
    task.step = kWarp / task.width;
    task.chunks = FastDivmod(ceilDiv(vectors, int64_t{kWarp}));
    task.offsets = FastDivmod(s.num_offsets);
    task.all_rows = static_cast<int32_t>(count > 0 ? p_.windows * s.num_offsets : 0);
    task.row_step = static_cast<int32_t>(s.values_stride[0] * size);
    task.offset_step = static_cast<int32_t>(
        s.interpolates ? s.offsets.stride * sizeOf(p_.time_dtype) : indexStep(s.offsets));
    task.out_step = static_cast<int32_t>(s.out.stride[1] * out_size);
    task.rows = static_cast<int32_t>(s.rows);
    task.episode_step = static_cast<int32_t>(indexStep(s.episode_offsets));
    task.values = static_cast<const char*>(s.values) + channels.begin * s.values_stride[1] * size;
    task.offset_of = static_cast<const char*>(s.offsets.data);
    task.episode_offsets = static_cast<const char*>(s.episode_offsets.data);
    task.out = static_cast<char*>(s.out.data);
    if (s.out.data != nullptr) task.out += channels.out_begin * s.out.stride[2] * out_size;
    task.window_step = s.out.stride[0] * out_size;
    const void** const factors[] = {&task.shift, &task.scale, &task.bias, &task.low, &task.high};
    task.wide_factors = 0;
    for (int i = 0; i < kNumGrids; ++i) {
      const RealGrid& grid = s.*kGrids[i];
      *factors[i] = grid.data;
      if (grid.data == nullptr) continue;
      *factors[i] = static_cast<const char*>(grid.data) + channels.out_begin * (grid.is_64 ? 8 : 4);
      task.wide_factors |= (grid.is_64 ? 1u : 0u) << i;
    }
    task.valid = s.valid;
    task.valid_step = static_cast<int32_t>(s.valid_stride[1]);
    task.valid_window_step = s.valid_stride[0];

    extra = {};
    extra.sample_mask = s.sample_mask;
    extra.sample_mask_step = s.sample_mask_stride;
    extra.times = s.times;
    extra.times_stride = s.times_stride;
    extra.clock_offset = s.clock_offset;
    extra.max_gap = s.max_gap;
    extra.tolerance = s.tolerance;
    extra.neutral = s.neutral;
    extra.neutral_channels = s.neutral_channels;
    extra.neutral_channels_stride = s.neutral_channels_stride;
    extra.fill_bits = s.fill_bits;
    extra.bounds = s.pad == WindowPad::kFill ? Bounds::kFill : Bounds::kHold;
    extra.in = s.values_dtype;
    extra.out = s.out.dtype;
    extra.out_size = static_cast<int32_t>(out_size);
    extra.count = count;
    extra.channel = static_cast<int32_t>(channels.begin);
    extra.out_channel = static_cast<int32_t>(channels.out_begin);
    stream_of_[num_tasks_ - 1] = n;
    return true;
  }

  // Once all tasks are known.
  bool addReferences() {
    int32_t number = 0;
    for (int32_t t = 0; t < num_tasks_; ++t) {
      const WindowStream& s = p_.streams[stream_of_[t]];
      RowsExtra& extra = launch_.extras[t];
      // All tasks of a stream have the same ones.
      if (t > 0 && stream_of_[t - 1] == stream_of_[t]) {
        extra.first_reference = launch_.extras[t - 1].first_reference;
        extra.num_references = launch_.extras[t - 1].num_references;
        continue;
      }
      extra.first_reference = number;
      for (int32_t i = s.first_segment; i < s.first_segment + s.num_segments; ++i) {
        const WindowSegment& segment = p_.segments[i];
        if (segment.kind != WindowKind::kSubtract) continue;
        if (number == kMaxRowsReferences) return false;
        const int32_t task = first_task_[segment.reference_stream];
        const int64_t stride = p_.streams[segment.reference_stream].values_stride[1];
        launch_.references[number++] = {
            (segment.reference_begin - launch_.extras[task].channel) * stride,
            stride,
            static_cast<int32_t>(segment.begin),
            static_cast<int32_t>(segment.begin + segment.count),
            task,
            segment.reference_offset,
            segment.inverse};
      }
      extra.num_references = number - extra.first_reference;
    }
    for (int32_t i = 0; i < num_poses_; ++i) {
      launch_.poses[i].task = first_task_[launch_.poses[i].segment.reference_stream];
    }
    return true;
  }

  using Grid = RealGrid WindowStream::*;
  static constexpr int kNumGrids = 5;
  static constexpr Grid kGrids[] = {&WindowStream::shift, &WindowStream::scale, &WindowStream::bias,
                                    &WindowStream::low, &WindowStream::high};

  const WindowProblem& p_;
  RowsLaunch& launch_;
  int32_t num_tasks_ = 0;
  int32_t num_poses_ = 0;
  int32_t first_task_[kMaxWindowStreams] = {};
  int32_t stream_of_[kMaxRowsTasks] = {};
};

// Cuts windows into units, of as many rows as leave enough of them. False, if they are too many.
bool shareOut(int64_t windows, const LaunchDevice& device, RowsLaunch* launch) {
  const auto units = [&](int32_t t, int64_t group) {
    const RowsTask& task = launch->tasks[t];
    if (launch->extras[t].count == 0) return int64_t{0};
    const auto offsets = static_cast<int64_t>(task.offsets.divisor);
    const int64_t pieces = (task.flags & kSubtracts) != 0 ? windows * ceilDiv(offsets, group)
                                                          : ceilDiv(windows * offsets, group);
    return pieces * static_cast<int64_t>(task.chunks.divisor);
  };
  const auto all = [&](int64_t group) {
    int64_t sum = 0;
    for (int32_t t = 0; t < launch->num_tasks; ++t) sum += units(t, group);
    return sum;
  };
  const int64_t wanted = int64_t{device.multiprocessors} * kWarpsWanted;
  int64_t rows = kWarp;
  while (rows > 1 && all(rows) < wanted) rows /= 2;
  int64_t first = 0;
  for (int32_t t = 0; t < launch->num_tasks; ++t) {
    RowsTask& task = launch->tasks[t];
    launch->first_unit[t] = static_cast<int32_t>(first);
    task.parts = FastDivmod(1);
    int64_t group = std::min<int64_t>(ceilDiv(rows, int64_t{task.step}) * task.step, kWarp);
    if (task.body == kPosesBody) group = rows;
    if ((task.flags & kSubtracts) != 0) {
      const auto offsets = static_cast<int64_t>(task.offsets.divisor);
      const int64_t parts = ceilDiv(offsets, group);
      group = ceilDiv(offsets, parts);
      task.parts = FastDivmod(parts);
    }
    task.group = static_cast<int32_t>(group);
    first += units(t, group);
    if (first >= kFew) return false;
  }
  launch->units = static_cast<int32_t>(first);
  return first > 0;
}

}  // namespace

bool hasPoses(const WindowProblem& p, const WindowStream& s) {
  const WindowSegment* const segments = p.segments + s.first_segment;
  return std::any_of(segments, segments + s.num_segments,
                     [](const WindowSegment& segment) { return segment.isPose(); });
}

bool hasPoses(const WindowProblem& p) {
  return std::any_of(p.streams, p.streams + p.num_streams,
                     [&](const WindowStream& s) { return hasPoses(p, s); });
}

bool planRows(const WindowProblem& p, const LaunchDevice& device, RowsLaunch* launch) {
  const int64_t anchor_size = p.anchors_are_times ? sizeOf(p.time_dtype) : 8;
  if (p.windows >= kFew || !isShort(p.anchors_stride * anchor_size) ||
      !isShort(indexStep(p.episode_of))) {
    return false;
  }
  launch->episode_of = static_cast<const char*>(p.episode_of.data);
  launch->anchors = static_cast<const char*>(p.anchors);
  launch->episodes = p.episodes;
  launch->episode_step = static_cast<int32_t>(indexStep(p.episode_of));
  launch->anchor_step = static_cast<int32_t>(p.anchors_stride * anchor_size);
  launch->wide_episodes = p.episode_of.is_64;
  launch->anchors_are_times = p.anchors_are_times;
  launch->time_dtype = p.time_dtype;
  return RowsPlan(p, launch).add() && shareOut(p.windows, device, launch);
}

}  // namespace windows
}  // namespace rbc::cuda
