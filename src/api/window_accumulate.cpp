#include "window_accumulate.h"

#include <algorithm>

#include "operation.h"
#include "scratch_layout.h"
#include "statistics_problem.h"

namespace rbc {
namespace {

constexpr int64_t kBlockBytes = 4 << 20;

// The windows that are computed at a time: one at least.
int64_t windowsOfBlock(const WindowProblem& p, const WindowAccumulation& a) {
  const WindowStream& s = p.streams[a.stream];
  int64_t bytes = 0;
  if (__builtin_mul_overflow(s.num_offsets, s.out_channels * sizeOf(a.dtype) + 1, &bytes)) {
    fail(RBC_STATUS_OUT_OF_MEMORY, "streams[%d].accumulator: a window passes 64 bits", a.stream);
  }
  return std::clamp<int64_t>(kBlockBytes / std::max<int64_t>(bytes, 1), 1, p.windows);
}

bool empty(const WindowProblem& p, const WindowAccumulation& a) {
  return p.windows == 0 || p.streams[a.stream].num_offsets == 0 ||
         p.streams[a.stream].out_channels == 0;
}

// Some windows of one stream, neither normalized nor written but to scratch memory.
class Block {
 public:
  Block(const rbcContext& context, const WindowProblem& p, const WindowAccumulation& a, void* data)
      : all_(p), accumulation_(a), windows_(windowsOfBlock(p, a)), problem_(p) {
    std::copy_n(p.streams, p.num_streams, streams_);
    problem_.streams = streams_;
    for (int32_t n = 0; n < p.num_streams; ++n) {
      streams_[n].out.data = nullptr;
      streams_[n].valid = nullptr;
    }
    WindowStream& s = streams_[a.stream];
    s.shift = s.scale = s.bias = s.low = s.high = s.neutral = {};
    s.angle_dtype = DType::F64;
    if (s.pad == WindowPad::kNeutral) s.pad = WindowPad::kHold;
    const int64_t row = s.num_offsets * s.out_channels;
    ScratchLayout layout(data);
    s.out = {layout.take<std::byte>(windows_ * row * sizeOf(a.dtype)),
             {row, s.out_channels, 1},
             a.dtype};
    s.counted = layout.take<uint8_t>(windows_ * s.num_offsets);
    s.fill_bits = 0;

    Samples& samples = samples_.samples;
    samples.data = s.out.data;
    samples.dtype = a.dtype;
    samples.channels = a.per_step ? row : s.out_channels;
    samples.channel_stride = 1;
    samples.mask = s.counted;
    samples.batch = 1;
    samples.axes = 1;
    if (a.per_step) {
      samples.mask_channels = s.out_channels;
      samples.mask_channel_stride = 1;
      samples.axis[0] = {0, row, s.num_offsets};
    } else {
      samples.axis[0] = {0, s.out_channels, 1};
    }
    samples_.state = a.state;
    setWindows(0, windows_);

    const auto bytes = [&](const auto& problem) {
      return operationFor<std::decay_t<decltype(problem)>>(*context.backend)
          .workspaceBytes(*context.state, problem);
    };
    scratch_.bytes = std::max(bytes(problem_), bytes(samples_));
    scratch_.data = layout.take<std::byte>(static_cast<int64_t>(scratch_.bytes));
    used_ = layout.used();
  }

  size_t used() const { return used_; }

  void run(rbcContext& context) {
    BackendState& state = *context.state;
    for (int64_t first = 0; first < all_.windows; first += windows_) {
      if (first > 0 && state.interrupt.stopped()) state.interrupt.requireRunning();
      setWindows(first, std::min(windows_, all_.windows - first));
      operationFor<WindowProblem>(*context.backend).run(state, problem_, scratch_);
      operationFor<AccumulateProblem>(*context.backend).run(state, samples_, scratch_);
    }
  }

 private:
  void setWindows(int64_t first, int64_t count) {
    const auto advanced = [first](const void* data, int64_t stride, int size) {
      return static_cast<const std::byte*>(data) + first * stride * size;
    };
    problem_.windows = count;
    problem_.episode_of.data =
        advanced(all_.episode_of.data, all_.episode_of.stride, all_.episode_of.is_64 ? 8 : 4);
    problem_.anchors = advanced(all_.anchors, all_.anchors_stride,
                                sizeOf(all_.anchors_are_times ? all_.time_dtype : DType::I64));
    Samples& samples = samples_.samples;
    samples.rows =
        accumulation_.per_step ? count : count * all_.streams[accumulation_.stream].num_offsets;
    samples.axis[0].extent = samples.rows;
  }

  const WindowProblem& all_;
  const WindowAccumulation& accumulation_;
  const int64_t windows_;
  WindowProblem problem_;
  WindowStream streams_[kMaxWindowStreams];
  AccumulateProblem samples_ = {};
  Scratch scratch_ = {};
  size_t used_ = 0;
};

}  // namespace

size_t accumulateBytes(const rbcContext& context, const WindowProblem& problem,
                       const WindowAccumulation& accumulation) {
  if (empty(problem, accumulation)) return 0;
  return Block(context, problem, accumulation, nullptr).used();
}

void accumulateWindows(rbcContext& context, const WindowProblem& problem,
                       const WindowAccumulation& accumulation, Scratch scratch) {
  // Nothing fails from here on but the work itself, where it is interrupted or the device fails.
  rbcStatisticsAccumulator& accumulator = *accumulation.accumulator;
  accumulator.settled.kind.has_dtype = true;
  accumulator.settled.kind.dtype = accumulation.dtype;
  accumulator.most_samples += accumulation.samples;
  if (!empty(problem, accumulation)) {
    Block(context, problem, accumulation, scratch.data).run(context);
  }
}

}  // namespace rbc
