// rbcFuse: the streams of a call, one after the other.

#include "robocache/fuse.h"

#include <cinttypes>
#include <cstring>

#include "fuse_builder.h"

namespace rbc {
namespace {

static_assert(RBC_FUSE_MAX_STREAMS == kMaxStreams);
static_assert(RBC_MAX_CHANNEL_GROUPS == kMaxSegments);

struct Arguments {
  const rbcFuseStream* streams;
  int32_t num_streams;
  const rbcTensor* query_times;
  const rbcTensor* out;
  const rbcTensor* mask;
  const rbcFuseParams* params;
};

// A stream of the caller's array, whose elements are `stride` bytes apart, as the first one says.
rbcFuseStream readStream(const unsigned char* given, uint32_t stride) {
  const uint32_t size = structSize(given);
  if (size != stride) {  // before a byte of it is read that may lie beyond the array
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "struct_size is %" PRIu32 ", expected %" PRIu32 " as streams[0]", size, stride);
  }
  return readParams(given, size, rbcFuseStreamInit(), nullptr);
}

rbcResampleParams checkedStreamParams(const rbcResampleParams* given) {
  const rbcResampleParams params = checkedParams(given);
  if (params.flags != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "params.flags: are not 0, expected them in rbcFuseParams");
  }
  if (params.query_lengths != nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "params.query_lengths: are given, expected them in rbcFuseParams");
  }
  return params;
}

class FuseCall : public FuseBuilder {
 public:
  FuseCall(const rbcContext& context, const Arguments& call)
      : FuseCall(context, call, readParams(call.params, rbcFuseParamsInit(), "params")) {}

 private:
  FuseCall(const rbcContext& context, const Arguments& call, const rbcFuseParams& params)
      : FuseBuilder(context, {call.query_times, call.out, call.mask, params.query_lengths},
                    (params.flags & RBC_CHECK_TIMES) != 0, "streams") {
    if (call.num_streams < 1 || call.num_streams > kMaxStreams) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "num_streams: is %d, expected 1 to %d", call.num_streams,
           kMaxStreams);
    }
    if (call.streams == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "streams: is null");
    requireFloatOut();
    const auto* const streams = reinterpret_cast<const unsigned char*>(call.streams);
    const uint32_t stride = structSize(streams);
    for (int n = 0; n < call.num_streams; ++n) {
      operands.setStream(n);
      const char* separator = ": ";
      try {
        const rbcFuseStream stream =
            readStream(streams + size_t{stride} * static_cast<size_t>(n), stride);
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
                    const rbcTensor* query_times, const rbcTensor* out, const rbcTensor* mask,
                    const rbcFuseParams* params) {
  return rbc::runCall<rbc::FuseCall>(
      context, rbc::Arguments{streams, num_streams, query_times, out, mask, params});
}

rbcStatus_t rbcFuseWorkspaceSize(rbcContext_t context, const rbcFuseStream* streams,
                                 int32_t num_streams, const rbcTensor* query_times,
                                 const rbcTensor* out, const rbcTensor* mask,
                                 const rbcFuseParams* params, size_t* bytes) {
  return rbc::sizeCall<rbc::FuseCall>(
      context, rbc::Arguments{streams, num_streams, query_times, out, mask, params}, bytes);
}
