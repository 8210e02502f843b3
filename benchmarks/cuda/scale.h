// Several GPUs at once: benchmarks named cuda/scale/<case>/gpus:N
#pragma once

namespace bench {

void addScaleBenchmarks();

}  // namespace bench
