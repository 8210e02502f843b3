// rbcResample: fusion of a single stream.

#include "robocache/resample.h"

#include "fuse/fuse_builder.h"

namespace rbc {
namespace {

struct Arguments {
  const rbcTensor* values;
  const rbcTensor* times;
  const rbcTensor* query_times;
  const rbcTensor* out;
  const rbcTensor* valid;
  const rbcResampleParams* params;
};

struct ResampleCall : FuseBuilder {
  static constexpr const char* kOperation = "resample";

  ResampleCall(const rbcContext& context, const Arguments& call)
      : ResampleCall(context, call, checkedParams(call.params)) {}

 private:
  ResampleCall(const rbcContext& context, const Arguments& call, const rbcResampleParams& params)
      : FuseBuilder(context,
                    {call.query_times, call.out, call.valid, params.query_lengths, params.lag,
                     params.lag_ticks},
                    (params.flags & RBC_FLAG_CHECK_TIMES) != 0, nullptr) {
    add({call.values, call.times, params, 0, 0});
    finish(2);
  }
};

}  // namespace
}  // namespace rbc

rbcStatus_t rbcResample(rbcContext_t context, const rbcTensor* values, const rbcTensor* times,
                        const rbcTensor* query_times, const rbcTensor* out, const rbcTensor* valid,
                        const rbcResampleParams* params) {
  return rbc::runCall<rbc::ResampleCall>(
      context, rbc::Arguments{values, times, query_times, out, valid, params});
}

rbcStatus_t rbcResampleWorkspaceSize(rbcContext_t context, const rbcTensor* values,
                                     const rbcTensor* times, const rbcTensor* query_times,
                                     const rbcTensor* out, const rbcTensor* valid,
                                     const rbcResampleParams* params, size_t* bytes) {
  return rbc::sizeCall<rbc::ResampleCall>(
      context, rbc::Arguments{values, times, query_times, out, valid, params}, bytes);
}
