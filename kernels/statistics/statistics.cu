// Statistics on CUDA.

#include "runtime/cuda_state.h"
#include "statistics_problem.h"

namespace rbc::cuda {
namespace {

[[noreturn]] void notYet() {
  fail(RBC_STATUS_UNSUPPORTED, "context: is of CUDA, which has no statistics in this build");
}

}  // namespace

extern const Operation<StatisticsProblem> kStatistics = {
    [](const BackendState&, const StatisticsProblem&) -> size_t { notYet(); },
    [](BackendState&, const StatisticsProblem&, Scratch) { notYet(); }};
extern const Operation<AccumulateProblem> kAccumulate = {
    [](const BackendState&, const AccumulateProblem&) -> size_t { notYet(); },
    [](BackendState&, const AccumulateProblem&, Scratch) { notYet(); }};
extern const Operation<MergeProblem> kMerge = {
    [](const BackendState&, const MergeProblem&) -> size_t { notYet(); },
    [](BackendState&, const MergeProblem&, Scratch) { notYet(); }};

}  // namespace rbc::cuda
