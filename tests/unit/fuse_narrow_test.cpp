// Which fusions the kernel of many narrow streams takes; without a GPU, since a plan is made on the host.
#include "support/expect.h"

#if RBC_WITH_CUDA

#include <map>
#include <string>

#include "fuse/fuse_narrow.h"
#include "fuse_builder.h"
#include "support/fuse_cases.h"
#include "support/run.h"

namespace {

using support::Context;
using support::FuseCase;
using support::PlacedFuse;

// What rbcFuse makes of a call.
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

bool isTaken(const Context& context, const FuseCase& c, const rbc::cuda::LaunchDevice& device) {
  const support::FuseInputs inputs = support::makeFuseInputs(c);
  const PlacedFuse call(context, inputs);
  const Problem problem(context, call);
  rbc::cuda::narrow_streams::Plan plan;
  return rbc::cuda::narrow_streams::suits(problem.problem(), device, &plan);
}

// Which the kernel leaves to others: rows whose elements are apart, and one stream that is not like the rest.
bool isForOthers(const std::string& name) {
  for (const char* part : {"strided", "reversed", ", one of ", ", one with "}) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("fuse narrow: the kernel takes cases of each kind that are meant for it, and no others") {
  const rbc::cuda::LaunchDevice h100 = {132, 90, 227 * 1024, true, true};
  const Context context = support::cpuContext(1);
  std::map<std::string, int> taken;
  for (const FuseCase& c : support::narrowFuseCases()) taken[c.name] += isTaken(context, c, h100);
  for (const auto& [name, count] : taken) CHECK_MESSAGE((count > 0) != isForOthers(name), name);
}

#endif  // RBC_WITH_CUDA
