// The benchmarks of each backend: their names are cpu/<table>/<case>/... and
// cuda/<table>/<case>/...
#pragma once

#include <string>

namespace bench {

// Indexed by RBC_SIMD_...
constexpr const char* kSimdNames[] = {"auto", "portable", "avx2", "avx512", "neon"};

void addCpuBenchmarks();
void addCallBenchmarks();  // small calls on the CPU
void addCudaBenchmarks();  // if CUDA is not usable, adds none and prints why

// These run instead of benchmarks, and return the exit status.
int profileCuda();                       // calls each kind of CUDA kernel for a profiler
int writeCase(const std::string& name);  // writes the data of a case to the standard output

}  // namespace bench
