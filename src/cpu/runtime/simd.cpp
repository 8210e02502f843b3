#include "runtime/simd.h"

#include "runtime/simd_targets.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <initializer_list>

#include "status.h"

namespace rbc::cpu {
namespace {

#if defined(__x86_64__)
// Not every compiler's __builtin_cpu_supports() supports it.
bool hasF16C() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

// Whether the machine has the instructions that simd_targets.h allows at a level.
bool machineHas(SimdLevel level) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && hasF16C() &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd");
  switch (level) {
    case SimdLevel::kPortable: return true;
    case SimdLevel::kAvx2: return avx2;
    case SimdLevel::kAvx512: return avx512 && RBC_HAS_AVX512;
    case SimdLevel::kNeon: return false;
  }
  return false;
#else
  // Highway enables AES together with NEON, which some CPUs lack, but no code here uses it.
  return level == SimdLevel::kPortable || (RBC_HAS_NEON && level == SimdLevel::kNeon);
#endif
}

const char* nameOf(SimdLevel level) {
  switch (level) {
    case SimdLevel::kPortable: break;
    case SimdLevel::kAvx2: return "RBC_SIMD_AVX2 (AVX2 with FMA and F16C)";
    case SimdLevel::kAvx512: return "RBC_SIMD_AVX512 (AVX-512 F, VL, DQ, BW and CD)";
    case SimdLevel::kNeon: return "RBC_SIMD_NEON (64-bit ARM)";
  }
  return "RBC_SIMD_PORTABLE";
}

}  // namespace

const char* shortNameOf(SimdLevel level) {
  switch (level) {
    case SimdLevel::kPortable: break;
    case SimdLevel::kAvx2: return "avx2";
    case SimdLevel::kAvx512: return "avx512";
    case SimdLevel::kNeon: return "neon";
  }
  return "portable";
}

SimdLevel chooseSimd(int32_t requested) {
  if (requested == RBC_SIMD_AUTO) {
    for (const SimdLevel level : {SimdLevel::kNeon, SimdLevel::kAvx512, SimdLevel::kAvx2}) {
      if (machineHas(level)) return level;
    }
    return SimdLevel::kPortable;
  }
  const auto level = static_cast<SimdLevel>(requested);
  if (!machineHas(level)) {
    fail(RBC_STATUS_NOT_AVAILABLE, "params: simd is %s, which this machine's CPU lacks",
         nameOf(level));
  }
  return level;
}

}  // namespace rbc::cpu
