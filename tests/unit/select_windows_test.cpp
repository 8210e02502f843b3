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
      "scale, bias, low or high: expected an array of channels with stride 1"}},
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

}  // namespace

TEST_CASE("select windows: each call runs the kernel of the table, for the reason of the table") {
  select_table::check("windows", kRows,
                      [](const Windows& w, const rbc::cuda::LaunchDevice& device) {
                        return rbc::cuda::selectWindows(w.get(), device);
                      });
}
