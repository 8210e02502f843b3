// The cases of samples that arrive, and of channels that look back only, in addition to the tables
// of resampling and fusion.
#pragma once

#include <vector>

#include "cases.h"
#include "fuse_cases.h"

namespace support {

std::vector<ResampleCase> causalCases();
std::vector<FuseCase> causalFuseCases();

// Any valid cases, from a seed. A stream has arrivals, or channels that look back only, or both.
ResampleCase randomCausalCase(uint64_t seed);
FuseCase randomCausalFuseCase(uint64_t seed);

}  // namespace support
