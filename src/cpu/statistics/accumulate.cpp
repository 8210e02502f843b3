// Accumulators on the CPU.

#include "runtime/cpu_state.h"
#include "statistics/visit_samples.h"

namespace rbc::cpu {
namespace {

size_t none(const BackendState&, const AccumulateProblem&) { return 0; }
size_t noneToMerge(const BackendState&, const MergeProblem&) { return 0; }

void accumulate(BackendState&, const AccumulateProblem& p, Scratch) { static_cast<void>(p); }

void merge(BackendState&, const MergeProblem& p, Scratch) {
  for (int64_t c = 0; c < p.to.channels && p.to.pass == 1; ++c) {
    mergeMoments(p.to.moments + c, p.from.moments[c]);
  }
}

}  // namespace

extern const Operation<AccumulateProblem> kAccumulate = {none, accumulate};
extern const Operation<MergeProblem> kMerge = {noneToMerge, merge};

}  // namespace rbc::cpu
