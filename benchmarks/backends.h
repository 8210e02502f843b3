// What each backend adds: benchmarks named cpu/<table>/<case>/... and cuda/<table>/<case>/...
#pragma once

namespace bench {

void addCpuBenchmarks();
void addCudaBenchmarks();  // adds none, and says why, where CUDA cannot be used

}  // namespace bench
