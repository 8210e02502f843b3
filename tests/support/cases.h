// The one table of resampling cases: unit tests and parity tests run on it.
//
// A case is a few numbers; makeInputs() converts it to arrays, always the same ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arrays.h"
#include "inputs.h"
#include "stream_case.h"

namespace support {

struct ResampleCase : StreamCase, SharedCase {
  void everyLayout(Layout layout) {
    values_layout = times_layout = affine_layout = queries_layout = out_layout = mask_layout =
        layout;
    // Elements of an output may not share memory.
    if (layout == Layout::kBroadcast) out_layout = mask_layout = Layout::kContiguous;
  }
};

// One line that distinguishes a failing case from any other.
inline std::string describe(const ResampleCase& c) {
  return describeShared(c) + ", " + describeStream(c);
}

// The rules, layouts and dtypes.
std::vector<ResampleCase> resampleCases();

// Every method, groups of channels, and the steps after interpolation.
std::vector<ResampleCase> methodCases();

// Any valid case, from a seed.
ResampleCase randomResampleCase(uint64_t seed);

// ---- inputs -------------------------------------------------------------------------------------

struct ResampleInputs : StreamInputs, SharedInputs {
  ResampleCase c;

  // An output of the case, poisoned.
  Array makeOut() const {
    return detail::makeOutput(c, c.out, {c.batch, c.queries, c.channels}, c.out_layout);
  }
  Array makeMask() const {
    return detail::makeOutput(c, c.mask_dtype, {c.batch, c.queries}, c.mask_layout);
  }
};

ResampleInputs makeInputs(const ResampleCase& c);

}  // namespace support
