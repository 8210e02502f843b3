// Limits what Highway compiles to the levels of simd.h. A file with a part for each level reads:
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "this_file.cpp"
//   #include "runtime/simd_targets.h"
//   #include "hwy/foreach_target.h"  // compiles this file again for AVX2 and AVX-512, or for NEON
//   #include "hwy/highway.h"
//
//   HWY_BEFORE_NAMESPACE();
//   namespace rbc::HWY_NAMESPACE {
//   #if HWY_TARGET == HWY_STATIC_TARGET
//     ... the portable code: plain C++, since Highway's fma is not fused on every target
//   #else
//     ... the code with vectors
//   #endif
//   }
//   HWY_AFTER_NAMESPACE();
//
//   #if HWY_ONCE
//     ... RBC_AT_LEVEL(level, f) is the level's f
//   #endif
#ifndef RBC_CPU_SIMD_TARGETS_H
#define RBC_CPU_SIMD_TARGETS_H

// With any -march, the portable level exists and the others are added to it.
#define HWY_BASELINE_TARGETS HWY_BASELINE_SCALAR
// Without SVE: the size of its vectors is unknown at compile time, so no struct can hold one.
#if defined(RBC_WITHOUT_AVX512)
#define HWY_DISABLED_TARGETS (~(HWY_AVX2 | HWY_NEON | HWY_EMU128 | HWY_SCALAR))
#else
#define HWY_DISABLED_TARGETS (~(HWY_AVX2 | HWY_AVX3 | HWY_NEON | HWY_EMU128 | HWY_SCALAR))
#endif
// Its assertions in debug builds would need libhwy at run time.
#define HWY_IS_DEBUG_BUILD 0

#include "hwy/detect_targets.h"

// Whether AVX-512 is a level here: builds with sanitizers omit levels that their machine cannot
// run.
#define RBC_HAS_AVX512 (HWY_ARCH_X86_64 && (HWY_TARGETS & HWY_AVX3) != 0)
// Whether NEON is a separate level: on ARM, Highway 1.0 compiles for more than one level only with
// GCC.
#define RBC_HAS_NEON (HWY_ARCH_ARM_A64 && (HWY_TARGETS & HWY_NEON) != 0)

// The address of a level's function: a macro, since a namespace cannot be a template argument.
#if RBC_HAS_AVX512
#define RBC_AT_LEVEL(level, function)                \
  ((level) == SimdLevel::kAvx512 ? &N_AVX3::function \
   : (level) == SimdLevel::kAvx2 ? &N_AVX2::function \
                                 : &HWY_STATIC_DISPATCH(function))
#elif HWY_ARCH_X86_64
#define RBC_AT_LEVEL(level, function) \
  ((level) == SimdLevel::kAvx2 ? &N_AVX2::function : &HWY_STATIC_DISPATCH(function))
#elif RBC_HAS_NEON
#define RBC_AT_LEVEL(level, function) \
  ((level) == SimdLevel::kNeon ? &N_NEON::function : &HWY_STATIC_DISPATCH(function))
#else
#define RBC_AT_LEVEL(level, function) (static_cast<void>(level), &HWY_STATIC_DISPATCH(function))
#endif

// HWY_ATTR of a lambda that a kernel calls at several places. Builds with sanitizers compile it
// once: copies of its checks would take half of the time to compile the kernels.
#if defined(RBC_SANITIZED)
#define RBC_BODY_ATTR HWY_ATTR __attribute__((noinline))
#else
#define RBC_BODY_ATTR HWY_ATTR
#endif

#endif  // RBC_CPU_SIMD_TARGETS_H
