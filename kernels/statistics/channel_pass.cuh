// One read of the samples: moments, and what brackets around quantiles need.
#pragma once

#include "runtime/launch.h"
#include "runtime/pdl.cuh"
#include "statistics/brackets.cuh"
#include "statistics/channel_sums.cuh"
#include "statistics/keep_between.cuh"
#include "statistics/pass_plan.h"
#include "statistics/sample_readers.cuh"

namespace rbc::cuda {
namespace statistics {

// Work of a block: a part of a group's samples of some channels.
struct Unit {
  int64_t group;
  int64_t first_channel;
  int64_t part;
};

__device__ __forceinline__ Unit unitOf(const PassPlan& plan, int64_t i) {
  const int64_t of_group = i / plan.parts;
  const int64_t group = of_group / plan.chunks;
  return {group, (of_group - group * plan.chunks) * plan.width, i - of_group * plan.parts};
}

// The exponent of a window for a channel, from a few samples here and there: neighbours alone may
// be all of one kind.
template <class Sums, class Reader>
__device__ __forceinline__ int windowTop(const Reader& reader, bool active, Lanes lanes,
                                         int64_t part, int* tops) {
  constexpr int kLooks = 4;
  const int t = static_cast<int>(threadIdx.x);
  if (t < lanes.width) tops[t] = -10000;
  __syncthreads();
  if (active && reader.count > 0) {
    int top = -10000;
    const int64_t looks = static_cast<int64_t>(lanes.phases) * kLooks;
#pragma unroll
    for (int j = 0; j < kLooks; ++j) {
      // Not at even distances, which a period in the data might have too.
      const auto look = static_cast<uint64_t>(lanes.phase() * kLooks + j);
      const uint64_t hash =
          (look + static_cast<uint64_t>(part) * 64 + 1) * 0x9e3779b97f4a7c15ull >> 32;
      const int64_t i =
          static_cast<int64_t>((static_cast<double>(look) + static_cast<double>(hash) * 0x1p-32) /
                               static_cast<double>(looks) * static_cast<double>(reader.count));
      const auto x = reader.readOne(i < reader.count ? i : reader.count - 1);
      if (isFinite(x) && x != 0) top = max(top, Sums::Window::topOf(x));
    }
    atomicMax(&tops[lanes.channel()], top);
  }
  __syncthreads();
  return active ? tops[lanes.channel()] + 1 : 0;  // room for numbers of twice the size
}

template <class Number, bool kKeep>
struct PassMemory {
  union {
    FieldMemory fields;
    std::conditional_t<kKeep, KeptMemory<Number>, char> kept;
    int tops[kThreads];
  };
  std::conditional_t<kKeep, KeptTable<Number>, char> table;
  std::conditional_t<kKeep, KeptLists<Number>, char> lists;
};

struct NoKeeper {
  template <class... Arguments>
  __device__ __forceinline__ explicit NoKeeper(const Arguments&...) {}
};

template <class Reader, bool kMoments, bool kKeep>
__global__ void __launch_bounds__(kThreads, blocksOfPass<typename Reader::Number>())
    passChannels(const __grid_constant__ PassArguments a) {
  using Number = typename Reader::Number;
  using Sums = ChannelSums<Reader>;
  using Keeper = KeepBetween<Number>;
  __shared__ PassMemory<Number, kKeep> memory;
  __shared__ GroupRange range_memory;
  waitForLaunchesAhead();
  const Lanes lanes = {a.plan.width, a.plan.phases};
  const int step = lanes.phases;
  const bool has_lane = lanes.phase() < lanes.phases;
  for (int64_t u = blockIdx.x; u < a.plan.units(); u += gridDim.x) {
    const Unit unit = unitOf(a.plan, u);
    const int64_t channel = unit.first_channel + lanes.channel();
    const bool active = has_lane && channel < a.samples.channels;
    const GroupRange range = rangeOfBlock(a.samples, a.per_row, unit.group, range_memory);
    const Reader reader(a.samples, range, active ? channel : 0);
    const int64_t of_tile = static_cast<int64_t>(step) * kBatch;
    const int64_t tiles = (range.count + of_tile - 1) / of_tile;
    if (unit.part >= tiles) continue;
    const int64_t index = unit.group * a.samples.channels + channel;

    typename Sums::Limbs limbs;
    Sums sums(limbs);
    const int64_t first_index = unit.group * a.samples.channels + unit.first_channel;
    const auto* brackets = static_cast<const Brackets<Number>*>(a.brackets) + first_index;
    std::conditional_t<kKeep, Keeper, NoKeeper> keeper(brackets + (active ? lanes.channel() : 0),
                                                       a.found + first_index,
                                                       static_cast<Number*>(a.kept), lanes, active);
    if constexpr (kMoments) {
      sums.start(windowTop<Sums>(reader, active, lanes, unit.part, memory.tops));
      __syncthreads();
    }
    if constexpr (kKeep) {
      const int64_t left = a.samples.channels - unit.first_channel;
      const int count = left < lanes.width ? static_cast<int>(left) : lanes.width;
      memory.lists.fill(brackets, count);
      memory.table.fill(brackets, count);
    }
    const int most_batches = kMoments ? Sums::mostBatches(lanes.phases, kBatch) : 1 << 24;
    int batches = 0;
    // The next numbers are on their way meanwhile, unless there is so much to do with each that other
    // warps are enough to wait for.
    constexpr bool kAhead = !kKeep;
    Number next[kBatch];
    uint32_t next_valid = 0;
    int64_t first = unit.part * of_tile + lanes.phase();
    if (kAhead && active) next_valid = reader.read(first, step, next);
    for (int64_t tile = unit.part; tile < tiles; tile += a.plan.parts) {
      Number x[kBatch];
      uint32_t valid = next_valid;
      const int64_t here = first;
      if constexpr (kAhead) {
#pragma unroll
        for (int j = 0; j < kBatch; ++j) x[j] = next[j];
      } else if (active) {
        valid = reader.read(first, step, x);
      }
      first += a.plan.parts * of_tile;
      if (kAhead && active && tile + a.plan.parts < tiles) {
        next_valid = reader.read(first, step, next);
      }
      if (active) {
        int below_all = 0;
        if constexpr (kMoments) {
          below_all = sums.add(x, valid, [&](int j) {
            return reader.readOne(here + static_cast<int64_t>(j) * step);
          });
        } else {
#pragma unroll
          for (int j = 0; j < kBatch; ++j) {
            below_all += x[j] > -Limits<Number>::infinity() ? 0 : 1;
          }
        }
        if constexpr (kKeep) {
          keeper.add(x, memory.kept, memory.table);
          keeper.addBelowAll(below_all);
        }
      }
      if constexpr (kKeep) {
        if (__syncthreads_or(keeper.isFull())) {
          keeper.flushKept(memory.kept, memory.lists, lanes);
        }
      }
      if (++batches == most_batches) {
        batches = 0;
        if constexpr (kKeep) {
          keeper.flushKept(memory.kept, memory.lists, lanes);
          keeper.flushCounts(a.found + index, memory.fields, lanes, active);
        }
        if constexpr (kMoments) sums.flush(a.moments + index, memory.fields, lanes, active);
      }
    }
    if constexpr (kKeep) {
      keeper.flushKept(memory.kept, memory.lists, lanes);
      keeper.flushCounts(a.found + index, memory.fields, lanes, active);
    }
    if constexpr (kMoments) sums.flush(a.moments + index, memory.fields, lanes, active);
  }
}

}  // namespace statistics
}  // namespace rbc::cuda
