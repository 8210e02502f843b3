// Rows by index: one element per thread.

#include "take_rows_problem.h"

#include "element_of.h"
#include "runtime/cuda_state.h"
#include "runtime/fast_divmod.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "visit_dtype.h"

namespace rbc::cuda {
namespace {

constexpr int kThreads = 256;

struct Arguments {
  TakeRowsProblem problem;
  FastDivmod per_place;  // channels
  FastDivmod per_batch;  // places
  int64_t elements;
};

template <class Word>
__global__ void __launch_bounds__(kThreads) takeRows(const __grid_constant__ Arguments a) {
  waitForLaunchesAhead();
  const TakeRowsProblem& p = a.problem;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < a.elements;
       i += step) {
    const int64_t place_of_all = a.per_place(i);
    const int64_t channel = i - place_of_all * p.channels;
    const int64_t b = a.per_batch(place_of_all);
    const int64_t place = place_of_all - b * p.places;
    const int64_t row = p.rowFor(b, place);
    Word word = elementOf<Word>(p.fill_bits);
    if (row >= 0) {
      word = static_cast<const Word*>(p.values)[b * p.values_stride[0] + row * p.values_stride[1] +
                                                channel * p.values_stride[2]];
    }
    static_cast<Word*>(
        p.out)[b * p.out_stride[0] + place * p.out_stride[1] + channel * p.out_stride[2]] = word;
  }
}

cudaError_t launchTakeRows(const TakeRowsProblem& p, void*, const LaunchDevice& device,
                           cudaStream_t stream, LaunchChoice* chosen) {
  Arguments arguments = {p, FastDivmod(p.channels), FastDivmod(p.places),
                         p.batch * p.places * p.channels};
  const int64_t blocks = ceilDiv(arguments.elements, int64_t{kThreads});
  *chosen = onlyKernel("take_rows", blocks, kThreads);
  return visitWord(p.element, [&](auto tag) {
    return launchBlocks(takeRows<typename decltype(tag)::type>, &arguments, blocks, kThreads,
                        device, stream);
  });
}

}  // namespace

extern const Operation<TakeRowsProblem> kTakeRows = {noBytes<TakeRowsProblem>,
                                                     launchOn<TakeRowsProblem, launchTakeRows>};
cudaError_t loadTakeRows(const LaunchDevice&) { return loadKernelsBeside(takeRows<uint32_t>); }

}  // namespace rbc::cuda
