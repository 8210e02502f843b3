// Cases of rbcResample and rbcFuse: B recordings of N streams, each resampled at T ticks of one
// clock.
//
// Their names: B,S,T,D and a dtype, followed by a trait or a method; B=4: 30x512, 8 streams 100x7
// -> T dtype; and, for sweeps, one of these after the size that varies. A fusion of streams with
// kinds (pose, IMU, contacts, joints) gives the mask as well.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cases.h"
#include "robocache/fuse.h"
#include "support/dtypes.h"

namespace bench {

struct StreamCase {
  int64_t samples = 0;   // S; on average per row if packed
  int64_t channels = 0;  // D
  rbcDType dtype = support::kF32;
  int32_t method = RBC_METHOD_LINEAR;
  std::vector<rbcChannelGroup> groups = {};  // instead of the method
  bool affine = false;
  bool lengths = false;
  bool packed = false;
  bool missing = false;  // 5 % of its samples, at random
  bool arrives = false;  // samples arrive up to two periods after their times
  bool causal = false;   // it looks back only
};

struct ResamplingCase : Case {
  int64_t batch = 1;
  int64_t queries = 1;
  rbcDType times = support::kF32;
  rbcDType out = support::kF32;
  bool fuses = false;  // rbcFuse is called
  bool mask = false;
  bool wild = false;    // intervals vary by 46 %, not 17 %
  bool random = false;  // queries in random order, not a clock
  std::vector<StreamCase> streams = {};

  int64_t channels() const;
  int64_t roughBytes() const override;
  std::unique_ptr<const Data> load() const override;
  std::string facts() const override;
};

// The case as a call, on the tensors of its data. The ticks may change between calls.
std::unique_ptr<Call> callOn(const ResamplingCase& c, const Tensors& tensors);

}  // namespace bench
