// The list of the instances of the kernels of whole rows: their compilation, their tuning and the
// choice among them all use it.
#pragma once

#include "dtype.h"

namespace rbc::cuda {
namespace rows {

// Methods with similar kernels. Streams of several kinds use the last of these kinds: it can do
// what the others can, except for quaternions and angles in kFourRows.
enum class Kind {
  kLine,         // a sample, or a line between two
  kTwoRows,      // any formula of two samples of a channel, and normalization
  kQuaternions,  // slerp as well; values affect the mask
  kFourRows,     // any formula of four samples, and normalization
};

// Dtypes of values and of out that have kernels; each set includes those before it.
enum class DTypes {
  kTraining,   // 16-bit floats and f32, out no wider than values
  kNoDoubles,  // and 16-bit floats to f32
  kAll,
};
struct DTypePair {
  DType in;
  DType out;
  DTypes least;  // the smallest set that includes it
};
inline constexpr DTypePair kDTypePairs[] = {
    {DType::F16, DType::F16, DTypes::kTraining},   {DType::BF16, DType::BF16, DTypes::kTraining},
    {DType::F32, DType::F32, DTypes::kTraining},   {DType::F32, DType::F16, DTypes::kTraining},
    {DType::F32, DType::BF16, DTypes::kTraining},  {DType::F16, DType::F32, DTypes::kNoDoubles},
    {DType::BF16, DType::F32, DTypes::kNoDoubles}, {DType::F64, DType::F64, DTypes::kAll},
    {DType::F64, DType::F32, DTypes::kAll},
};

// The `bytes` of kernels for any rows with adjacent channels: a vector is one channel.
inline constexpr int kSingle = 1;

// Channels per vector: `bytes` of the larger dtype, but at least one.
constexpr int vecCountOf(const DTypePair& dtypes, int bytes) {
  const int in = sizeOf(dtypes.in);
  const int out = sizeOf(dtypes.out);
  const int count = bytes / (in > out ? in : out);
  return count > 1 ? count : 1;
}

// Threads per block.
inline constexpr int kThreads = 128;

// Streams per launch. They are part of the arguments, so that a few streams get a small struct.
inline constexpr int kFewStreams = 8;
inline constexpr int kManyStreams = 64;

struct Form {
  Kind kind;
  int streams;  // at most
  int bytes;    // per vector of the larger dtype
  DTypes dtypes;

  // Tunings. Blocks that must fit on a multiprocessor bound the registers: as many as fit without
  // spills. The vectors per unit let it write about 16 KB, or 32 KB if a query costs more.
  int blocks;
  int in_flight;
  int in_flight_of_doubles;
  int unit_vectors;
  int own_channels;  // kSingle: with at most these, a query's own thread writes it

  bool masked = false;  // samples of some stream may be missing
};

// In the order of preference, with the time in us of a case for each group, on an H200:
// docs/performance/experiments.md has these and other experiments. Each pair of dtypes costs about
// 0.3 seconds of compilation for each dtype of times and each architecture.
inline constexpr Form kForms[] = {
    // 1024,500,250,256 bf16: linear 92, slerp 102, pchip 160.
    {Kind::kLine, 1, 16, DTypes::kAll, 8, 4, 2, 1024, 4},
    {Kind::kTwoRows, 1, 16, DTypes::kTraining, 8, 2, 2, 2048, 4},
    {Kind::kQuaternions, 1, 16, DTypes::kTraining, 8, 2, 2, 2048, 4},
    {Kind::kFourRows, 1, 16, DTypes::kTraining, 8, 1, 1, 2048, 4},
    // B=256: 100x512, 200x128, 300x64 -> 128 bf16: linear 28.6.
    {Kind::kLine, kFewStreams, 16, DTypes::kAll, 8, 2, 2, 1024, 1},
    // B=4: 30x512, 100x64, 200x12 -> 50 bf16: 2.29.
    {Kind::kLine, kFewStreams, 8, DTypes::kNoDoubles, 8, 2, 2, 1024, 1},
    // 256,2000,1000,7 f32: 7.94.
    {Kind::kLine, 1, kSingle, DTypes::kAll, 8, 7, 2, 2048, 4},
    // B=16: two streams 200x7 -> 200 f32, pchip: 3.76.
    {Kind::kFourRows, kFewStreams, kSingle, DTypes::kTraining, 8, 1, 1, 2048, 1},
    // Also for few streams: arguments for 64 cost them less than 1 %. Many narrow streams come here
    // if fuse_narrow refuses them: they are wider, or queries are few. 256,1000,500,64 f32 in 16
    // streams of 4 channels: 46.9.
    {Kind::kLine, kManyStreams, 16, DTypes::kAll, 8, 2, 2, 1024, 1},
    {Kind::kTwoRows, kManyStreams, 16, DTypes::kTraining, 7, 2, 2, 2048, 1},
    {Kind::kQuaternions, kManyStreams, 16, DTypes::kTraining, 7, 2, 2, 2048, 1},
    // B=1: 8 streams 100x7 -> 1 f32: 1.83. B=32: 16 streams 200x7 -> 100 f32: 4.7.
    // 256,1000,500,64 f32 in 64 streams: 171; in 32 of two channels: 88.
    {Kind::kLine, kManyStreams, kSingle, DTypes::kAll, 10, 4, 2, 2048, 1},
    {Kind::kTwoRows, kManyStreams, kSingle, DTypes::kTraining, 7, 4, 2, 2048, 1},
    // With missing samples there are few forms, which serve one stream as well: fuse_any does the
    // rest.
    {Kind::kLine, kFewStreams, 16, DTypes::kTraining, 8, 2, 2, 1024, 1, true},
    {Kind::kTwoRows, kFewStreams, 16, DTypes::kTraining, 7, 2, 2, 2048, 1, true},
    {Kind::kLine, 1, kSingle, DTypes::kTraining, 8, 7, 2, 2048, 4, true},
    {Kind::kLine, kFewStreams, kSingle, DTypes::kTraining, 8, 4, 2, 2048, 1, true},
};

inline constexpr int kNumForms = sizeof kForms / sizeof *kForms;
inline constexpr int kNumDTypePairs = sizeof kDTypePairs / sizeof *kDTypePairs;

// An instance is a form for a pair of dtypes; they are numbered by form first.
inline constexpr int kNumInstances = kNumForms * kNumDTypePairs;
constexpr const Form& formOf(int instance) { return kForms[instance / kNumDTypePairs]; }
constexpr const DTypePair& dtypesOf(int instance) { return kDTypePairs[instance % kNumDTypePairs]; }
constexpr bool isCompiled(int instance) {
  return dtypesOf(instance).least <= formOf(instance).dtypes;
}

}  // namespace rows
}  // namespace rbc::cuda
