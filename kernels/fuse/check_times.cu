// Checks times, lengths and offsets that are on the device.
//
// Two launches: all threads look for defects and keep the smallest position of each kind; then one
// thread writes the defect found there. The smallest position makes the report the same in every
// run.

#include "fuse_problem.h"
#include "guard.h"
#include "locate.h"
#include "runtime/cuda_state.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"

namespace rbc::cuda {
namespace {

constexpr int kThreads = 256;
constexpr unsigned long long kNoDefect = ~0ull;

__device__ void mark(unsigned long long* key, int64_t position) {
  atomicMin(key, static_cast<unsigned long long>(position));
}

// The place of a sample in a line of all rows. With very many packed rows it may wrap: the report
// then names another defect.
__device__ int64_t placeOf(const FuseStream& s, int64_t b, int64_t i) {
  return static_cast<int64_t>(static_cast<uint64_t>(b) * static_cast<uint64_t>(s.samples) +
                              static_cast<uint64_t>(i));
}

template <class Time>
__device__ const Time* timesOf(const FuseStream& s, int64_t b, const RowRange& range) {
  return static_cast<const Time*>(s.times) + b * s.times_stride[0] +
         range.begin * s.times_stride[1];
}

// Number of entries to check.
struct IndexCounts {
  int64_t offsets;
  int64_t lengths;
  int64_t query_lengths;

  RBC_HD int64_t most() const {
    const int64_t most = offsets > lengths ? offsets : lengths;
    return most > query_lengths ? most : query_lengths;
  }
};

IndexCounts countsOf(const PlainFuse& p, const FuseStream& s) {
  return {s.offsets.data != nullptr ? differentEntries(s.offsets, p.batch + 1) : 0,
          differentEntries(s.lengths, p.batch), differentEntries(p.query_lengths, p.batch)};
}

__global__ void __launch_bounds__(kThreads)
    findIndexes(const __grid_constant__ PlainFuse p, const __grid_constant__ FuseStream s,
                const IndexCounts counts, unsigned long long* keys) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t b = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; b < counts.most();
       b += threads) {
    if (b < counts.offsets && badOffset(s.offsets, b, s.samples)) mark(&keys[0], b);
    if (b < counts.lengths && badLength(s.lengths, b, s.samples)) mark(&keys[1], b);
    if (b < counts.query_lengths && badLength(p.query_lengths, b, p.queries)) mark(&keys[2], b);
  }
}

// Number of rows of times to check. With a stride of 0 rows are all the same one, and there may be
// any number of them.
int64_t rowsOf(const PlainFuse& p, const FuseStream& s) {
  if (s.samples == 0 || s.times == nullptr) return 0;
  if (s.offsets.data != nullptr) return s.offsets.stride == 0 ? 0 : p.batch;  // else all are empty
  const bool alike = s.times_stride[0] == 0 && (s.lengths.data == nullptr || s.lengths.stride == 0);
  return alike && p.batch > 1 ? 1 : p.batch;
}

// Rows along y, samples along x.
template <class Time>
__global__ void __launch_bounds__(kThreads)
    findTimes(const __grid_constant__ FuseStream s, int64_t rows, unsigned long long* keys) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t b = blockIdx.y; b < rows; b += gridDim.y) {
    const RowRange range = samplesOf(s, b);
    const Time* times = timesOf<Time>(s, b, range);
    // With a stride of 0 all times are one: checking the first is enough.
    const int64_t count = s.times_stride[1] == 0 && range.count > 1 ? 1 : range.count;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
         i += threads) {
      const Time time = times[i * s.times_stride[1]];
      const Time previous = i > 0 ? times[(i - 1) * s.times_stride[1]] : time;
      if (badStep(previous, time)) mark(&keys[3], placeOf(s, b, i));
    }
  }
}

