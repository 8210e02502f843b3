// The cases of missing samples, in addition to the tables of resampling and fusion.
#pragma once

#include <vector>

#include "cases.h"
#include "fuse_cases.h"

namespace support {

std::vector<ResampleCase> missingCases();
std::vector<FuseCase> missingFuseCases();

}  // namespace support
