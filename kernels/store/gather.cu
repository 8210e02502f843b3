// Rows of a store's entry on CUDA. A kernel reads rows of pinned memory where they are, over the bus;
// others are gathered into staging memory by threads of the CPU, and copied in one piece.

#include "gather_problem.h"

#include <algorithm>
#include <cstring>
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
constexpr int64_t kChunkBytes = 1 << 19;  // that a thread of the CPU copies at a time

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

// Copies rows that are not pinned, one after the other.
void stage(ThreadPool& pool, const GatherProblem& p, const std::vector<int64_t>& rows,
           std::byte* staged) {
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t each = std::max<int64_t>(1, kChunkBytes / static_cast<int64_t>(p.row_bytes));
  pool.parallelFor(ceilDiv(count, each), pool.threads(), [&](int64_t chunk) {
    const int64_t end = std::min(count, (chunk + 1) * each);
    for (int64_t i = chunk * each; i < end; ++i) {
      std::memcpy(staged + static_cast<size_t>(i) * p.row_bytes, p.rows[rows[i]], p.row_bytes);
    }
  });
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
  const size_t staged_bytes = unpinned.size() * p.row_bytes;
  Staging& staging = cuda.staging.next(table_bytes + staged_bytes);
  auto* const memory = static_cast<std::byte*>(staging.memory);
  std::byte* const staged = memory + table_bytes;
  if (!unpinned.empty()) stage(cuda.staging.threads(), p, unpinned, staged);
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
    // The largest word that the addresses of all rows, the output and the size are multiples of.
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
