// Rows of a store's entry on CUDA. A kernel reads rows of pinned memory where they are, over the bus;
// others are gathered into staging memory by threads of the CPU, and copied in one piece.

#include "gather_problem.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include "ceil_div.h"
#include "runtime/cuda_state.h"
#include "runtime/fast_divmod.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWordsPerThread = 4;  // reads in flight: the bus answers after about 1.5 us
constexpr size_t kAlignment = 256;
constexpr size_t kBytesPerHostThread = 2 << 20;
constexpr size_t kMostHostThreads = 8;

struct Arguments {
  const void* const* rows;  // in pinned memory
  void* out;
  FastDivmod per_row;  // words
  int64_t words;       // of all rows
};

template <class Word>
__global__ void __launch_bounds__(kThreads) gather(const __grid_constant__ Arguments a) {
  waitForLaunchesAhead();
  const auto per_row = static_cast<int64_t>(a.per_row.divisor);
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads * kWordsPerThread;
  int64_t begin = static_cast<int64_t>(blockIdx.x) * kThreads * kWordsPerThread + threadIdx.x;
  for (; begin < a.words; begin += step) {
    Word words[kWordsPerThread];
#pragma unroll
    for (int k = 0; k < kWordsPerThread; ++k) {
      const int64_t i = begin + k * kThreads;
      if (i >= a.words) break;
      const int64_t row = a.per_row(i);
      words[k] = static_cast<const Word*>(a.rows[row])[i - row * per_row];
    }
#pragma unroll
    for (int k = 0; k < kWordsPerThread; ++k) {
      const int64_t i = begin + k * kThreads;
      if (i < a.words) static_cast<Word*>(a.out)[i] = words[k];
    }
  }
}

template <class Word>
cudaError_t launch(const GatherProblem& p, const void* const* rows, const CudaState& cuda,
                   LaunchChoice* chosen) {
  const auto per_row = static_cast<int64_t>(p.row_bytes / sizeof(Word));
  Arguments arguments = {rows, p.out, FastDivmod(per_row), p.count * per_row};
  const int64_t blocks = ceilDiv(arguments.words, int64_t{kThreads} * kWordsPerThread);
  *chosen = onlyKernel("gather", blocks, kThreads);
  return launchBlocks(gather<Word>, &arguments, blocks, kThreads, cuda.launch, cuda.cuda_stream);
}

// Copies rows that are not pinned; `staged` gets where they are.
void stage(const GatherProblem& p, const std::vector<int64_t>& rows, std::byte* staged) {
  const size_t all = rows.size() * p.row_bytes;
  const size_t useful = std::clamp<size_t>(all / kBytesPerHostThread, 1,
                                           std::min<size_t>(kMostHostThreads, rows.size()));
  const size_t count = std::min<size_t>(useful, std::max(1u, std::thread::hardware_concurrency()));
  const auto copyPart = [&](size_t part) {
    const size_t end = rows.size() * (part + 1) / count;
    for (size_t i = rows.size() * part / count; i < end; ++i) {
      std::memcpy(staged + i * p.row_bytes, p.rows[rows[i]], p.row_bytes);
    }
  };
  std::vector<std::thread> threads;
  size_t begun = 1;
  try {
    threads.reserve(count);
    for (; begun < count; ++begun) threads.emplace_back(copyPart, begun);
  } catch (const std::exception&) {
    // The system has no more threads or memory: this one copies the rest.
  }
  copyPart(0);
  for (size_t part = begun; part < count; ++part) copyPart(part);
  for (std::thread& thread : threads) thread.join();
}

size_t noWorkspace(const BackendState&, const GatherProblem&) { return 0; }

void run(BackendState& state, const GatherProblem& p, Scratch) {
  CudaState& cuda = own(state);
  const DeviceGuard guard(cuda.device);
  std::vector<int64_t> unpinned;
  for (int64_t i = 0; i < p.count; ++i) {
    if (p.pinned == nullptr || p.pinned[i] == 0) unpinned.push_back(i);
  }
  const auto count = static_cast<size_t>(p.count);
  const bool by_kernel = unpinned.size() < count;
  const size_t table_bytes =
      by_kernel ? (count * sizeof(void*) + kAlignment - 1) / kAlignment * kAlignment : 0;
  Staging& staging = cuda.staging[cuda.next_staging];
  cuda.next_staging ^= 1;
  const size_t staged_bytes = unpinned.size() * p.row_bytes;
  auto* const memory = static_cast<std::byte*>(staging.take(table_bytes + staged_bytes));
  std::byte* const staged = memory + table_bytes;
  if (!unpinned.empty()) stage(p, unpinned, staged);
  if (!by_kernel) {
    cuda.last_launch = {};
    cuda.last_launch.kernel = "copy";
    checkCuda(
        cudaMemcpyAsync(p.out, staged, staged_bytes, cudaMemcpyHostToDevice, cuda.cuda_stream),
        "cudaMemcpyAsync");
  } else {
    auto* const rows = reinterpret_cast<const void**>(memory);
    std::copy(p.rows, p.rows + p.count, rows);
    for (size_t i = 0; i < unpinned.size(); ++i) {
      rows[unpinned[i]] = staged + i * p.row_bytes;
    }
    // Rows, and the begin of the staged ones, are at multiples of what divides their size.
    uintptr_t bits = p.row_bytes | reinterpret_cast<uintptr_t>(p.out);
    for (size_t i = 0; i < count; ++i) bits |= reinterpret_cast<uintptr_t>(rows[i]);
    LaunchChoice* const chosen = &cuda.last_launch;
    const cudaError_t error = bits % 16 == 0  ? launch<uint4>(p, rows, cuda, chosen)
                              : bits % 8 == 0 ? launch<uint64_t>(p, rows, cuda, chosen)
                              : bits % 4 == 0 ? launch<uint32_t>(p, rows, cuda, chosen)
                              : bits % 2 == 0 ? launch<uint16_t>(p, rows, cuda, chosen)
                                              : launch<uint8_t>(p, rows, cuda, chosen);
    checkCuda(error, "the launch");
  }
  checkCuda(cudaEventRecord(staging.copied, cuda.cuda_stream), "cudaEventRecord");
}

}  // namespace

extern const Operation<GatherProblem> kGather = {noWorkspace, run};
cudaError_t loadGather(const LaunchDevice&) { return loadKernelsBeside(gather<uint32_t>); }

}  // namespace rbc::cuda
