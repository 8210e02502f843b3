// The conditions of the kernel of rows, and how both window kernels divide their work.

#include "windows/select.h"

#include <algorithm>

#include "ceil_div.h"
#include "runtime/conditions.h"
#include "runtime/suits_vecs.h"

namespace rbc::cuda {
namespace windows {
namespace {

constexpr int64_t kFew = int64_t{1} << 31;
constexpr int kWarpsWanted = 8;  // per multiprocessor

bool isShort(int64_t step) { return step < kFew && step > -kFew; }

int64_t indexStep(const IndexArray& array) { return array.stride * (array.is_64 ? 8 : 4); }

bool isRowFloat(DType dtype) { return isFloat(dtype) && dtype != DType::F64; }

using Grid = RealGrid WindowStream::*;
constexpr int kNumGrids = 5;
constexpr Grid kGrids[] = {&WindowStream::shift, &WindowStream::scale, &WindowStream::bias,
                           &WindowStream::low, &WindowStream::high};

// Whether a factor depends only on the channel.
bool perChannel(const RealGrid& grid, const WindowStream& s) {
  return grid.data == nullptr || ((grid.stride[0] == 0 || s.num_offsets == 1) &&
                                  (grid.stride[1] == 1 || s.out_channels == 1));
}

int64_t offsetStep(const WindowProblem& p, const WindowStream& s) {
  return s.interpolates ? s.offsets.stride * sizeOf(p.time_dtype) : indexStep(s.offsets);
}

int64_t anchorStep(const WindowProblem& p) {
  return p.anchors_stride * (p.anchors_are_times ? sizeOf(p.time_dtype) : 8);
}

bool hasPoses(const WindowProblem& p, const WindowStream& s) {
  const WindowSegment* const segments = p.segments + s.first_segment;
  return std::any_of(segments, segments + s.num_segments,
                     [](const WindowSegment& segment) { return segment.isPose(); });
}

bool hasPoses(const WindowProblem& p) {
  return std::any_of(p.streams, p.streams + p.num_streams,
                     [&](const WindowStream& s) { return hasPoses(p, s); });
}

bool divides(const WindowProblem& p) {
  return std::any_of(p.streams, p.streams + p.num_streams,
                     [](const WindowStream& s) { return s.divides; });
}

// ---- conditions ---------------------------------------------------------------------------------

using OfProblem = Condition<WindowProblem>;
using OfStream = Condition<WindowProblem, WindowStream>;

constexpr OfProblem kCall[] = {
    {[](const WindowProblem& p) { return p.causal == nullptr; },
     "arrivals or RBC_FLAG_CAUSAL: set, expected none", nullptr},
    {[](const WindowProblem& p) { return p.windows < kFew; },
     "windows: {}, too many for 32-bit indexes", [](const WindowProblem& p) { return p.windows; }},
    {[](const WindowProblem& p) { return isShort(anchorStep(p)); },
     "anchors: stride {}, too large for 32-bit indexes",
     [](const WindowProblem& p) { return p.anchors_stride; }},
    {[](const WindowProblem& p) { return isShort(indexStep(p.episode_of)); },
     "episode_of: stride {}, too large for 32-bit indexes",
     [](const WindowProblem& p) { return p.episode_of.stride; }},
};

// Conditions on every stream: references may be read from streams that are not written.
constexpr OfStream kRead[] = {
    {[](const WindowProblem&, const WindowStream& s) { return s.values != nullptr; },
     "values: none, only row numbers are wanted", nullptr},
    {[](const WindowProblem&, const WindowStream& s) { return s.rows < kFew / 2; },
     "values: {} rows, too many for 32-bit indexes",
     [](const WindowProblem&, const WindowStream& s) { return s.rows; }},
    {[](const WindowProblem&, const WindowStream& s) { return s.num_offsets < kFew / 2; },
     "offsets: {}, too many for 32-bit indexes",
     [](const WindowProblem&, const WindowStream& s) { return s.num_offsets; }},
    {[](const WindowProblem&, const WindowStream& s) { return s.channels < kFew / 2; },
     "values: {} channels, too many for 32-bit indexes",
     [](const WindowProblem&, const WindowStream& s) { return s.channels; }},
    {[](const WindowProblem&, const WindowStream& s) {
       return isShort(s.values_stride[0] * sizeOf(s.values_dtype));
     },
     "values: stride {} of rows, too large for 32-bit indexes",
     [](const WindowProblem&, const WindowStream& s) { return s.values_stride[0]; }},
    {[](const WindowProblem& p, const WindowStream& s) { return isShort(offsetStep(p, s)); },
     "offsets: stride {}, too large for 32-bit indexes",
     [](const WindowProblem&, const WindowStream& s) { return s.offsets.stride; }},
    {[](const WindowProblem&, const WindowStream& s) {
       return isShort(indexStep(s.episode_offsets));
     },
     "episode_offsets: stride {}, too large for 32-bit indexes",
     [](const WindowProblem&, const WindowStream& s) { return s.episode_offsets.stride; }},
};

// Conditions on a stream whose windows are written.
constexpr OfStream kWritten[] = {
    {[](const WindowProblem&, const WindowStream& s) { return s.out.data != nullptr; },
     "out: not wanted, only valid or an accumulator", nullptr},
    {[](const WindowProblem&, const WindowStream& s) { return s.counted == nullptr; },
     "accumulator: takes the windows", nullptr},
    {[](const WindowProblem&, const WindowStream& s) { return !s.in_double; },
     "values or references: computed in float64", nullptr},
    {[](const WindowProblem&, const WindowStream& s) { return s.channels > 0; },
     "values: no channels", nullptr},
    {[](const WindowProblem&, const WindowStream& s) { return isRowFloat(s.values_dtype); },
     "values: {dtype}, expected float16, bfloat16 or float32",
     [](const WindowProblem&, const WindowStream& s) {
       return static_cast<int64_t>(s.values_dtype);
     }},
    {[](const WindowProblem&, const WindowStream& s) { return isFloat(s.out.dtype); },
     "out: {dtype}, expected a float",
     [](const WindowProblem&, const WindowStream& s) { return static_cast<int64_t>(s.out.dtype); }},
    {[](const WindowProblem& p, const WindowStream& s) {
       return p.windows <= (kFew - 1) / s.num_offsets;
     },
     "offsets: {} of each window, too many for 32-bit indexes",
     [](const WindowProblem&, const WindowStream& s) { return s.num_offsets; }},
    {[](const WindowProblem&, const WindowStream& s) {
       return s.out_channels == 1 || s.out.stride[2] == 1;
     },
     "out: stride {} of channels, expected 1",
     [](const WindowProblem&, const WindowStream& s) { return s.out.stride[2]; }},
    {[](const WindowProblem&, const WindowStream& s) {
       return isShort(s.out.stride[1] * sizeOf(s.out.dtype));
     },
     "out: stride {} of offsets, too large for 32-bit indexes",
     [](const WindowProblem&, const WindowStream& s) { return s.out.stride[1]; }},
    {[](const WindowProblem&, const WindowStream& s) { return isShort(s.valid_stride[1]); },
     "valid: stride {} of offsets, too large for 32-bit indexes",
     [](const WindowProblem&, const WindowStream& s) { return s.valid_stride[1]; }},
    {[](const WindowProblem&, const WindowStream& s) {
       return std::all_of(kGrids, kGrids + kNumGrids,
                          [&](Grid grid) { return perChannel(s.*grid, s); });
     },
     "shift, scale, bias, clip_min or clip_max: expected an array of channels with stride 1",
     nullptr},
    {[](const WindowProblem& p, const WindowStream& s) {
       const WindowSegment* const segments = p.segments + s.first_segment;
       return std::none_of(segments, segments + s.num_segments, [&](const WindowSegment& segment) {
         return segment.kind != WindowKind::kCopy &&
                p.streams[segment.reference_stream].interpolates;
       });
     },
     "transforms: a reference of a stream that is interpolated", nullptr},
};

// Conditions on an interpolated stream.
constexpr OfStream kInterpolated[] = {
    {[](const WindowProblem&, const WindowStream& s) { return s.sample_mask == nullptr; },
     "sample_mask: set on a stream that is interpolated", nullptr},
    {[](const WindowProblem& p, const WindowStream& s) { return !hasPoses(p, s); },
     "transforms: poses of interpolated values", nullptr},
    {[](const WindowProblem& p, const WindowStream& s) {
       const ChannelSegment* const methods = p.methods + s.first_method;
       return std::none_of(methods, methods + s.num_methods, [](const ChannelSegment& m) {
         return takesFour(m.method) || isInTurn(m.method);
       });
     },
     "method: cubic, pchip, or an angle that is not in -pi to pi", nullptr},
    {[](const WindowProblem& p, const WindowStream& s) {
       const ChannelSegment* const methods = p.methods + s.first_method;
       return std::count_if(methods, methods + s.num_methods, [](const ChannelSegment& m) {
                return m.method == Method::kSlerp;
              }) <= 1;
     },
     "method: slerp of more than one group of channels", nullptr},
    {[](const WindowProblem& p, const WindowStream& s) {
       const ChannelSegment* const methods = p.methods + s.first_method;
       return s.num_methods <= 1 ||
              std::none_of(methods, methods + s.num_methods,
                           [](const ChannelSegment& m) { return isStep(m.method); });
     },
     "method: a step together with other methods", nullptr},
};

// ---- the plan of rows ---------------------------------------------------------------------------

// Channels of a stream in one task.
struct Channels {
  int64_t begin;
  int64_t count;
  int64_t out_begin;
};

// Collects the tasks of a problem. Every function returns false, with a reason, if a task is not
// possible.
class RowsPlan {
 public:
  RowsPlan(const WindowProblem& p, RowsLaunch* launch, Refusal* refusal)
      : p_(p), launch_(*launch), refusal_(refusal) {}

