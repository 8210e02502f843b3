// The kernel that windows run, on three devices.
#include "windows/select.h"

#include <vector>

#include "select_table.h"

namespace {

using rbc::ChannelSegment;
using rbc::DType;
using rbc::Method;
using rbc::WindowKind;
using rbc::WindowProblem;
using rbc::WindowSegment;
using rbc::WindowStream;
using select_table::addressOf;

// Contiguous streams, anchored at rows of the first one.
struct Windows {
  WindowProblem problem = {};
  std::vector<WindowStream> streams;
  std::vector<WindowSegment> segments;
  std::vector<ChannelSegment> methods;

  explicit Windows(int64_t windows) {
    problem.windows = windows;
    problem.episodes = 100;
    problem.episode_of.data = addressOf(200);
    problem.episode_of.stride = 1;
    problem.anchors = addressOf(201);
    problem.anchors_stride = 1;
    problem.time_dtype = DType::F64;
  }

  Windows& add(int64_t offsets, int64_t channels, DType in, DType out) {
    const auto n = static_cast<int>(streams.size());
    WindowStream s = {};
    s.rows = 100000;
    s.channels = s.out_channels = channels;
    s.values = addressOf(n);
    s.values_stride[0] = channels;
    s.values_stride[1] = 1;
    s.episode_offsets.data = addressOf(20 + n);
    s.episode_offsets.stride = 1;
    s.offsets.data = addressOf(40 + n);
    s.offsets.stride = 1;
    s.num_offsets = offsets;
    s.out.data = addressOf(60 + n);
    s.out.dtype = out;
    s.out.stride[0] = offsets * channels;
    s.out.stride[1] = channels;
    s.out.stride[2] = 1;
    s.first_segment = n;
    s.num_segments = 1;
    s.values_dtype = in;
    streams.push_back(s);
    WindowSegment segment = {};
    segment.count = segment.out_count = channels;
    segments.push_back(segment);
    return *this;
  }

  // Makes the last stream interpolate.
  Windows& by(Method method) {
    WindowStream& s = streams.back();
    s.interpolates = true;
    s.times = addressOf(80);
    s.times_stride = 1;
    s.first_method = static_cast<int32_t>(methods.size());
    s.num_methods = 1;
    methods.push_back({0, s.channels, method});
    return *this;
  }

  // Makes the last stream relative to the first one.
  Windows& relative(WindowKind kind) {
    segments.back().kind = kind;
    return *this;
  }

  WindowStream& last() { return streams.back(); }

