#include "runtime/simd.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "status.h"

namespace rbc::cpu {
namespace {

#if defined(__x86_64__)
// Not every compiler's __builtin_cpu_supports() knows it.
bool hasF16C() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

// What simd_targets.h lets the compiler use at a level.
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
    case SimdLevel::kAvx512: return avx512;
  }
  return false;
#else
  return level == SimdLevel::kPortable;
#endif
}

}  // namespace

SimdLevel chooseSimd(int32_t requested) {
  if (requested == RBC_SIMD_AUTO) {
    if (machineHas(SimdLevel::kAvx512)) return SimdLevel::kAvx512;
    return machineHas(SimdLevel::kAvx2) ? SimdLevel::kAvx2 : SimdLevel::kPortable;
  }
  const auto level = static_cast<SimdLevel>(requested);
  if (!machineHas(level)) {
    fail(RBC_STATUS_NOT_AVAILABLE, "params: simd is %s, which this machine's CPU lacks",
         level == SimdLevel::kAvx512 ? "RBC_SIMD_AVX512 (AVX-512 F, VL, DQ, BW and CD)"
                                     : "RBC_SIMD_AVX2 (AVX2 with FMA and F16C)");
  }
  return level;
}

}  // namespace rbc::cpu
