// The table of fusion cases, like that of resampling in cases.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arrays.h"
#include "inputs.h"
#include "stream_case.h"

namespace support {

struct FuseCase : SharedCase {
  std::vector<StreamCase> streams = {};

  int64_t channels() const {
    int64_t channels = 0;
    for (const StreamCase& stream : streams) channels += stream.channels;
    return channels;
  }
  void everyLayout(Layout layout);
};

std::string describe(const FuseCase& c);

std::vector<FuseCase> fuseCases();

// Cases of many narrow streams, and of narrow streams that differ in dtype or method; both take
// longer.
std::vector<FuseCase> narrowFuseCases();
std::vector<FuseCase> mixedFuseCases();

// Any valid case, from a seed.
FuseCase randomFuseCase(uint64_t seed);

// ---- inputs -------------------------------------------------------------------------------------

struct FuseInputs : SharedInputs {
  FuseCase c;
  std::vector<StreamInputs> streams;

  // An output of the case, poisoned.
  Array makeOut() const;
  Array makeMask() const;
};

FuseInputs makeFuseInputs(const FuseCase& c);

}  // namespace support
