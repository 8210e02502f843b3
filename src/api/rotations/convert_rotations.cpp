// rbcConvertRotations: the arguments of a call as a RotationProblem.

#include <algorithm>
#include <cinttypes>

#include "params.h"
#include "robocache/rotations.h"
#include "rotation_problem.h"
#include "rotations/rotation_format.h"
#include "runtime/call.h"
#include "status.h"

namespace rbc {
namespace {

struct Arguments {
  const rbcTensor* rotations;
  const rbcTensor* out;
  const rbcConvertRotationsParams* params;
};

RotationArray arrayOf(const View& view, const char* argument, const RotationFormat& format) {
  if (!isFloat(view.dtype)) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "%s: dtype is %s, expected a float", argument,
         nameOf(view.dtype));
  }
  if (view.ndim == 0) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "%s: rank is 0, expected 1 to %d", argument,
         RBC_TENSOR_MAX_NDIM);
  }
  const int channels = channelsOf(format.kind);
  const int last = view.ndim - 1;
  if (view.shape[last] != channels) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "%s: shape is %s, expected [...,%d] of %s", argument,
         shapeText(view.ndim, view.shape), channels, textOf(format));
  }
  RotationArray array = {view.data, view.dtype, channels, view.strides[last], {}};
  return array;
}

class RotationCall : public CallBase {
 public:
  static constexpr const char* kOperation = "convert_rotations";

  RotationCall(const rbcContext& context, const Arguments& call);

  const RotationProblem& problem() const { return problem_; }
  bool empty() const { return problem_.count == 0; }
  template <class Visitor>
  void visitIndexes(Visitor&&) {}
  void verifyIndexes() const {}

 private:
  void addDimensions(const View& in, const View& out);

  RotationProblem problem_ = {};
};

RotationCall::RotationCall(const rbcContext& context, const Arguments& call) : CallBase(context) {
  if (call.params == nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "params: is null, expected a source and a target");
  }
  const auto params = readParams(call.params, rbcConvertRotationsParamsInit(), "params");
  RotationProblem& p = problem_;
  p.source = rotationFormatOf(params.source, "source");
  p.target = rotationFormatOf(params.target, "target");
  const View& in = operands.in(call.rotations, "rotations");
  const View& out = operands.out(call.out, "out");
  p.in = arrayOf(in, "rotations", p.source);
  p.out = arrayOf(out, "out", p.target);
  int64_t expected[RBC_TENSOR_MAX_NDIM];
  std::copy_n(in.shape, in.ndim, expected);
  expected[in.ndim - 1] = p.out.channels;
  requireShape(out, "out", in.ndim, expected);
  p.count = in.count / p.in.channels;
  addDimensions(in, out);
}

void RotationCall::addDimensions(const View& in, const View& out) {
  RotationProblem& p = problem_;
  for (int i = 0; i < in.ndim - 1; ++i) {
    const int64_t extent = in.shape[i];
    if (extent == 1) continue;
    const int last = p.ndim - 1;
    if (last >= 0 && p.in.stride[last] == in.strides[i] * extent &&
        p.out.stride[last] == out.strides[i] * extent) {
      p.shape[last] *= extent;
    } else {
      p.shape[p.ndim++] = extent;
    }
    p.in.stride[p.ndim - 1] = in.strides[i];
    p.out.stride[p.ndim - 1] = out.strides[i];
  }
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcConvertRotations(rbcContext_t context, const rbcTensor* rotations,
                                const rbcTensor* out, const rbcConvertRotationsParams* params) {
  return rbc::runCall<rbc::RotationCall>(context, rbc::Arguments{rotations, out, params});
}

rbcStatus_t rbcConvertRotationsWorkspaceSize(rbcContext_t context, const rbcTensor* rotations,
                                             const rbcTensor* out,
                                             const rbcConvertRotationsParams* params,
                                             size_t* bytes) {
  return rbc::sizeCall<rbc::RotationCall>(context, rbc::Arguments{rotations, out, params}, bytes);
}