template <class Time>
__global__ void writeDefect(const __grid_constant__ PlainFuse p,
                            const __grid_constant__ FuseStream s, const unsigned long long* keys,
                            TimesDefect* defect) {
  TimesDefect found = {};
  if (keys[0] != kNoDefect) {
    const auto b = static_cast<int64_t>(keys[0]);
    found = {TimesDefect::kOffset, b, 0, {offsetBefore(s.offsets, b), s.offsets[b]}, {}};
  } else if (keys[1] != kNoDefect) {
    const auto b = static_cast<int64_t>(keys[1]);
    found = {TimesDefect::kLength, b, 0, {0, s.lengths[b]}, {}};
  } else if (keys[2] != kNoDefect) {
    const auto b = static_cast<int64_t>(keys[2]);
    found = {TimesDefect::kQueryLength, b, 0, {0, p.query_lengths[b]}, {}};
  } else if (keys[3] != kNoDefect) {
    const auto samples = static_cast<uint64_t>(s.samples);
    const int64_t b = min(static_cast<int64_t>(keys[3] / samples), p.batch - 1);
    const auto i = static_cast<int64_t>(keys[3] % samples);
    // Another thread may have changed offsets since the defect was found: clamp to the times.
    const int64_t at = min(samplesOf(s, b).begin + i, s.samples - 1);
    const Time* times = timesOf<Time>(s, b, {});
    const Time time = times[at * s.times_stride[1]];
    const Time previous = i > 0 ? times[(at - 1) * s.times_stride[1]] : time;
    found = {TimesDefect::kTime,
             b,
             i,
             {static_cast<int64_t>(previous), static_cast<int64_t>(time)},
             {static_cast<double>(previous), static_cast<double>(time)}};
  }
  *defect = found;
}

struct Found {
  unsigned long long keys[4];
  TimesDefect defect;
};

cudaError_t launchCheckTimes(const PlainFuse& p, const FuseStream& s, unsigned long long* keys,
                             TimesDefect* defect, cudaStream_t cuda_stream) {
  const int64_t rows = rowsOf(p, s);
  const IndexCounts counts = countsOf(p, s);
  cudaError_t error = cudaMemsetAsync(keys, 0xff, sizeof(Found::keys), cuda_stream);
  if (error == cudaSuccess && counts.most() > 0) {
    error = launchKernel(findIndexes, gridOf(blocksFor(counts.most(), kThreads, 1024)), kThreads,
                         cuda_stream, p, s, counts, keys);
  }
  return visitTime(p.time_dtype, [&](auto tag) {
    using Time = typename decltype(tag)::type;
    if (error == cudaSuccess && rows > 0) {
      const dim3 grid = gridOf(blocksFor(s.samples, kThreads * 4, 256), blocksFor(rows, 1, 4096));
      error = launchKernel(findTimes<Time>, grid, kThreads, cuda_stream, s, rows, keys);
    }
    if (error != cudaSuccess) return error;
    return launchKernel(writeDefect<Time>, 1, 1, cuda_stream, p, s, keys, defect);
  });
}

size_t bytes(const BackendState&, const TimesProblem&) { return sizeof(Found); }

void run(BackendState& state, const TimesProblem& problem, Scratch scratch) {
  CudaState& cuda = own(state);
  const DeviceGuard guard(cuda.device);
  auto* found = static_cast<Found*>(scratch.data);
  checkCuda(launchCheckTimes(problem.fuse, problem.fuse.streams[problem.stream], found->keys,
                             &found->defect, cuda.cuda_stream),
            "the launch of a check");
  checkCuda(cudaMemcpyAsync(problem.defect, &found->defect, sizeof found->defect,
                            cudaMemcpyDeviceToHost, cuda.cuda_stream),
            "cudaMemcpyAsync");
  checkCuda(cudaStreamSynchronize(cuda.cuda_stream), "cudaStreamSynchronize");
  cuda.workspace_used = false;  // finished: later CUDA streams need not wait
}

}  // namespace

extern const Operation<TimesProblem> kCheckTimes = {bytes, run};
cudaError_t loadCheckTimes(const LaunchDevice&) { return loadKernelsBeside(findTimes<float>); }

}  // namespace rbc::cuda
