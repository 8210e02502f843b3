// The vector instructions of a context.
//
// A file with code for them is compiled once per level: see simd_targets.h.
#pragma once

#include <cstdint>

#include "robocache/context.h"

namespace rbc::cpu {

enum class SimdLevel : int32_t {
  kPortable = RBC_SIMD_PORTABLE,
  kAvx2 = RBC_SIMD_AVX2,
  kAvx512 = RBC_SIMD_AVX512,
  kNeon = RBC_SIMD_NEON,
};

// The level for rbcContextParams.simd; fails with NOT_AVAILABLE if this machine lacks it.
SimdLevel chooseSimd(int32_t requested);

// For example "avx512".
const char* shortNameOf(SimdLevel level);

}  // namespace rbc::cpu
