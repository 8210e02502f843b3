// Conversion of rotations on the CPU: blocks are loaded as f64, converted one rotation at a time,
// and stored.
//
// The arithmetic uses fused multiply-add throughout: one instruction with AVX2 or NEON, a function
// call otherwise.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rotations/convert_rotations.cpp"
#include "runtime/simd_targets.h"
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include <algorithm>

#include "hwy/highway.h"
#include "rotation_problem.h"
#include "runtime/cpu_state.h"

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
#include "visit_dtype.h"
// clang-format on
#undef RBC_FORMULAS_AGAIN
#undef RBC_FORMULAS
#define RBC_FORMULAS rbc
#endif

namespace rbc::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_STATIC_TARGET
using rbc::convertRotation;
#endif

void convertAll(const RotationProblem& p, int64_t count, double (*rotations)[9]) {
  for (int64_t i = 0; i < count; ++i) {
    HWY_NAMESPACE::convertRotation(p.source, p.target, rotations[i], rotations[i]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace rbc::cpu {
namespace {

constexpr int64_t kBlock = 256;         // rotations that are converted at once
constexpr int64_t kChunk = 8 * kBlock;  // rotations per task: at least 20 us

struct Block {
  double rotations[kBlock][kMaxRotationChannels];
};

using ConvertAll = void (*)(const RotationProblem& p, int64_t count, double (*rotations)[9]);

ConvertAll convertAllFor(SimdLevel level) { return RBC_AT_LEVEL(level, convertAll); }

void load(const RotationProblem& p, int64_t first, int64_t count, Block* block) {
  visitFloat(p.in.dtype, [&](auto tag) {
    for (int64_t i = 0; i < count; ++i) {
      loadRotation<typename decltype(tag)::type>(p.in.data, placeOf(p, first + i).in,
                                                 p.in.channel_stride, p.in.channels,
                                                 block->rotations[i]);
    }
  });
}

void store(const RotationProblem& p, int64_t first, int64_t count, const Block& block) {
  visitFloat(p.out.dtype, [&](auto tag) {
    for (int64_t i = 0; i < count; ++i) {
      storeRotation<typename decltype(tag)::type>(block.rotations[i], p.out.data,
                                                  placeOf(p, first + i).out, p.out.channel_stride,
                                                  p.out.channels);
    }
  });
}

size_t bytes(const BackendState&, const RotationProblem&) { return 0; }

void run(BackendState& backend_state, const RotationProblem& p, Scratch) {
  CpuState& state = cpuState(backend_state);
  const ConvertAll convert_all = convertAllFor(state.simd);
  const int64_t chunks = (p.count + kChunk - 1) / kChunk;
  state.pool.parallelFor(chunks, state.pool.threads(), [&](int64_t chunk, ThreadMemory& memory) {
    auto* block = memory.as<Block>();
    const int64_t end = std::min(p.count, (chunk + 1) * kChunk);
    for (int64_t first = chunk * kChunk; first < end; first += kBlock) {
      const int64_t count = std::min(kBlock, end - first);
      load(p, first, count, block);
      convert_all(p, count, block->rotations);
      store(p, first, count, *block);
    }
  });
}

}  // namespace

extern const Operation<RotationProblem> kConvertRotations = {bytes, run};

}  // namespace rbc::cpu

#endif  // HWY_ONCE
