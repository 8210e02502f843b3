// rbcFuse: the streams of a call, one after the other.

#include "robocache/fuse.h"

#include "fuse/fuse_builder.h"
#include "status.h"

namespace rbc {
namespace {

static_assert(RBC_FUSE_MAX_STREAMS == kMaxStreams);
static_assert(RBC_FUSE_MAX_CHANNEL_GROUPS == kMaxSegments);

struct Arguments {
  const rbcFuseStream* streams;
  int32_t num_streams;
  const rbcTensor* query_times;
  const rbcTensor* out;
  const rbcTensor* valid;
  const rbcFuseParams* params;
};

rbcResampleParams checkedStreamParams(const rbcResampleParams* input) {
  const rbcResampleParams params = checkedParams(input);
  requireUnshared(params, "rbcFuseParams");
  if (params.query_lengths != nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "params.query_lengths: is set, expected null: set it in rbcFuseParams");
  }
  return params;
}

class FuseCall : public FuseBuilder {
 public:
  static constexpr const char* kOperation = "fuse";

  FuseCall(const rbcContext& context, const Arguments& call)
      : FuseCall(context, call, readParams(call.params, rbcFuseParamsInit(), "params")) {}

 private:
  FuseCall(const rbcContext& context, const Arguments& call, const rbcFuseParams& params)
      : FuseBuilder(context,
                    {call.query_times, call.out, call.valid, params.query_lengths, params.lag,
                     params.lag_ticks},
                    (params.flags & RBC_FLAG_CHECK_TIMES) != 0, "streams") {
    if (call.num_streams < 1 || call.num_streams > kMaxStreams) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "num_streams: is %d, expected 1 to %d", call.num_streams,
           kMaxStreams);
    }
    if (call.streams == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "streams: is null");
    requireFloatOut();
    const uint32_t stride = structSize(call.streams);
    for (int n = 0; n < call.num_streams; ++n) {
      operands.setStream(n);
      const char* separator = ": ";
      try {
        const rbcFuseStream stream =
            readElement(call.streams, stride, n, rbcFuseStreamInit(), "streams");
        separator = ".";  // from here on messages begin with a field
        const rbcResampleParams own = checkedStreamParams(stream.params);
        add({stream.values, stream.times, own, stream.clock_offset, stream.clock_offset_ticks});
      } catch (const Error&) {
        prefixLastError("streams[%d]%s", n, separator);
        throw;
      }
    }
    operands.setStream(-1);
    finish(3);
  }
};

}  // namespace
}  // namespace rbc

rbcStatus_t rbcFuse(rbcContext_t context, const rbcFuseStream* streams, int32_t num_streams,
                    const rbcTensor* query_times, const rbcTensor* out, const rbcTensor* valid,
                    const rbcFuseParams* params) {
  return rbc::runCall<rbc::FuseCall>(
      context, rbc::Arguments{streams, num_streams, query_times, out, valid, params});
}

rbcStatus_t rbcFuseWorkspaceSize(rbcContext_t context, const rbcFuseStream* streams,
                                 int32_t num_streams, const rbcTensor* query_times,
                                 const rbcTensor* out, const rbcTensor* valid,
                                 const rbcFuseParams* params, size_t* bytes) {
  return rbc::sizeCall<rbc::FuseCall>(
      context, rbc::Arguments{streams, num_streams, query_times, out, valid, params}, bytes);
}