  WindowProblem get() const {
    WindowProblem p = problem;
    p.num_streams = static_cast<int32_t>(streams.size());
    p.num_segments = static_cast<int32_t>(segments.size());
    p.num_methods = static_cast<int32_t>(methods.size());
    p.streams = streams.data();
    p.segments = segments.data();
    p.methods = methods.data();
    return p;
  }
};

constexpr DType F32 = DType::F32;
constexpr DType BF16 = DType::BF16;

// Observations and actions of a robot's policy.
Windows policy() { return Windows(256).add(2, 14, F32, F32).add(50, 7, F32, F32); }

constexpr select_table::Row<Windows> kRows[] = {
    {"256 windows: 2 x 14 and 50 x 7, f32",
     [] { return policy(); },
     {"windows_rows (no poses), grid 416 x 128, shared 0 bytes", nullptr,
      "windows_rows (no poses), grid 104 x 128, shared 0 bytes"}},
    {"the same, divided by a scale",
     [] {
       Windows w = policy();
       w.last().divides = true;
       return w;
     },
     {"windows_rows (no poses, divisions), grid 416 x 128, shared 0 bytes", nullptr,
      "windows_rows (no poses, divisions), grid 104 x 128, shared 0 bytes"}},
    {"2 windows of them",
     [] {
       Windows w = policy();
       w.problem.windows = 2;
       return w;
     },
     {"windows_rows (no poses), grid 7 x 128, shared 0 bytes"}},
    {"256 windows: 16 x 512, bf16",
     [] { return Windows(256).add(16, 512, BF16, BF16); },
     {"windows_rows (no poses), grid 256 x 128, shared 0 bytes",
      "windows_rows (no poses), grid 512 x 128, shared 0 bytes",
      "windows_rows (no poses), grid 64 x 128, shared 0 bytes"}},
    {"256 windows: 16 x 6, linear",
     [] { return Windows(256).add(16, 6, F32, F32).by(Method::kLinear); },
     {"windows_rows (no poses), grid 103 x 128, shared 0 bytes", nullptr,
      "windows_rows (no poses), grid 32 x 128, shared 0 bytes"}},
    {"256 windows: 16 x 4, slerp",
     [] { return Windows(256).add(16, 4, F32, F32).by(Method::kSlerp); },
     {"windows_rows (no poses), grid 32 x 128, shared 0 bytes"}},
    {"256 windows: 16 x 132, slerp",
     [] { return Windows(256).add(16, 132, F32, F32).by(Method::kSlerp); },
     {"windows_any, grid 64 x 128, shared 0 bytes; not windows_rows: streams[0].method: "
      "132 channels of slerp, expected 128 or fewer"}},
    {"256 windows: 16 x 6, pchip",
     [] { return Windows(256).add(16, 6, F32, F32).by(Method::kPchip); },
     {"windows_any, grid 64 x 128, shared 0 bytes; not windows_rows: streams[0].method: "
      "cubic, pchip, or an angle that is not in -pi to pi"}},
    {"256 windows: 16 x 6, linear, samples may be missing",
     [] {
       Windows w = Windows(256).add(16, 6, F32, F32).by(Method::kLinear);
       w.last().sample_mask = static_cast<const uint8_t*>(addressOf(202));
       return w;
     },
     {"windows_any, grid 64 x 128, shared 0 bytes; not windows_rows: "
      "streams[0].sample_mask: set on a stream that is interpolated"}},
    {"256 windows: 16 x 6, linear, rows arrive late",
     [] {
       static const rbc::CausalWindows causal = {};
       Windows w = Windows(256).add(16, 6, F32, F32).by(Method::kLinear);
       w.problem.causal = &causal;
       return w;
     },
     {"windows_any, grid 64 x 128, shared 0 bytes; not windows_rows: "
      "arrivals or RBC_FLAG_CAUSAL: set, expected none"}},
    {"256 windows: 16 x 7, relative to the state",
     [] {
       return Windows(256).add(2, 7, F32, F32).add(16, 7, F32, F32).relative(WindowKind::kSubtract);
     },
     {"windows_rows (no poses), grid 288 x 128, shared 0 bytes", nullptr,
      "windows_rows (no poses), grid 68 x 128, shared 0 bytes"}},
    {"256 windows: 16 relative poses",
     [] {
       return Windows(256).add(2, 7, F32, F32).add(16, 7, F32, F32).relative(WindowKind::kRelative);
     },
     {"windows_rows (poses), grid 288 x 128, shared 0 bytes", nullptr,
      "windows_rows (poses), grid 36 x 128, shared 0 bytes"}},
    {"the sum of 16 steps of poses",
     [] {
       Windows w =
           Windows(256).add(2, 7, F32, F32).add(16, 7, F32, F32).relative(WindowKind::kStep);
       w.segments.back().inverse = true;
       return w;
     },
     {"windows_any, grid 128 x 128, shared 0 bytes; not windows_rows: "
      "streams[1].transforms: poses together with a difference, or a sum of steps"}},
    {"256 windows: 16 x 14, values strided",
     [] {
       Windows w = Windows(256).add(16, 14, F32, F32);
       w.last().values_stride[1] = 2;
       return w;
     },
     {"windows_any, grid 64 x 128, shared 0 bytes; not windows_rows: streams[0].values: "
      "stride 2 of channels, expected 1"}},
    {"256 windows: 16 x 14, rows padded to 15",
     [] {
       Windows w = Windows(256).add(16, 14, F32, F32);
       w.last().values_stride[0] = 15;
       return w;
     },
     {"windows_rows (no poses), grid 256 x 128, shared 0 bytes",
      "windows_rows (no poses), grid 512 x 128, shared 0 bytes",
      "windows_rows (no poses), grid 32 x 128, shared 0 bytes"}},
    {"256 windows: 16 x 14, scale of each offset",
     [] {
       Windows w = Windows(256).add(16, 14, F32, F32);
       w.last().scale = {addressOf(90), {14, 1}, false};
       return w;
     },
     {"windows_any, grid 64 x 128, shared 0 bytes; not windows_rows: streams[0].shift, "
      "scale, bias, clip_min or clip_max: expected an array of channels with stride 1"}},
    {"256 windows: 16 x 14, f64",
     [] { return Windows(256).add(16, 14, DType::F64, DType::F64); },
     {"windows_any, grid 64 x 128, shared 0 bytes; not windows_rows: streams[0].values: "
      "float64, expected float16, bfloat16 or float32"}},
    {"256 windows: 16 x 3, u8",
     [] { return Windows(256).add(16, 3, DType::U8, DType::U8); },
     {"windows_any, grid 64 x 128, shared 0 bytes; not windows_rows: streams[0].values: "
      "uint8, expected float16, bfloat16 or float32"}},
    {"row numbers",
     [] {
       Windows w = Windows(256).add(16, 1, DType::I64, DType::I64);
       w.last().values = nullptr;
       return w;
     },
     {"windows_any, grid 64 x 128, shared 0 bytes; not windows_rows: streams[0].values: "
      "none, only row numbers are wanted"}},
    {"17 groups of channels: 16 streams, one interpolated by two methods",
     [] {
       Windows w(256);
       for (int n = 0; n < 16; ++n) w.add(4, 8, F32, F32);
       w.by(Method::kLinear);
       w.methods = {{0, 4, Method::kLinear}, {4, 4, Method::kSlerp}};
       w.last().num_methods = 2;
       return w;
     },
     {"windows_any, grid 1024 x 128, shared 0 bytes; not windows_rows: "
      "streams[15].methods, transforms: more than 16 groups of channels in a call"}},
};

// Two streams; the second one is interpolated if it has methods.
Windows good() { return Windows(256).add(2, 8, F32, F32).add(16, 8, F32, F32); }

constexpr int64_t kHuge = int64_t{1} << 31;

// Makes the second stream interpolate by these methods, with four channels each.
void interpolate(Windows* w, Method first, Method second) {
  w->by(first);
  w->methods = {{0, 4, first}, {4, 4, second}};
  w->last().num_methods = 2;
}

constexpr select_table::Spoiled<Windows> kNotRows[] = {
    {[](Windows* w) { w->problem.windows = kHuge; },
     "windows_rows: windows: 2147483648, too many for 32-bit indexes"},
    {[](Windows* w) { w->problem.anchors_stride = kHuge / 8; },
     "windows_rows: anchors: stride 268435456, too large for 32-bit indexes"},
    {[](Windows* w) { w->problem.episode_of.stride = -kHuge / 4; },
     "windows_rows: episode_of: stride -536870912, too large for 32-bit indexes"},
    {[](Windows* w) { w->last().rows = kHuge / 2; },
     "windows_rows: streams[1].values: 1073741824 rows, too many for 32-bit indexes"},
    {[](Windows* w) { w->last().num_offsets = kHuge / 2; },
     "windows_rows: streams[1].offsets: 1073741824, too many for 32-bit indexes"},
    {[](Windows* w) { w->last().channels = kHuge / 2; },
     "windows_rows: streams[1].values: 1073741824 channels, too many for 32-bit indexes"},
    {[](Windows* w) { w->last().values_stride[0] = kHuge / 4; },
     "windows_rows: streams[1].values: stride 536870912 of rows, too large for 32-bit indexes"},
    {[](Windows* w) { w->last().offsets.stride = kHuge / 4; },
     "windows_rows: streams[1].offsets: stride 536870912, too large for 32-bit indexes"},
    {[](Windows* w) { w->last().episode_offsets.stride = kHuge / 4; },
     "windows_rows: streams[1].episode_offsets: stride 536870912, too large for 32-bit indexes"},
    {[](Windows* w) {
       w->last().out.data = nullptr;
       w->last().valid = static_cast<uint8_t*>(addressOf(90));
     },
     "windows_rows: streams[1].out: not wanted, only valid or an accumulator"},
    {[](Windows* w) { w->last().counted = static_cast<uint8_t*>(addressOf(90)); },
     "windows_rows: streams[1].accumulator: takes the windows"},
    {[](Windows* w) { w->last().in_double = true; },
     "windows_rows: streams[1].values or references: computed in float64"},
    {[](Windows* w) { w->last().channels = 0; }, "windows_rows: streams[1].values: no channels"},
    {[](Windows* w) { w->last().out.dtype = DType::I32; },
     "windows_rows: streams[1].out: int32, expected a float"},
    {[](Windows* w) { w->problem.windows = kHuge / 16; },
     "windows_rows: streams[1].offsets: 16 of each window, too many for 32-bit indexes"},
    {[](Windows* w) { w->last().out.stride[2] = 2; },
     "windows_rows: streams[1].out: stride 2 of channels, expected 1"},
    {[](Windows* w) { w->last().out.stride[1] = kHuge / 4; },
     "windows_rows: streams[1].out: stride 536870912 of offsets, too large for 32-bit indexes"},
    {[](Windows* w) { w->last().valid_stride[1] = kHuge; },
     "windows_rows: streams[1].valid: stride 2147483648 of offsets, too large for 32-bit indexes"},
    {[](Windows* w) {
       w->by(Method::kLinear);
       w->segments[0].kind = WindowKind::kSubtract;
       w->segments[0].reference_stream = 1;
     },
     "windows_rows: streams[0].transforms: a reference of a stream that is interpolated"},
    {[](Windows* w) {
       w->by(Method::kLinear);
       w->segments[1].kind = WindowKind::kRelative;
     },
     "windows_rows: streams[1].transforms: poses of interpolated values"},
    {[](Windows* w) { interpolate(w, Method::kSlerp, Method::kSlerp); },
     "windows_rows: streams[1].method: slerp of more than one group of channels"},
    {[](Windows* w) { interpolate(w, Method::kLinear, Method::kPrevious); },
     "windows_rows: streams[1].method: a step together with other methods"},
    {[](Windows* w) { interpolate(w, Method::kLinear, Method::kAngleDegrees); },
     "windows_rows: streams[1].method: cubic, pchip, or an angle that is not in -pi to pi"},
};

rbc::cuda::WindowChoice chosen(const Windows& w, const rbc::cuda::LaunchDevice& device) {
  return rbc::cuda::selectWindows(w.get(), device);
}

}  // namespace

TEST_CASE("select windows: each condition of the kernel of rows refuses calls") {
  select_table::checkSpoiled("windows_rows", good, kNotRows, chosen);
}

TEST_CASE("select windows: each call runs the kernel of the table, for the reason of the table") {
  select_table::check("windows", kRows, chosen);
}
