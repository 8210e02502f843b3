// Windows on the CPU, divided among threads: by streams, windows and, if these are few, offsets.

#include <algorithm>

#include "ceil_div.h"
#include "fuse/find_arrivals.h"
#include "runtime/cpu_state.h"
#include "status.h"
#include "windows/window_run.h"

namespace rbc::cpu {
namespace {

// Work that pays off for one more thread, in bytes moved: about 20 us.
constexpr int64_t kThreadBytes = 400 << 10;
constexpr int64_t kChunkBytes = 64 << 10;
constexpr int64_t kChunksPerThread = 8;
constexpr int64_t kMaxChunkBytes = 4 << 20;  // between two checks for an interrupt
constexpr int64_t kElementBytes = 32;        // the cost of finding a row
constexpr int64_t kPoseBytes = 1024;

// ---- shift, scale, bias and limits by channel, in the compute type ------------------------------

bool differByOffset(const WindowStream& s) {
  const RealGrid* grids[] = {&s.shift, &s.scale, &s.bias, &s.low, &s.high};
  for (const RealGrid* grid : grids) {
    if (grid->data != nullptr && grid->stride[0] != 0) return true;
  }
  return false;
}

template <class Number>
void fillGrid(const RealGrid& grid, int64_t rows, int64_t channels, Number without, void* to) {
  if (to == nullptr) return;
  auto* next = static_cast<Number*>(to);
  for (int64_t o = 0; o < rows; ++o) {
    for (int64_t d = 0; d < channels; ++d) {
      *next++ = grid.data != nullptr ? grid.at<Number>(o, d) : without;
    }
  }
}

template <class Number>
void fillAll(const WindowStream& s, const StreamConstants& k) {
  const int64_t rows = k.step != 0 ? s.num_offsets : 1;
  const Number infinity = bitCast<Number>(FloatBits<Number>::kExponent);
  fillGrid(s.shift, rows, s.out_channels, Number(0), k.shift);
  fillGrid(s.scale, rows, s.out_channels, Number(1), k.scale);
  fillGrid(s.bias, rows, s.out_channels, Number(-0.0), k.bias);
  fillGrid(s.low, rows, s.out_channels, -infinity, k.low);
  fillGrid(s.high, rows, s.out_channels, infinity, k.high);
}

// Reserves their memory, if any.
StreamConstants constantsOf(const WindowStream& s, ScratchLayout* layout) {
  StreamConstants k;
  k.step = differByOffset(s) ? s.out_channels : 0;
  int64_t count = 0;
  if (__builtin_mul_overflow(k.step != 0 ? s.num_offsets : 1, s.out_channels, &count)) {
    fail(RBC_STATUS_OUT_OF_MEMORY, "workspace: more than 2^63 bytes are needed");
  }
  const auto take = [&]() -> void* {
    return s.in_double ? static_cast<void*>(layout->take<double>(count))
                       : layout->take<float>(count);
  };
  if (s.normalizes()) {
    k.shift = take();
    k.scale = take();
    k.bias = take();
  }
  if (s.clips()) {
    k.low = take();
    k.high = take();
  }
  return k;
}

// Fills them.
void fill(const WindowStream& s, const StreamConstants& constants) {
  if (s.in_double) {
    fillAll<double>(s, constants);
  } else {
    fillAll<float>(s, constants);
  }
}

// ---- parts for the threads ----------------------------------------------------------------------

struct Parts {
  Parts(void* data, const WindowProblem& p) : layout(data) {
    for (int32_t n = 0; n < p.num_streams; ++n) constants[n] = constantsOf(p.streams[n], &layout);
  }

