// Rows by index on the CPU: each thread copies some of them.

#include <algorithm>
#include <cstring>

#include "element_of.h"
#include "runtime/cpu_state.h"
#include "take_rows_problem.h"
#include "visit_dtype.h"

namespace rbc::cpu {
namespace {

constexpr int64_t kChunkElements = 1 << 16;

template <class Word>
void takeRow(const TakeRowsProblem& p, int64_t b, int64_t place, Word fill) {
  const int64_t row = p.rowFor(b, place);
  Word* out = static_cast<Word*>(p.out) + b * p.out_stride[0] + place * p.out_stride[1];
  if (row < 0) {
    for (int64_t c = 0; c < p.channels; ++c) out[c * p.out_stride[2]] = fill;
    return;
  }
  const Word* from =
      static_cast<const Word*>(p.values) + b * p.values_stride[0] + row * p.values_stride[1];
  if (p.values_stride[2] == 1 && p.out_stride[2] == 1) {
    std::memcpy(out, from, static_cast<size_t>(p.channels) * sizeof(Word));
  } else {
    for (int64_t c = 0; c < p.channels; ++c)
      out[c * p.out_stride[2]] = from[c * p.values_stride[2]];
  }
}

size_t bytes(const BackendState&, const TakeRowsProblem&) { return 0; }

void run(BackendState& backend_state, const TakeRowsProblem& p, Scratch) {
  CpuState& state = cpuState(backend_state);
  const int64_t total = p.batch * p.places;
  const int64_t each = std::max<int64_t>(1, kChunkElements / p.channels);
  visitWord(p.element, [&](auto tag) {
    using Word = typename decltype(tag)::type;
    const auto fill = elementOf<Word>(p.fill_bits);
    const int64_t chunks = (total + each - 1) / each;
    state.pool.parallelFor(chunks, state.pool.threads(), [&](int64_t chunk) {
      const int64_t end = std::min(total, (chunk + 1) * each);
      for (int64_t i = chunk * each; i < end; ++i) takeRow(p, i / p.places, i % p.places, fill);
    });
  });
}

}  // namespace

extern const Operation<TakeRowsProblem> kTakeRows = {bytes, run};

}  // namespace rbc::cpu
