// The choice of kernels for statistics, and how their work is divided: plain C++, also for tests
// without a GPU.
#pragma once

#include <cstdint>

#include "launch_choice.h"
#include "runtime/launch_device.h"
#include "statistics_problem.h"

namespace rbc::cuda {
namespace statistics {

// ---- A pass over the samples --------------------------------------------------------------------

inline constexpr int kThreads = 256;      // per block
inline constexpr int kBatch = 8;          // samples of a thread that are in flight together
inline constexpr int kMaxKeepWidth = 32;  // channels per block that keeps values

// Blocks per multiprocessor: as many as their registers allow.
constexpr int blocksOfPass(bool in_double) { return in_double ? 2 : 3; }

enum class PassKind : uint8_t { kMoments, kMomentsAndKeep, kKeep };

// The samples that the kernel of a pass is compiled for: channel_pass_*.cu.
enum class PassReader : uint8_t {
  kFloat,      // float32 with one stride
  kHalf,       // float16 or bfloat16 with one stride
  kAnyFloat,   // any that is computed in float32, with any strides and any mask
  kDouble,     // float64 with one stride
  kAnyDouble,  // any other that is computed in float64
};

struct PassPlan {
  int32_t width;   // channels per block
  int32_t phases;  // samples that its threads read at a time
  int64_t chunks;  // of channels
  int64_t parts;   // of a group's samples
  int64_t groups;

  RBC_HD int64_t units() const { return groups * chunks * parts; }
};

// `wave` blocks of kThreads run at a time.
PassPlan planPass(const Samples& samples, int64_t groups, int64_t wave, int most_width);

struct PassChoice : LaunchChoice {
  PassKind kind;
  PassReader reader;
  PassPlan plan;
};

PassChoice selectPass(PassKind kind, const Samples& samples, bool per_row, int64_t groups,
                      const LaunchDevice& device);

// ---- A sorted sample of each channel ------------------------------------------------------------

inline constexpr int kSortThreads = 512;
inline constexpr int kFew = 512;  // samples that a warp sorts
inline constexpr int kFewThreads = 128;

// Groups of at most this many samples are sorted completely.
inline constexpr int64_t kSampleOfFloats = 8192;
inline constexpr int64_t kSampleOfDoubles = 4096;

template <class Number>
inline constexpr int64_t kSampleOf = sizeof(Number) == 8 ? kSampleOfDoubles : kSampleOfFloats;

constexpr int64_t sampleSize(DType dtype) {
  switch (dtype) {
    case DType::F64:
    case DType::I32:
    case DType::U32:
    case DType::I64:
    case DType::U64: return kSampleOfDoubles;
    default: return kSampleOfFloats;
  }
}

// Whether all groups have so few samples that they are sorted completely.
bool sortsAll(const StatisticsProblem& problem);

// Blocks that sort groups of few samples, one warp per channel, and larger groups, one block per
// channel. 0: no launch.
struct SampleGrids {
  int64_t few;
  int64_t many;
};

// For the first pass, or a later one.
SampleGrids selectSample(const StatisticsProblem& problem, bool first, const LaunchDevice& device);

}  // namespace statistics

// The kernel that reads the samples, or sorts them if there is nothing else to do.
struct StatisticsChoice : LaunchChoice {
  bool sorts_all;                // there are quantiles, but no pass for them
  statistics::PassChoice first;  // the first pass, or the one for the moments
  statistics::PassChoice later;  // the other passes
};

StatisticsChoice selectStatistics(const StatisticsProblem& problem, const LaunchDevice& device);

}  // namespace rbc::cuda
