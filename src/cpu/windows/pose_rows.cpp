// The arithmetic uses fused multiply-add throughout: one instruction with AVX2 or NEON, a function
// call otherwise.

#include "windows/window_run.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "windows/pose_rows.cpp"
#include "runtime/simd_targets.h"
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include <new>

#include "hwy/highway.h"
#include "window_transforms.h"

HWY_BEFORE_NAMESPACE();

#if HWY_TARGET != HWY_STATIC_TARGET
#define RBC_FORMULAS_AGAIN
#undef RBC_FORMULAS
#define RBC_FORMULAS rbc::cpu::HWY_NAMESPACE
// Each needs the ones before it.
// clang-format off
#include "slerp.h"
#include "double_double.h"
#include "trig.h"
#include "quaternion.h"
#include "euler.h"
#include "rotation_matrix.h"
#include "rotation.h"
#include "window_pose.h"
// clang-format on
#undef RBC_FORMULAS_AGAIN
#undef RBC_FORMULAS
#define RBC_FORMULAS rbc
#endif

namespace rbc::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_STATIC_TARGET
using rbc::absolutePose;
using rbc::afterStep;
using rbc::DoubleDouble;
using rbc::isRotation;
using rbc::Pose;
using rbc::PoseReference;
using rbc::readPose;
using rbc::referenceOf;
using rbc::relativePose;
using rbc::writePose;
#endif

template <class Number>
struct State {
  PoseReference<Number> reference;  // for a step, the preceding element
  Pose<Number> sum;
  bool has_reference;
  bool has_sum;
};

template <class Number>
State<Number>* stateIn(PoseState* state) {
  static_assert(sizeof(State<Number>) <= sizeof state->bytes && alignof(State<Number>) <= 16);
  return reinterpret_cast<State<Number>*>(state->bytes);
}

template <class Number>
void begin(const WindowSegment& segment, const double* values, PoseState* memory) {
  auto* state = new (memory->bytes) State<Number>();
  if (values == nullptr) return;
  const auto pose = HWY_NAMESPACE::readPose<Number>(segment.reference_rotation, values);
  state->has_reference = state->has_sum = HWY_NAMESPACE::isRotation(pose.q);
  if (!state->has_reference) return;
  state->reference = HWY_NAMESPACE::referenceOf(pose);
  state->sum = pose;
}

template <class Number>
void run(const WindowSegment& segment, const PoseRows& rows, PoseState* memory) {
  State<Number>& state = *stateIn<Number>(memory);
  const PoseKind kind = poseKindOf(segment);
  const bool steps = segment.kind == WindowKind::kStep;
  for (int i = 0; i < rows.count; ++i) {
    Pose<Number> pose = {};
    bool is_pose = rows.held[i];
    if (is_pose) {
      pose = HWY_NAMESPACE::readPose<Number>(segment.rotation, rows.in + i * kMaxPoseChannels);
      is_pose = HWY_NAMESPACE::isRotation(pose.q);
    }
    double* out = rows.out + i * kMaxPoseChannels;
    bool& own = rows.own[i];
    own &= is_pose;
    if (segment.isSum()) {
      own &= state.has_sum;
      state.has_sum = own;
      if (!own) continue;
      state.sum = HWY_NAMESPACE::afterStep(state.sum, pose);
      HWY_NAMESPACE::writePose(segment.out_rotation, state.sum, out);
      continue;
    }
    own &= state.has_reference;
    if (own) {
      const Pose<Number> result = segment.inverse
                                      ? HWY_NAMESPACE::absolutePose(kind, state.reference, pose)
                                      : HWY_NAMESPACE::relativePose(kind, state.reference, pose);
      HWY_NAMESPACE::writePose(segment.out_rotation, result, out);
    }
    if (!steps) continue;
    state.has_reference = is_pose;
    if (is_pose) state.reference = HWY_NAMESPACE::referenceOf(pose);
  }
}

PoseFunctions functionsFor(const WindowSegment& segment) {
  if (inDoubleDouble(segment)) return {begin<DoubleDouble>, run<DoubleDouble>};
  return {begin<double>, run<double>};
}

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rbc::cpu {

PoseFunctions poseFunctions(SimdLevel level, const WindowSegment& segment) {
  return RBC_AT_LEVEL(level, functionsFor)(segment);
}

}  // namespace rbc::cpu
#endif  // HWY_ONCE
