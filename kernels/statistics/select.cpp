// The conditions of the kernels that read samples, and how their work is divided.

#include "statistics/select.h"

#include <algorithm>

#include "ceil_div.h"
#include "runtime/conditions.h"

namespace rbc::cuda {
namespace statistics {
namespace {

// Samples of a call, and whether each row is a group.
constexpr Condition<Samples, bool> kPlain[] = {
    {[](const Samples& s, const bool&) { return s.axes == 1; },
     "values: {} axes of samples, expected one stride",
     [](const Samples& s, const bool&) { return int64_t{s.axes}; }},
    {[](const Samples& s, const bool&) { return s.mask == nullptr; },
     "sample_mask: set, expected none", nullptr},
    {[](const Samples& s, const bool& per_row) {
       return per_row || s.packed() || (s.batch == 1 && s.lengths.data == nullptr);
     },
     "values: {} rows of a batch in one group, expected 1",
     [](const Samples& s, const bool&) { return s.batch; }},
    {[](const Samples& s, const bool&) { return isFloat(s.dtype); },
     "values: {dtype}, expected a float",
     [](const Samples& s, const bool&) { return static_cast<int64_t>(s.dtype); }},
};

constexpr const char* kReaderNames[] = {"float32 at one stride", "16-bit floats at one stride",
                                        "any computed in float32", "float64 at one stride",
                                        "any computed in float64"};

// The maximum number of samples in a group.
int64_t mostSamples(const StatisticsProblem& p) {
  const Samples& s = p.samples;
  return p.per_row || s.packed() ? s.rows : s.batch * s.rows;
}

}  // namespace

// Adjacent threads read adjacent elements: channels of a sample, or samples of a channel.
PassPlan planPass(const Samples& s, int64_t groups, int64_t wave, int most_width) {
  PassPlan plan = {};
  plan.groups = groups;
  const auto magnitude = [](int64_t x) { return x < 0 ? -x : x; };
  const int64_t sample_stride = magnitude(s.axis[s.axes - 1].stride);
  if (s.channels > 1 && magnitude(s.channel_stride) > sample_stride && sample_stride != 0) {
    plan.width = 1;
  } else {
    // As few chunks of channels as possible with few idle threads.
    int64_t best = 0;
    int64_t chunks = ceilDiv(s.channels, most_width);
    while (chunks <= s.channels) {
      const int64_t width = ceilDiv(s.channels, chunks);
      if (width < 24 && plan.width != 0) break;
      const int64_t busy =
          kThreads / width * s.channels * 1000 / chunks;  // busy threads times 1000
      if (busy > best + best / 16) {
        best = busy;
        plan.width = static_cast<int32_t>(width);
      }
      if (width == 1) break;
      chunks = ceilDiv(s.channels, width - 1);  // the fewest that are narrower
    }
  }
  plan.phases = kThreads / plan.width;
  plan.chunks = ceilDiv(s.channels, plan.width);
  const int64_t most = s.packed() || groups > 1 ? s.rows : s.batch * s.rows;
  const int64_t tiles = ceilDiv(most, int64_t{plan.phases} * kBatch);
  const int64_t wanted = ceilDiv(wave, std::max<int64_t>(groups * plan.chunks, 1));
  plan.parts = std::max<int64_t>(std::min(wanted, tiles / 2), 1);
  return plan;
}

PassChoice selectPass(PassKind kind, const Samples& s, bool per_row, int64_t groups,
                      const LaunchDevice& device) {
  const bool wide = computesInDouble(s.dtype);
  PassChoice choice;
  choice.kind = kind;
  if (meets<kPlain>(&choice.because, s, per_row)) {
    choice.reader = wide                    ? PassReader::kDouble
                    : s.dtype == DType::F32 ? PassReader::kFloat
                                            : PassReader::kHalf;
  } else {
    choice.reader = wide ? PassReader::kAnyDouble : PassReader::kAnyFloat;
    choice.because.kernel = "channel_pass at one stride";
    choice.general = true;
  }
  choice.plan = planPass(s, groups, int64_t{device.multiprocessors} * blocksOfPass(wide),
                         kind == PassKind::kMoments ? kThreads : kMaxKeepWidth);
  choice.kernel = "channel_pass";
  choice.form = kReaderNames[static_cast<int>(choice.reader)];
  choice.grid = choice.plan.units();
  choice.threads = kThreads;
  return choice;
}

bool sortsAll(const StatisticsProblem& p) { return mostSamples(p) <= sampleSize(p.samples.dtype); }

SampleGrids selectSample(const StatisticsProblem& p, bool first, const LaunchDevice& device) {
  constexpr int kWarp = 32;
  constexpr int64_t kBlocks = 16;  // per multiprocessor
  const int64_t all = p.groups() * p.samples.channels;
  const bool many = mostSamples(p) > kFew;
  SampleGrids grids = {};
  // Only rows of a batch can have few samples without the host knowing.
  if (first && (p.per_row || p.samples.packed() || !many)) {
    grids.few = ceilDiv(all, kFewThreads / kWarp);
  }
  // Rows that turn out to have few samples need no work: not one block for each of them.
  if (many) grids.many = std::min(all, device.multiprocessors * kBlocks);
  return grids;
}

}  // namespace statistics

StatisticsChoice selectStatistics(const StatisticsProblem& p, const LaunchDevice& device) {
  using namespace statistics;
  StatisticsChoice choice;
  choice.sorts_all = p.num_levels > 0 && sortsAll(p);
  const bool reads = p.num_levels > 0 && !choice.sorts_all;
  if (reads || p.needsMoments()) {
    choice.first = selectPass(reads ? PassKind::kMomentsAndKeep : PassKind::kMoments, p.samples,
                              p.per_row, p.groups(), device);
    choice.later = choice.first;
    choice.later.kind = PassKind::kKeep;
    static_cast<LaunchChoice&>(choice) = choice.first;
  } else if (choice.sorts_all) {
    const SampleGrids grids = selectSample(p, true, device);
    choice.kernel = "sample_groups";
    choice.form = grids.many > 0 ? "one block per channel" : "one warp per channel";
    choice.grid = grids.many > 0 ? grids.many : grids.few;
    choice.threads = grids.many > 0 ? kSortThreads : kFewThreads;
  }
  choice.grid = std::min<int64_t>(choice.grid, INT32_MAX);
  return choice;
}

}  // namespace rbc::cuda
