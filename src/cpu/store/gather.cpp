// Rows of a store's entry on the CPU: each thread copies some of them out of the page cache.

#include <algorithm>
#include <cstring>

#include "gather_problem.h"
#include "runtime/cpu_state.h"

namespace rbc::cpu {
namespace {

constexpr int64_t kChunkBytes = 1 << 20;

size_t bytes(const BackendState&, const GatherProblem&) { return 0; }

void run(BackendState& backend_state, const GatherProblem& p, Scratch) {
  CpuState& state = cpuState(backend_state);
  const auto row_bytes = static_cast<int64_t>(p.row_bytes);
  const int64_t each = std::max<int64_t>(1, kChunkBytes / row_bytes);
  const int64_t chunks = (p.count + each - 1) / each;
  state.pool.parallelFor(chunks, state.pool.threads(), [&](int64_t chunk) {
    const int64_t end = std::min(p.count, (chunk + 1) * each);
    for (int64_t i = chunk * each; i < end;) {
      const int64_t count = p.neighbours(i, end);
      std::memcpy(static_cast<std::byte*>(p.out) + i * row_bytes, p.rows[i],
                  static_cast<size_t>(count) * p.row_bytes);
      i += count;
    }
  });
}

}  // namespace

extern const Operation<GatherProblem> kGather = {bytes, run};

}  // namespace rbc::cpu