  bool add() {
    const bool added = meetsAll(refusal_, "streams", p_.num_streams, [&](Refusal*, int32_t n) {
      first_task_[n] = num_tasks_;
      return meets<kRead>(refusal_, p_, p_.streams[n]) && addStream(n);
    });
    if (!added || !addReferences()) return false;
    launch_.num_tasks = num_tasks_;
    launch_.anchor_task = first_task_[p_.anchor_stream];
    return true;
  }

 private:
  bool addStream(int32_t n) {
    const WindowStream& s = p_.streams[n];
    if (!writes(s)) return addTask(n, {0, 0, 0}, 0, kPosesBody);
    if (!meets<kWritten>(refusal_, p_, s)) return false;
    if (s.interpolates) return addInterpolated(n);
    return hasPoses(p_, s) ? addPoses(n) : addVectors(n, {0, s.channels, 0}, RowsKind::kCopy);
  }

  // One task per method. The one that may find invalid quaternions writes the masks.
  bool addInterpolated(int32_t n) {
    const WindowStream& s = p_.streams[n];
    if (!meets<kInterpolated>(refusal_, p_, s)) return false;
    const ChannelSegment* const methods = p_.methods + s.first_method;
    const bool quaternions = std::any_of(methods, methods + s.num_methods,
                                         [](const auto& m) { return m.method == Method::kSlerp; });
    bool has_writer = false;
    for (int32_t i = 0; i < s.num_methods; ++i) {
      const ChannelSegment& m = methods[i];
      const bool is_slerp = m.method == Method::kSlerp;
      if (!addVectors(n, {m.begin, m.count, m.begin},
                      is_slerp ? RowsKind::kQuaternion : RowsKind::kLine)) {
        return false;
      }
      RowsTask& task = launch_.tasks[num_tasks_ - 1];
      RowsExtra& extra = launch_.extras[num_tasks_ - 1];
      extra.method = m.method;
      task.flags |= m.method == Method::kAngle ? kAngles : 0;
      if (is_slerp && task.chunks.divisor > 1) {
        return refuse(refusal_, "method: {} channels of slerp, expected 128 or fewer", m.count);
      }
      const bool writes_masks = quaternions ? is_slerp : !has_writer;
      if (!writes_masks) task.valid = nullptr;
      has_writer = true;
    }
    return true;
  }

