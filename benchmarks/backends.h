// What each backend adds: benchmarks named cpu/<table>/<case>/... and cuda/<table>/<case>/...
#pragma once

#include <string>

namespace bench {

// By RBC_SIMD_...
constexpr const char* kSimdNames[] = {"auto", "portable", "avx2", "avx512", "neon"};

void addCpuBenchmarks();
void addCallBenchmarks();  // the CPU's, of small calls
void addCudaBenchmarks();  // adds none, and says why, where CUDA cannot be used

// These are instead of benchmarks, and return the exit status.
int profileCuda();                       // calls each kind of CUDA kernel for a profiler
int writeCase(const std::string& name);  // the data of a case onto the standard output

}  // namespace bench
