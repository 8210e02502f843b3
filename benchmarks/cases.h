// The cases that are measured: B recordings of N streams, each put onto T ticks of one clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "robocache/fuse.h"
#include "support/dtypes.h"

namespace bench {

struct StreamCase {
  int64_t samples = 0;   // S; about the mean row if packed
  int64_t channels = 0;  // D
  rbcDType dtype = support::kF32;
  int32_t method = RBC_METHOD_LINEAR;
  std::vector<rbcChannelGroup> groups = {};  // instead of the method
  bool affine = false;
  bool lengths = false;
  bool packed = false;
};

struct Case {
  std::string op;    // the table it stands in: resample, fuse, methods or sweep
  std::string name;  // unique in it
  int64_t batch = 1;
  int64_t queries = 1;
  rbcDType times = support::kF32;
  rbcDType out = support::kF32;
  bool mask = false;
  bool wild = false;     // intervals vary by 46 %, not 17 %
  bool random = false;   // queries in no order, not a clock
  bool variant = false;  // of another case, in one thing: measured less thoroughly
  std::vector<StreamCase> streams = {};

  // Whether rbcFuse is called, or of one stream rbcResample.
  bool fuses() const { return op == "fuse" || streams.size() > 1; }
  int64_t channels() const {
    int64_t channels = 0;
    for (const StreamCase& stream : streams) channels += stream.channels;
    return channels;
  }
};

std::vector<Case> resampleCases();
std::vector<Case> fuseCases();
// Every method at one size; linear comes first, for the others are held against it.
std::vector<Case> methodCases(int64_t batch, int64_t samples, int64_t queries, int64_t channels,
                              rbcDType dtype);
// One size at a time far from those of a case in the middle; named "D=7: B,S,T,D dtype".
std::vector<Case> sweepCases();

}  // namespace bench