  // One task for all poses, which writes the masks, and one for each run of other channels.
  bool addPoses(int32_t n) {
    const WindowStream& s = p_.streams[n];
    if (!addTask(n, {0, s.channels, 0}, 1, kPosesBody)) return false;
    RowsExtra& extra = launch_.extras[num_tasks_ - 1];
    extra.first_pose = num_poses_;
    const WindowSegment* const segments = p_.segments + s.first_segment;
    for (int32_t i = 0; i < s.num_segments; ++i) {
      const WindowSegment& segment = segments[i];
      if (segment.kind == WindowKind::kSubtract || segment.isSum()) {
        return refuse(refusal_, "transforms: poses together with a difference, or a sum of steps",
                      0);
      }
      if (!segment.isPose()) continue;
      const WindowStream& reference = p_.streams[segment.reference_stream];
      if (segment.out_rotation.kind == RotationKind::Euler) {
        return refuse(refusal_, "transforms: Euler angles are written, which take more precision",
                      0);
      }
      if (!isRowFloat(reference.values_dtype)) {
        return refuse(refusal_, "transforms: a reference of {dtype}, expected float32 or shorter",
                      static_cast<int64_t>(reference.values_dtype));
      }
      if (num_poses_ == kMaxRowsPoses) {
        return refuse(refusal_, "transforms: more than {} poses in a call", kMaxRowsPoses);
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

  // In whole vectors.
  bool addVectors(int32_t n, const Channels& channels, RowsKind kind) {
    const WindowStream& s = p_.streams[n];
    if (s.channels > 1 && s.values_stride[1] != 1) {
      return refuse(refusal_, "values: stride {} of channels, expected 1", s.values_stride[1]);
    }
    const bool limited = s.clips() || subtracts(s);
    for (const int count : {8, 4, 2, 1}) {
      if (count == 8 && limited) continue;
      const int body = rowsBodyOf(kind, s.values_dtype, s.out.dtype, count);
      if (body >= 0 && suitsVectors(s, channels, count)) return addTask(n, channels, count, body);
    }
    return refuse(refusal_,
                  "values: {dtype}, no kernel from it to the dtype of out and its alignment",
                  static_cast<int64_t>(s.values_dtype));
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
    set(kDivides, s.divides);
    set(kClips, s.clips());
    set(kSubtracts, subtracts(s));
    set(kFills, s.outside == Outside::kFill);
    set(kNeutral, s.outside == Outside::kNeutral);
    set(kByTime, by_time);
    set(kHasMask, s.sample_mask != nullptr);
    set(kWideOffsets, s.offsets.is_64);
    set(kWideEpisodes, s.episode_offsets.is_64);
    set(kInterpolates, s.interpolates);
    return flags;
  }

  // In vectors of `count` channels; 0: nothing is written.
  bool addTask(int32_t n, const Channels& channels, int count, int body) {
    if (num_tasks_ == kMaxRowsTasks) {
      return refuse(refusal_, "methods, transforms: more than {} groups of channels in a call",
                    kMaxRowsTasks);
    }
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
    task.offset_step = static_cast<int32_t>(offsetStep(p_, s));
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
    extra.outside = s.outside == Outside::kFill ? Outside::kFill : Outside::kHold;
    extra.in = s.values_dtype;
    extra.out = s.out.dtype;
    extra.out_size = static_cast<int32_t>(out_size);
    extra.count = count;
    extra.channel = static_cast<int32_t>(channels.begin);
    extra.out_channel = static_cast<int32_t>(channels.out_begin);
    stream_of_[num_tasks_ - 1] = n;
    return true;
  }

  // Call when all tasks are known.
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
        if (number == kMaxRowsReferences) {
          return refuse(refusal_, "transforms: more than {} differences in a call",
                        kMaxRowsReferences);
        }
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

  const WindowProblem& p_;
  RowsLaunch& launch_;
  Refusal* const refusal_;
  int32_t num_tasks_ = 0;
  int32_t num_poses_ = 0;
  int32_t first_task_[kMaxWindowStreams] = {};
  int32_t stream_of_[kMaxRowsTasks] = {};
};

// Divides windows into units, with as many rows as leave enough units. Returns false if there are
// too many.
bool shareOut(int64_t windows, const LaunchDevice& device, RowsLaunch* launch, Refusal* refusal) {
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
    if (first >= kFew) return refuse(refusal, "windows: too many for 32-bit indexes", 0);
  }
  launch->units = static_cast<int32_t>(first);
  return first > 0 || refuse(refusal, "outputs: none is wanted", 0);
}

// Fills in the launch; returns false if some stream needs the kernel of any windows.
bool planRows(const WindowProblem& p, const LaunchDevice& device, RowsLaunch* launch,
              Refusal* refusal) {
  if (!meets<kCall>(refusal, p)) return false;
  launch->episode_of = static_cast<const char*>(p.episode_of.data);
  launch->anchors = static_cast<const char*>(p.anchors);
  launch->episodes = p.episodes;
  launch->episode_step = static_cast<int32_t>(indexStep(p.episode_of));
  launch->anchor_step = static_cast<int32_t>(anchorStep(p));
  launch->wide_episodes = p.episode_of.is_64;
  launch->anchors_are_times = p.anchors_are_times;
  launch->time_dtype = p.time_dtype;
  return RowsPlan(p, launch, refusal).add() && shareOut(p.windows, device, launch, refusal);
}

// ---- the plan of any windows --------------------------------------------------------------------

void planAny(const WindowProblem& p, AnyPlan* plan) {
  plan->units = 0;
  for (int32_t n = 0; n < p.num_streams; ++n) {
    const WindowStream& s = p.streams[n];
    // The rule of whole windows needs the whole window.
    const bool in_parts = s.counted == nullptr || s.rule != WindowRule::kWhole;
    int64_t parts = in_parts ? std::max<int64_t>(ceilDiv(s.num_offsets, int64_t{kWarp}), 1) : 1;
    if (!writes(s)) parts = 0;
    plan->group[n] = std::max<int64_t>(in_parts ? kWarp : s.num_offsets, 1);
    plan->parts[n] = parts;
    plan->first_unit[n] = plan->units;
    plan->units += p.windows * parts;
  }
}

}  // namespace
}  // namespace windows

WindowChoice selectWindows(const WindowProblem& p, const LaunchDevice& device) {
  using namespace windows;
  WindowChoice choice;
  Refusal refusal;
  if (planRows(p, device, &choice.rows, &refusal)) {
    choice.family = WindowKernel::kRows;
    choice.poses = hasPoses(p);
    choice.kernel = "windows_rows";
    choice.divisions = divides(p);
    choice.form = choice.divisions ? choice.poses ? "poses, divisions" : "no poses, divisions"
                  : choice.poses   ? "poses"
                                   : "no poses";
    choice.grid = ceilDiv(choice.rows.units, int64_t{kRowWarps});
    choice.threads = kWarp * kRowWarps;
    return choice;
  }
  planAny(p, &choice.any);
  choice.family = WindowKernel::kAny;
  choice.grid = std::min<int64_t>(ceilDiv(choice.any.units, int64_t{kAnyWarps}), INT32_MAX);
  if (choice.grid == 0) return choice;
  choice.kernel = "windows_any";
  choice.threads = kWarp * kAnyWarps;
  choice.general = true;
  choice.because = refusal;
  choice.because.kernel = "windows_rows";
  return choice;
}

}  // namespace rbc::cuda
