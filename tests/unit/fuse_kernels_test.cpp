// The fusions that the kernels of narrow streams accept; without a GPU.
#include <map>
#include <string>
#include <vector>

#include "fuse/fuse_builder.h"
#include "fuse/select.h"
#include "support/expect.h"
#include "support/fuse_cases.h"
#include "support/run.h"

namespace {

using rbc::FuseProblem;
using rbc::cuda::LaunchDevice;
using support::Context;
using support::FuseCase;
using support::PlacedFuse;

constexpr LaunchDevice kH100 = {132, 90, 227 * 1024, true, true};

// The problem that rbcFuse makes from a call.
class Problem : public rbc::FuseBuilder {
 public:
  Problem(const Context& context, const PlacedFuse& call)
      : FuseBuilder(*context,
                    {call.shared().queryTimes(), call.shared().out(), call.shared().mask(),
                     call.shared().queryLengths()},
                    false, "streams") {
    for (const rbcFuseStream& s : call.streams()) {
      const rbcResampleParams params = rbc::checkedParams(s.params);
      add({s.values, s.times, params, s.clock_offset, s.clock_offset_ticks});
    }
    finish(3);
  }
};

template <rbc::cuda::FuseKernel kKernel>
bool isTakenBy(const FuseProblem& p) {
  return rbc::cuda::selectFuse(p, kH100).family == kKernel;
}

// Checks that a kernel accepts cases of each name, except names with one of some parts.
template <class IsTaken>
void checkTaken(const std::vector<FuseCase>& cases, IsTaken isTaken,
                const std::vector<const char*>& for_others) {
  const Context context = support::cpuContext(1);
  std::map<std::string, int> taken;
  for (const FuseCase& c : cases) {
    const support::FuseInputs inputs = support::makeFuseInputs(c);
    const PlacedFuse call(context, inputs);
    taken[c.name] += isTaken(Problem(context, call).problem()) ? 1 : 0;
  }
  for (const auto& entry : taken) {
    const std::string& name = entry.first;
    bool for_other = false;
    for (const char* part : for_others) for_other |= name.find(part) != std::string::npos;
    CHECK_MESSAGE((entry.second > 0) != for_other, name);
  }
}

}  // namespace

TEST_CASE("fuse narrow: the kernel accepts cases of each intended kind, and no others") {
  checkTaken(support::narrowFuseCases(), isTakenBy<rbc::cuda::FuseKernel::kNarrow>,
             {"strided", "reversed", ", one of ", ", one with "});
}

TEST_CASE("fuse mixed: the kernel accepts cases of each intended kind, and no others") {
  checkTaken(support::mixedFuseCases(), isTakenBy<rbc::cuda::FuseKernel::kMixed>,
             {"out strided", "out reversed", "values strided", "values reversed", "values columns",
              "times strided", "times reversed", "values padded", "too many", "of doubles",
              "with missing", "too few"});
}
