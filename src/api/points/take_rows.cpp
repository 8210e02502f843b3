// rbcTakeRows: the arguments of a call as a TakeRowsProblem.

#include <cinttypes>

#include "params.h"
#include "robocache/clouds.h"
#include "runtime/call.h"
#include "runtime/dtype_checks.h"
#include "status.h"
#include "take_rows_problem.h"

namespace rbc {
namespace {

struct Arguments {
  const rbcTensor* values;
  const rbcTensor* indices;
  const rbcTensor* out;
  const rbcTakeRowsParams* params;
};

class TakeRowsCall : public CallBase {
 public:
  static constexpr const char* kOperation = "take_rows";

  TakeRowsCall(const rbcContext& context, const Arguments& call);

  const TakeRowsProblem& problem() const { return problem_; }
  bool empty() const {
    return problem_.batch == 0 || problem_.places == 0 || problem_.channels == 0;
  }
  template <class Visitor>
  void visitIndexes(Visitor&&) {}
  void verifyIndexes() const {}
  // Fails on the CPU if an index is out of range.
  void check(rbcContext& context, Scratch) const;

 private:
  TakeRowsProblem problem_ = {};
};

TakeRowsCall::TakeRowsCall(const rbcContext& context, const Arguments& call) : CallBase(context) {
  const auto params = readParams(call.params, rbcTakeRowsParamsInit(), "params");
  TakeRowsProblem& p = problem_;
  const View& values = operands.in(call.values, "values");
  const View& indices = operands.in(call.indices, "indices");
  const View& out = operands.out(call.out, "out");
  requireRank(values, "values", 2, 3);
  const bool own = values.ndim == 3;  // a batch of values
  requireRank(indices, "indices", own ? 2 : 1, 2);
  requireIndexes(indices, "indices");
  const bool batched = indices.ndim == 2;
  if (own && indices.shape[0] != values.shape[0]) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "indices: shape is %s, expected [%" PRId64 ",K]",
         shapeText(indices.ndim, indices.shape), values.shape[0]);
  }
  p.values = values.data;
  p.values_stride[0] = own ? values.strides[0] : 0;
  p.values_stride[1] = values.strides[values.ndim - 2];
  p.values_stride[2] = values.strides[values.ndim - 1];
  p.rows = values.shape[values.ndim - 2];
  p.indices = indices.data;
  p.indices_stride[0] = batched ? indices.strides[0] : 0;
  p.indices_stride[1] = indices.strides[indices.ndim - 1];
  p.indices_are_64 = indices.dtype == DType::I64;
  p.batch = batched ? indices.shape[0] : 1;
  p.places = indices.shape[indices.ndim - 1];
  p.channels = values.shape[values.ndim - 1];
  const int64_t shape[] = {p.batch, p.places, p.channels};
  requireShape(out, "out", batched ? 3 : 2, shape + (batched ? 0 : 1));
  if (out.dtype != values.dtype) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "out: dtype is %s, expected %s, as values", nameOf(out.dtype),
         nameOf(values.dtype));
  }
  p.out = out.data;
  p.out_stride[0] = batched ? out.strides[0] : 0;
  p.out_stride[1] = out.strides[out.ndim - 2];
  p.out_stride[2] = out.strides[out.ndim - 1];
  p.element = sizeOf(values.dtype);
  p.fill_bits = elementBits(params.fill_value, values.dtype, "fill_value");
}

void TakeRowsCall::check(rbcContext& context, Scratch) const {
  if (context.backend->id != RBC_BACKEND_CPU || problem_.places == 0) return;
  constexpr int64_t kBetweenPolls = 1 << 16;
  Interrupt& interrupt = context.state->interrupt;
  const TakeRowsProblem& p = problem_;
  int64_t left = kBetweenPolls;
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t k = 0; k < p.places; ++k) {
      if (--left == 0) {
        left = kBetweenPolls;
        if (interrupt.stopped()) interrupt.requireRunning();
      }
      const int64_t at = b * p.indices_stride[0] + k * p.indices_stride[1];
      const int64_t row = p.indices_are_64 ? static_cast<const int64_t*>(p.indices)[at]
                                           : static_cast<const int32_t*>(p.indices)[at];
      if (row >= -1 && row < p.rows) continue;
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "indices: is %" PRId64 " at [%" PRId64 ",%" PRId64
           "], expected -1, or one of the %" PRId64 " rows of values",
           row, b, k, p.rows);
    }
  }
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcTakeRows(rbcContext_t context, const rbcTensor* values, const rbcTensor* indices,
                        const rbcTensor* out, const rbcTakeRowsParams* params) {
  return rbc::runCall<rbc::TakeRowsCall>(context, rbc::Arguments{values, indices, out, params});
}

rbcStatus_t rbcTakeRowsWorkspaceSize(rbcContext_t context, const rbcTensor* values,
                                     const rbcTensor* indices, const rbcTensor* out,
                                     const rbcTakeRowsParams* params, size_t* bytes) {
  return rbc::sizeCall<rbc::TakeRowsCall>(context, rbc::Arguments{values, indices, out, params},
                                          bytes);
}
