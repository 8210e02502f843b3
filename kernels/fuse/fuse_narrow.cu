// When the kernel of narrow streams suits, and its launch.

#include "fuse/fuse_kernels.h"

#include <algorithm>
#include <utility>

#include "dtype.h"
#include "fuse/fuse_narrow_kernel.cuh"
#include "fuse/shared_recordings.cuh"
#include "fuse/stream_checks.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"

namespace rbc::cuda {
namespace narrow_streams {
namespace {

constexpr int64_t kSectorBytes = 32;

// ---- shared memory ------------------------------------------------------------------------------

int64_t timesSlot(const FuseProblem& p, const FuseStream& s) {
  return slotBytes(s.samples, p.time_dtype);
}
int64_t valuesSlot(const FuseStream& s) {
  return slotBytes(s.samples * s.channels, s.values_dtype);
}

// What a group's block holds: a tile of values, one of the mask, and the slots of all rows.
struct Contents {
  int64_t streams;
  int64_t columns;
  int64_t slots;

  void add(const FuseProblem& p, const FuseStream& s) {
    ++streams;
    columns += s.channels;
    slots += timesSlot(p, s) + valuesSlot(s);
  }
  int64_t rowBytes(const FuseProblem& p) const { return columns * sizeOf(p.out_dtype); }
  int64_t maskAt(const FuseProblem& p) const { return wholeWords(rowBytes(p) * kColumn); }
  int64_t slotsAt(const FuseProblem& p) const {
    return maskAt(p) + (p.mask != nullptr ? wholeWords(streams * kColumn) : 0);
  }
  int64_t bytes(const FuseProblem& p) const { return slotsAt(p) + slots; }
  bool fits(const FuseProblem& p, const LaunchDevice& device) const {
    return streams <= mostWarps(sizeOf(p.time_dtype)) &&
           bytes(p) <= sharedBudget(device, kBlocksWanted);
  }
};

Contents contentsOf(const FuseProblem& p, int first, int end) {
  Contents contents = {};
  for (int n = first; n < end; ++n) contents.add(p, p.streams[n]);
  return contents;
}

// ---- the plan -----------------------------------------------------------------------------------

bool suitsStream(const FuseProblem& p, const FuseStream& s) {
  const bool whole_rows =
      s.times_stride[1] == 1 && s.values_stride[2] == 1 && s.values_stride[1] == s.channels;
  return s.channels > 0 && s.channels <= kChannels && s.samples <= kMaxSearched && isAlike(p, s) &&
         kindOf(s, p.segments[s.first_segment].method) == rows::Kind::kLine &&
         s.sample_mask == nullptr && (whole_rows || s.samples == 0);
}

bool suitsStreams(const FuseProblem& p) {
  constexpr int64_t kLeastQueries = 64;  // fewer leave most threads without one
  if (p.num_streams <= rows::kFewStreams || p.queries < kLeastQueries) return false;
  if (p.out_stride[2] != 1 || p.query_stride[1] != 1) return false;
  if (p.mask != nullptr && p.mask_stride[2] != 1) return false;
  if (dtypePairOf(p) >= kNumPairs) return false;
  return std::all_of(p.streams, p.streams + p.num_streams,
                     [&](const FuseStream& s) { return suitsStream(p, s); });
}

// Where the group of streams from the n-th on ends: they make up a sector of out, or as much of it
// as fits, in halves if possible. n, if not even one fits.
int groupEnd(const FuseProblem& p, const LaunchDevice& device, int n) {
  Contents group = {};
  int end = n;
  int halves = n;
  for (; end < p.num_streams && group.rowBytes(p) < kSectorBytes; ++end) {
    group.add(p, p.streams[end]);
    if (!group.fits(p, device)) return halves > n ? halves : end;
    if (group.rowBytes(p) == kSectorBytes / 2) halves = end + 1;
  }
  return end;
}

// Returns whether each group is done, and those before the last one write half a sector of a row at
// least.
bool cutGroups(const FuseProblem& p, const LaunchDevice& device, Plan* plan) {
  plan->groups = 0;
  bool good = true;
  for (int n = 0; n < p.num_streams && good;) {
    const int end = groupEnd(p, device, n);
    const int64_t bytes = contentsOf(p, n, end).rowBytes(p);
    // What is left at the end joins the group before.
    const bool joins = end == p.num_streams && bytes < kSectorBytes && plan->groups > 0 &&
                       contentsOf(p, plan->first[plan->groups - 1], end).fits(p, device);
    if (!joins) plan->first[plan->groups++] = n;
    good = end > n && (end == p.num_streams || bytes >= kSectorBytes / 2);
    n = end;
  }
  plan->first[plan->groups] = p.num_streams;
  plan->warps = 0;
  plan->shared = 0;
  for (int g = 0; g < plan->groups && good; ++g) {
    const Contents group = contentsOf(p, plan->first[g], plan->first[g + 1]);
    plan->warps = std::max(plan->warps, static_cast<int32_t>(group.streams));
    plan->shared = std::max(plan->shared, static_cast<int32_t>(group.bytes(p)));
  }
  return good;
}

// A block's queries: many to what it copies, as long as there are enough blocks. Returns whether
// there are, and whether to copy all samples pays: other kernels read two sectors a query at least.
bool cutQueries(const FuseProblem& p, const LaunchDevice& device, Plan* plan) {
  constexpr int64_t kMany = 8;
  const int64_t least =
      ceilDiv(contentsOf(p, 0, p.num_streams).slots, 2 * kSectorBytes * p.num_streams);
  if (p.queries < least) return false;
  const int64_t wanted = int64_t{kBlocksWanted} * device.multiprocessors;
  const auto blocks = [&](int64_t part) {
    return p.batch * plan->groups * ceilDiv(p.queries, part);
  };
  const int64_t shortest = ceilDiv(least, kTile) * kTile;
  int64_t part = kMany * shortest;
  while (part > shortest && blocks(part) < wanted) part /= 2;
  plan->part = static_cast<int32_t>(part);
  return blocks(part) >= wanted;
}

// ---- the launch ---------------------------------------------------------------------------------

template <class Time>
Task<Time> taskOf(const FuseProblem& p, const FuseStream& s) {
  const int64_t size = sizeOf(s.values_dtype);
  Task<Time> task = {};
  task.samples = sampleRowsOf<Time, int32_t>(s, 0);
  task.values = batchRows<int32_t>(static_cast<const char*>(s.values), s.values_stride[0],
                                   s.values_stride[1], size);
  task.rules = rulesOf<Time>(s, p.segments[s.first_segment].method);
  task.clock_offset = offsetAs<Time>(s.clock_offset);
  task.fill_bits = s.fill_bits;
  task.count = kChannels;
  while (!isMultiple(s.channels, task.count) ||
         !suitsVecs(s.values, {s.values_stride[0], s.values_stride[1]}, size, task.count)) {
    task.count /= 2;
  }
  task.vectors = static_cast<int32_t>(s.channels / task.count);
  return task;
}

Group groupOf(const FuseProblem& p, int first, const Contents& contents) {
  const int64_t size = sizeOf(p.out_dtype);
  const int64_t count = kWordBytes / size;
  char* const out = static_cast<char*>(p.out) + p.streams[first].out_begin * size;
  const bool in_vecs = isMultiple(contents.columns, count) &&
                       suitsVecs(out, {p.out_stride[0], p.out_stride[1]}, size, count);
  uint8_t* const mask = p.mask != nullptr ? p.mask + first : nullptr;
  Group group = {};
  group.out = batchRows<int32_t>(out, p.out_stride[0], p.out_stride[1], size);
  group.mask = batchRows<int32_t>(mask, p.mask_stride[0], p.mask_stride[1], 1);
  group.count = static_cast<int32_t>(in_vecs ? count : 1);
  group.vectors = FastDivmod(contents.columns / group.count);
  group.members = FastDivmod(contents.streams);
  group.first = first;
  group.mask_at = static_cast<int32_t>(contents.maskAt(p));
  return group;
}

template <class Time, int... kPairs>
auto kernelIn(std::integer_sequence<int, kPairs...>, int pair) {
  static constexpr void (*kKernels[])(Launch<Time>) = {
      fuseNarrowKernel<typename StorageOf<rows::kDTypePairs[kPairs].in>::type,
                       typename StorageOf<rows::kDTypePairs[kPairs].out>::type, Time>...};
  return kKernels[pair];
}
template <class Time>
auto kernelOf(int pair) {
  return kernelIn<Time>(std::make_integer_sequence<int, kNumPairs>(), pair);
}

template <class Time>
cudaError_t launchPlan(const Plan& plan, const FuseProblem& p, const LaunchDevice& device,
                       cudaStream_t cuda_stream) {
  const int64_t parts = ceilDiv(p.queries, plan.part);
  Launch<Time> arguments;
  arguments.queries = queryRowsOf<Time, int32_t>(p);
  arguments.most = static_cast<int32_t>(p.queries);
  arguments.part = plan.part;
  arguments.parts = FastDivmod(parts);
  arguments.groups = FastDivmod(plan.groups);
  for (int g = 0; g < plan.groups; ++g) {
    const Contents contents = contentsOf(p, plan.first[g], plan.first[g + 1]);
    arguments.group[g] = groupOf(p, plan.first[g], contents);
    int64_t column = 0;
    int64_t at = contents.slotsAt(p);
    for (int n = plan.first[g]; n < plan.first[g + 1]; ++n) {
      const FuseStream& s = p.streams[n];
      Task<Time>& task = arguments.tasks[n] = taskOf<Time>(p, s);
      task.column = static_cast<int32_t>(column);
      task.times_at = static_cast<int32_t>(at);
      task.values_at = static_cast<int32_t>(at + timesSlot(p, s));
      column += s.channels;
      at += timesSlot(p, s) + valuesSlot(s);
    }
  }
  return launchBlocks(kernelOf<Time>(dtypePairOf(p)), &arguments, p.batch * plan.groups * parts,
                      plan.warps * kWarp, device, cuda_stream, plan.shared);
}

template <class Time>
cudaError_t allowShared(const LaunchDevice& device) {
  cudaError_t error = cudaSuccess;
  for (int pair = 0; pair < kNumPairs && error == cudaSuccess; ++pair) {
    const auto* kernel = reinterpret_cast<const void*>(kernelOf<Time>(pair));
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(sharedBudget(device, kBlocksWanted)));
  }
  return error;
}

}  // namespace

bool suits(const FuseProblem& p, const LaunchDevice& device, Plan* plan) {
  return suitsStreams(p) && cutGroups(p, device, plan) && cutQueries(p, device, plan);
}

cudaError_t launch(const Plan& plan, const FuseProblem& p, const LaunchDevice& device,
                   cudaStream_t cuda_stream) {
  return visitTime(p.time_dtype, [&](auto time) {
    return launchPlan<typename decltype(time)::type>(plan, p, device, cuda_stream);
  });
}

}  // namespace narrow_streams

cudaError_t loadFuseNarrow(const LaunchDevice& device) {
  using namespace narrow_streams;
  cudaError_t error = loadKernelsBeside(fuseNarrowKernel<float, float, float>);
  if (error == cudaSuccess) error = allowShared<float>(device);
  if (error == cudaSuccess) error = allowShared<double>(device);
  return error == cudaSuccess ? allowShared<int64_t>(device) : error;
}

}  // namespace rbc::cuda
