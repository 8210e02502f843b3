// What each backend adds: benchmarks named cpu/<table>/<case>/... and cuda/<table>/<case>/...
#pragma once

namespace bench {

void addCpuBenchmarks();
void addCallBenchmarks();  // the CPU's, of small calls
void addCudaBenchmarks();  // adds none, and says why, where CUDA cannot be used

// Calls each kind of CUDA kernel for a profiler; the exit status.
int profileCuda();

}  // namespace bench