  ScratchLayout layout;
  StreamConstants constants[kMaxWindowStreams];
};

bool writes(const WindowStream& s) {
  return s.num_offsets > 0 && (s.out.data != nullptr || s.valid != nullptr || s.counted != nullptr);
}

// The cost of an element of a stream, in bytes moved.
int64_t elementBytes(const WindowProblem& p, const WindowStream& s) {
  constexpr int64_t kMost = 1 << 30;  // with strides of 0 there may be any number
  int64_t bytes = kElementBytes + std::min(s.channels, kMost) * sizeOf(s.values_dtype) +
                  std::min(s.out_channels, kMost) * sizeOf(s.out.dtype);
  for (int32_t i = s.first_segment; i < s.first_segment + s.num_segments; ++i) {
    if (p.segments[i].isPose()) bytes += kPoseBytes;
  }
  return bytes;
}

// The elements of a stream, divided by windows and offsets.
struct Cut {
  int64_t windows = 0;  // per part
  int64_t offsets = 0;
  int64_t per_window = 0;  // parts
  int64_t parts = 0;
};

Cut cutOf(const WindowProblem& p, const WindowStream& s, int64_t chunk_bytes) {
  if (!writes(s)) return {};
  const int64_t elements = std::max<int64_t>(chunk_bytes / elementBytes(p, s), kTileRows);
  Cut cut;
  cut.offsets = s.num_offsets;
  cut.per_window = 1;
  if (elements < s.num_offsets && canBeCut(p, s)) {
    cut.per_window = ceilDiv(s.num_offsets, elements);
    cut.offsets = ceilDiv(s.num_offsets, cut.per_window);
    cut.per_window = ceilDiv(s.num_offsets, cut.offsets);
  }
  cut.windows = std::max<int64_t>(elements / s.num_offsets, 1);
  cut.parts = ceilDiv(p.windows, cut.windows) * cut.per_window;
  return cut;
}

template <class Time, class Number>
void runPart(const WindowPlan& plan, int32_t stream, const Cut& cut, int64_t part,
             ThreadMemory& memory) {
  const WindowProblem& p = plan.problem;
  const WindowStream& s = p.streams[stream];
  const int64_t begin = part / cut.per_window * cut.windows;
  const int64_t o_begin = part % cut.per_window * cut.offsets;
  const int64_t end = std::min(p.windows, begin + cut.windows);
  const int64_t o_end = std::min(s.num_offsets, o_begin + cut.offsets);
  WindowRun<Time, Number> run(plan, stream, memory);
  for (int64_t window = begin; window < end; ++window) {
    if (!run.run(window, o_begin, o_end)) return;
  }
}

template <class Time>
void runAll(CpuState& state, const WindowPlan& plan) {
  const WindowProblem& p = plan.problem;
  double bytes = 0;
  for (int32_t n = 0; n < p.num_streams; ++n) {
    const WindowStream& s = p.streams[n];
    if (!writes(s)) continue;
    bytes += static_cast<double>(elementBytes(p, s)) * static_cast<double>(s.num_offsets) *
             static_cast<double>(p.windows);
  }
  const auto all = static_cast<int64_t>(std::min(bytes, 0x1p62));
  const int64_t threads = std::clamp<int64_t>(all / kThreadBytes, 1, state.pool.threads());
  const int64_t chunk = std::clamp(all / (threads * kChunksPerThread), kChunkBytes, kMaxChunkBytes);
  Cut cuts[kMaxWindowStreams];
  int64_t parts = 0;
  for (int32_t n = 0; n < p.num_streams; ++n) {
    cuts[n] = cutOf(p, p.streams[n], threads == 1 && all <= kMaxChunkBytes ? all + 1 : chunk);
    parts += cuts[n].parts;
  }
  state.pool.parallelFor(parts, static_cast<int>(threads), [&](int64_t i, ThreadMemory& memory) {
    int32_t n = 0;
    while (i >= cuts[n].parts) i -= cuts[n++].parts;
    if (p.streams[n].in_double) {
      runPart<Time, double>(plan, n, cuts[n], i, memory);
    } else {
      runPart<Time, float>(plan, n, cuts[n], i, memory);
    }
  });
}

size_t bytes(const BackendState&, const WindowProblem& p) {
  Parts parts(nullptr, p);
  layOutArrivals(p, &parts.layout, [](int, const ArrivalSource&, const ArrivalLines&) {});
  return parts.layout.used();
}

void run(BackendState& backend_state, const WindowProblem& problem, Scratch scratch) {
  CpuState& state = cpuState(backend_state);
  Parts parts(scratch.data, problem);
  WindowProblem p = problem;
  CausalWindows causal;
  ArrivalLines lines[kMaxWindowStreams];
  if (problem.causal != nullptr) {
    findArrivals(state, problem, &parts.layout, lines, nullptr);
    causal = *problem.causal;
    causal.lines = lines;
    p.causal = &causal;
  }
  for (int32_t n = 0; n < p.num_streams; ++n) {
    if (writes(p.streams[n])) fill(p.streams[n], parts.constants[n]);
  }
  const WindowPlan plan = {p, state.simd, parts.constants, state.interrupt};
  visitTime(p.time_dtype, [&](auto time) { runAll<typename decltype(time)::type>(state, plan); });
}

}  // namespace

extern const Operation<WindowProblem> kWindows = {bytes, run};

}  // namespace rbc::cpu
