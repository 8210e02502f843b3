// rbcFarthestPoints: the arguments of a call as a FarthestProblem.

#include <cinttypes>

#include "farthest_problem.h"
#include "params.h"
#include "points/cloud_builder.h"
#include "robocache/clouds.h"
#include "runtime/dtype_checks.h"
#include "status.h"

namespace rbc {
namespace {

struct Arguments {
  const rbcTensor* points;
  const rbcTensor* indices;
  const rbcTensor* distances;
  const rbcFarthestPointsParams* params;
};

class FarthestCall : public CloudBuilder {
 public:
  static constexpr const char* kOperation = "farthest_points";

  FarthestCall(const rbcContext& context, const Arguments& call);
  const FarthestProblem& problem() const { return problem_; }
  // Fails on the CPU if a start index is out of range.
  void check(rbcContext& context, Scratch) const;

 private:
  FarthestProblem problem_ = {};
};

FarthestCall::FarthestCall(const rbcContext& context, const Arguments& call)
    : CloudBuilder(context, problem_.points) {
  const auto params = readParams(call.params, rbcFarthestPointsParamsInit(), "params");
  FarthestProblem& p = problem_;
  const View& indices = operands.out(call.indices, "indices");
  const View* distances = operands.optionalOut(call.distances, "distances");
  addPoints(call.points, params.lengths, params.batch_offsets);
  if (params.start_indices != nullptr) {
    p.starts = indexArrayOf(operands.in(params.start_indices, "start_indices"), "start_indices",
                            p.points.clouds);
  }
  if (params.start_index < 0 || (params.start_indices != nullptr && params.start_index != 0)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "start_index: is %" PRId64 ", expected %s",
         params.start_index, params.start_index < 0 ? "0 or more" : "0 with start_indices");
  }
  p.start = params.start_index;

  const int rank = batched() ? 2 : 1;
  requireRank(indices, "indices", rank, rank);
  requireIndexes(indices, "indices");
  p.count = indices.shape[rank - 1];
  if (p.count < 1) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "indices: shape is %s, expected room for 1 point or more",
         shapeText(indices.ndim, indices.shape));
  }
  p.indices = batchOutput<2>(indices, "indices", {p.points.clouds, p.count});
  if (distances != nullptr) {
    requireFloat(*distances, "distances");
    p.distances = batchOutput<2>(*distances, "distances", {p.points.clouds, p.count});
  }
}

void FarthestCall::check(rbcContext& context, Scratch) const {
  if (context.backend->id != RBC_BACKEND_CPU) return;
  const FarthestProblem& p = problem_;
  for (int64_t b = 0; b < p.points.clouds; ++b) {
    const int64_t count = pointsOf(p.points, b).count;
    const bool own = p.starts.data != nullptr;
    const int64_t start = own ? p.starts[b] : p.start;
    if (count == 0 || (start >= 0 && start < count)) continue;
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "%s: is %" PRId64 " for cloud %" PRId64 ", expected 0 to %" PRId64,
         own ? "start_indices" : "start_index", start, b, count - 1);
  }
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcFarthestPoints(rbcContext_t context, const rbcTensor* points,
                              const rbcTensor* indices, const rbcTensor* distances,
                              const rbcFarthestPointsParams* params) {
  return rbc::runCall<rbc::FarthestCall>(context,
                                         rbc::Arguments{points, indices, distances, params});
}

rbcStatus_t rbcFarthestPointsWorkspaceSize(rbcContext_t context, const rbcTensor* points,
                                           const rbcTensor* indices, const rbcTensor* distances,
                                           const rbcFarthestPointsParams* params, size_t* bytes) {
  return rbc::sizeCall<rbc::FarthestCall>(
      context, rbc::Arguments{points, indices, distances, params}, bytes);
}
