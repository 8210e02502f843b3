// Random draws on the CPU: each thread draws for some of the samples.

#include <algorithm>

#include "image_draws_problem.h"
#include "runtime/cpu_state.h"

namespace rbc::cpu {
namespace {

constexpr int64_t kChunk = 1024;

size_t bytes(const BackendState&, const ImageDrawsProblem&) { return 0; }

void run(BackendState& backend_state, const ImageDrawsProblem& p, Scratch) {
  CpuState& state = cpuState(backend_state);
  const int64_t chunks = (p.count + kChunk - 1) / kChunk;
  state.pool.parallelFor(chunks, state.pool.threads(), [&](int64_t chunk) {
    const int64_t end = std::min(p.count, (chunk + 1) * kChunk);
    for (int64_t i = chunk * kChunk; i < end; ++i) drawImage(p, i);
  });
}

}  // namespace

extern const Operation<ImageDrawsProblem> kImageDraws = {bytes, run};

}  // namespace rbc::cpu
