// Verification of times, lengths and offsets that live on the device.
//
// Two launches: all threads look for defects and keep the smallest position of each kind; then one
// thread writes down what stands there. The smallest position makes the report the same in every
// run.

#include "fuse_problem.h"
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

// Of a sample in a line of all rows. Packed rows may be so many that it wraps: then the report names
// another one.
__device__ int64_t placeOf(const FuseStream& s, int64_t b, int64_t i) {
  return static_cast<int64_t>(static_cast<uint64_t>(b) * static_cast<uint64_t>(s.samples) +
                              static_cast<uint64_t>(i));
}

template <class Time>
__device__ const Time* timesOf(const FuseStream& s, int64_t b, const RowRange& range) {
  return static_cast<const Time*>(s.times) + b * s.times_stride[0] +
         range.begin * s.times_stride[1];
}

__global__ void __launch_bounds__(kThreads)
    findIndexes(const __grid_constant__ FuseProblem p, const __grid_constant__ FuseStream s,
                unsigned long long* keys) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t b = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; b <= p.batch;
       b += threads) {
    if (s.offsets.data != nullptr && badOffset(s.offsets, b, s.samples)) mark(&keys[0], b);
    if (b == p.batch) break;  // offsets alone have B + 1 entries
    if (s.lengths.data != nullptr && badLength(s.lengths, b, s.samples)) mark(&keys[1], b);
    if (p.query_lengths.data != nullptr && badLength(p.query_lengths, b, p.queries))
      mark(&keys[2], b);
  }
}

// Rows along y, samples along x.
template <class Time>
__global__ void __launch_bounds__(kThreads)
    findTimes(const __grid_constant__ FuseStream s, int64_t rows, unsigned long long* keys) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t b = blockIdx.y; b < rows; b += gridDim.y) {
    const RowRange range = samplesOf(s, b);
    const Time* times = timesOf<Time>(s, b, range);
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < range.count;
         i += threads) {
      const Time time = times[i * s.times_stride[1]];
      const Time previous = i > 0 ? times[(i - 1) * s.times_stride[1]] : time;
      if (badStep(previous, time)) mark(&keys[3], placeOf(s, b, i));
    }
  }
}

template <class Time>
__global__ void writeDefect(const __grid_constant__ FuseProblem p,
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
    // Offsets may have moved since the defect was found: what is read stays inside of the times.
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

cudaError_t launchCheckTimes(const FuseProblem& p, const FuseStream& s, unsigned long long* keys,
                             TimesDefect* defect, cudaStream_t cuda_stream) {
  // A row that the whole batch shares in full is looked at once.
  const bool shared =
      s.offsets.data == nullptr && s.lengths.data == nullptr && s.times_stride[0] == 0;
  const int64_t rows = shared && p.batch > 1 ? 1 : p.batch;
  cudaError_t error = cudaMemsetAsync(keys, 0xff, sizeof(Found::keys), cuda_stream);
  // A batch without samples and without indexes may have any number of rows.
  const bool has_indexes =
      s.offsets.data != nullptr || s.lengths.data != nullptr || p.query_lengths.data != nullptr;
  if (error == cudaSuccess && has_indexes) {
    error = launchKernel(findIndexes, gridOf(blocksFor(p.batch, kThreads, 1024)), kThreads,
                         cuda_stream, p, s, keys);
  }
  return visitTime(p.time_dtype, [&](auto tag) {
    using Time = typename decltype(tag)::type;
    if (error == cudaSuccess && s.samples > 0 && s.times != nullptr) {
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
  cuda.workspace_used = false;  // all of it is over: no later CUDA stream has to wait for this one
}

}  // namespace

extern const Operation<TimesProblem> kCheckTimes = {bytes, run};
cudaError_t loadCheckTimes() { return loadKernelsBeside(findTimes<float>); }

}  // namespace rbc::cuda
