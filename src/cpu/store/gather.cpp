// Rows of a store's entry on the CPU: each thread copies some of them out of the page cache.

#include <algorithm>
#include <cstring>

#include "gather_problem.h"
#include "runtime/cpu_state.h"

namespace rbc::cpu {
namespace {

constexpr int64_t kChunkBytes = 1 << 20;

// memcpy, except where it takes seven times as long: on processors of AMD, its `rep movsb` is slow if
// the destination begins 1 to 31 bytes after the source, modulo 4096. Tensors of segments begin at a
// page, and large arrays of NumPy 16 bytes after one.
void copyBytes(std::byte* out, const std::byte* from, size_t bytes) {
  constexpr size_t kPiece = 256;
  constexpr uintptr_t kPage = 4096;
  constexpr uintptr_t kSlow = 32;
  const uintptr_t ahead =
      (reinterpret_cast<uintptr_t>(out) - reinterpret_cast<uintptr_t>(from)) % kPage;
  size_t done = 0;
  if (0 < ahead && ahead < kSlow) {
    for (; done + kPiece <= bytes; done += kPiece) std::memcpy(out + done, from + done, kPiece);
  }
  std::memcpy(out + done, from + done, bytes - done);
}

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
      copyBytes(static_cast<std::byte*>(p.out) + i * row_bytes,
                static_cast<const std::byte*>(p.rows[i]), static_cast<size_t>(count) * p.row_bytes);
      i += count;
    }
  });
}

}  // namespace

extern const Operation<GatherProblem> kGather = {bytes, run};

}  // namespace rbc::cpu
