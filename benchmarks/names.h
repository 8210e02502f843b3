// How benchmarks are named: cpu/<op>/<case>/... and cuda/<op>/<case>/...
#pragma once

#include <algorithm>
#include <string>

namespace bench {

// "32,500,250,256 f32 nearest" -> "32,500,250,256/f32/nearest"
inline std::string nameOf(std::string case_name) {
  std::replace(case_name.begin(), case_name.end(), ' ', '/');
  return case_name;
}

void addCpuBenchmarks();
void addCudaBenchmarks();  // adds none, and says why, where CUDA cannot be used

}  // namespace bench
