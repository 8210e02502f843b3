// rbcResample: fusion of one stream, which has the whole of out and mask.

#include "robocache/resample.h"

#include "check.h"
#include "float_environment.h"
#include "fusion.h"

namespace rbc {
namespace {

struct Arguments {
  const rbcTensor* values;
  const rbcTensor* times;
  const rbcTensor* query_times;
  const rbcTensor* out;
  const rbcTensor* mask;
  const rbcResampleParams* params;
};

// Calls visitor(fusion, check_times) for the call, verified.
template <class Visitor>
void visitCall(rbcContext& context, const Arguments& call, Visitor&& visitor) {
  const rbcResampleParams params = checkedParams(call.params);
  const SharedArguments shared = {call.query_times, call.out, call.mask, params.query_lengths};
  auto& fusion = context.call_memory.make<Fusion>(context, shared);
  fusion.add({call.values, call.times, params, 0, 0});
  fusion.finish(2);
  visitor(fusion, (params.flags & RBC_CHECK_TIMES) != 0);
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcResample(rbcContext_t context, const rbcTensor* values, const rbcTensor* times,
                        const rbcTensor* query_times, const rbcTensor* out, const rbcTensor* mask,
                        const rbcResampleParams* params) {
  return rbc::guard([&] {
    const rbc::DefaultFloats floats;
    const rbc::ContextUse use(context);
    rbcContext& c = *use;
    rbc::visitCall(
        c, {values, times, query_times, out, mask, params},
        [&](rbc::Fusion& fusion, bool check_times) { fusion.run(c, check_times, nullptr); });
  });
}

rbcStatus_t rbcResampleWorkspaceSize(rbcContext_t context, const rbcTensor* values,
                                     const rbcTensor* times, const rbcTensor* query_times,
                                     const rbcTensor* out, const rbcTensor* mask,
                                     const rbcResampleParams* params, size_t* bytes) {
  return rbc::guard([&] {
    const rbc::DefaultFloats floats;
    if (bytes == nullptr) rbc::fail(RBC_STATUS_INVALID_ARGUMENT, "bytes: is null");
    const rbc::ContextUse use(context);
    rbcContext& c = *use;
    rbc::visitCall(c, {values, times, query_times, out, mask, params},
                   [&](rbc::Fusion& fusion, bool check_times) {
                     *bytes = fusion.workspaceBytes(check_times);
                   });
  });
}
