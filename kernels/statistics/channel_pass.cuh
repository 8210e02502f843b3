// One pass over samples: sums of channels, values in brackets, and the launch.
#pragma once

#include <type_traits>

#include "runtime/aligned_vec.cuh"
#include "runtime/launch.h"
#include "runtime/pdl.cuh"
#include "statistics/brackets.cuh"
#include "statistics/channel_pass.h"
#include "statistics/keep_between.cuh"
#include "statistics/reduce_channels.cuh"
#include "statistics/sample_readers.cuh"
#include "statistics_problem.h"
#include "window_sum.h"

namespace rbc::cuda {
namespace statistics {

// ---- The moments of the values that a thread reads: a window in registers, and separate limbs for
// values outside of it.

// The window for numbers of a storage type; void: any that is computed in Number.
template <class Storage, class Number>
struct WindowOf {
  using type = FloatWindow<2>;
  using Range = FloatLimbs;
};
template <>
struct WindowOf<bf16, float> {
  using type = FloatWindow<1>;
  using Range = FloatLimbs;
};
template <class Storage>
struct WindowOf<Storage, double> {
  using type = DoubleWindow;
  using Range = DoubleLimbs;
};

__device__ __forceinline__ void addAtomically(int64_t* to, int64_t amount) {
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(amount));
}

// Sums in limbs of this thread only, in local memory: rarely used.
template <class Range>
struct PrivateLimbs {
  int64_t sum[Range::kSums];
  int64_t square[Range::kSquares];
  bool used = false;

  __device__ __forceinline__ void begin() {
    if (used) return;
    used = true;
#pragma unroll 1
    for (int64_t& limb : sum) limb = 0;
#pragma unroll 1
    for (int64_t& limb : square) limb = 0;
  }

  __device__ __noinline__ void add(double x) {
    begin();
    splitValue(
        x, [&](int limb, int64_t amount) { sum[limb - Range::kFirstSum] += amount; },
        [&](int limb, int64_t amount) { square[limb - Range::kFirstSquare] += amount; });
  }

  template <class Window>
  // By value: an object accessed through a pointer does not stay in registers.
  __device__ __noinline__ void addWindow(Window window) {
    begin();
    Window::expand(
        window.top, window.field,
        [&](int64_t total, int exponent) {
          splitTotal<SumLimbs>(total, exponent, [&](int limb, int64_t amount) {
            sum[limb - Range::kFirstSum] += amount;
          });
        },
        [&](int64_t total, int exponent) {
          splitTotal<SquareLimbs>(total, exponent, [&](int limb, int64_t amount) {
            square[limb - Range::kFirstSquare] += amount;
          });
        });
  }

  // Distributes an amount over several limbs, so that these allow as many more additions.
  template <class Limbs>
  static __device__ __forceinline__ void spread(int64_t* limbs, int limb, int64_t amount) {
    if (amount == 0) return;
    splitScaled<Limbs>(amount, 32 * limb - Limbs::kUnit,
                       [&](int k, int64_t part) { addAtomically(limbs + k, part); });
  }

  __device__ __noinline__ void flush(Moments* to) {
    if (!used) return;
    used = false;
#pragma unroll 1
    for (int i = 0; i < Range::kSums; ++i) spread<SumLimbs>(to->sum, Range::kFirstSum + i, sum[i]);
#pragma unroll 1
    for (int i = 0; i < Range::kSquares; ++i) {
      spread<SquareLimbs>(to->squares, Range::kFirstSquare + i, square[i]);
    }
  }
};

template <class Reader>
class ChannelSums {
 public:
  using Number = typename Reader::Number;
  using Kind = WindowOf<typename Reader::Storage, Number>;
  using Window = typename Kind::type;
  using Limbs = PrivateLimbs<typename Kind::Range>;
  static constexpr bool kDouble = std::is_same_v<Number, double>;

  __device__ __forceinline__ explicit ChannelSums(Limbs& limbs) : limbs_(limbs) {}

  // Batches per thread until flush().
  static __device__ __forceinline__ int mostBatches(int phases, int batch) {
    return (kDouble ? Window::kMaxAdditions : Window::kMaxAdditions / phases) / batch;
  }

  __device__ __forceinline__ void start(int top) {
    window_.start(top);
    first_top_ = window_.top;
    restart();
  }

  // Adds numbers; invalid ones must be NaN. Returns how many are NaN or negative infinity.
  template <int kCount, class Again>
  __device__ __forceinline__ int add(const Number (&x)[kCount], uint32_t valid, Again&& again) {
    uint32_t outside = 0;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const bool inside = window_.add(x[j]);
      const Number counted = inside ? x[j] : NotANumber<Number>::value();  // no branch
      low_ = fmin(low_, counted);
      high_ = fmax(high_, counted);
      outside |= (inside ? 0u : 1u) << j;
    }
    seen_ += __popc(valid);
    return outside != 0 ? addOutside(outside, valid, again) : 0;
  }

  // Adds all to the group's moments. All threads of the block take part.
  __device__ __forceinline__ void flush(Moments* to, FieldMemory& memory, Lanes lanes,
                                        bool active) {
    if (active && window_.top != first_top_) moveTo(window_.top);
    const bool first = active && lanes.phase() == 0;
    int64_t fields[Window::kFields];
    if constexpr (kDouble) {
      // In halves: a sum of full words over threads would overflow.
      int64_t low[Window::kFields];
#pragma unroll
      for (int f = 0; f < Window::kFields; ++f) {
        low[f] = active ? static_cast<int64_t>(static_cast<uint32_t>(window_.field[f])) : 0;
        fields[f] = active ? window_.field[f] >> 32 : 0;
      }
      sumChannels(low, memory, lanes);
      sumChannels(fields, memory, lanes);
      if (first) {
        int128 total[Window::kFields];
#pragma unroll
        for (int f = 0; f < Window::kFields; ++f) {
          total[f] = static_cast<int128>(fields[f]) * (int64_t{1} << 32) + low[f];
        }
        expand(to, total);
      }
    } else {
#pragma unroll
      for (int f = 0; f < Window::kFields; ++f) fields[f] = active ? window_.field[f] : 0;
      sumChannels(fields, memory, lanes);
      if (first) expand(to, fields);
    }
    if (active) limbs_.flush(to);
    int64_t counts[] = {active ? int64_t{seen_} - nonfinite_ : 0, active ? int64_t{nonfinite_} : 0};
    const bool any = active && seen_ > nonfinite_;
    sumChannels(counts, memory, lanes);
    uint64_t least = any ? valueKey(static_cast<double>(low_)) : ~uint64_t{0};
    uint64_t greatest = any ? valueKey(static_cast<double>(high_)) : 0;
    rangeOfChannels(&least, &greatest, memory, lanes);
    if (first) {
      if (counts[0] != 0) addAtomically(&to->count, counts[0]);
      if (counts[1] != 0) addAtomically(&to->nonfinite, counts[1]);
      if (least <= greatest) {
        atomicMin(reinterpret_cast<unsigned long long*>(&to->min_key), least);
        atomicMax(reinterpret_cast<unsigned long long*>(&to->max_key), greatest);
      }
    }
    const int top = window_.top;
    window_.start(top);
    restart();
  }

 private:
  // `again` reads one of the numbers again, since registers cannot be indexed.
  template <class Again>
  __device__ __forceinline__ int addOutside(uint32_t outside, uint32_t valid, Again&& again) {
    int finite = 0;
    int below_all = 0;
    int top = -10000;
#pragma unroll 1
    while (outside != 0) {
      const int j = __ffs(static_cast<int>(outside)) - 1;
      outside &= outside - 1;
      const bool is_valid = (valid >> j & 1) != 0;
      const Number x = is_valid ? again(j) : NotANumber<Number>::value();
      window_.remove(x);
      below_all += x > -Limits<Number>::infinity() ? 0 : 1;
      if (!is_valid) continue;
      if (!isFinite(x)) {
        ++nonfinite_;
        continue;
      }
      low_ = fmin(low_, x);
      high_ = fmax(high_, x);
      limbs_.add(static_cast<double>(x));
      ++finite;
      top = max(top, Window::topOf(x));
    }
    // If data have moved permanently, the window follows.
    if (2 * finite >= kMoveAt) moveTo(top + 1);
    return below_all;
  }

  __device__ __forceinline__ void moveTo(int top) {
    bool empty = true;
#pragma unroll
    for (int f = 0; f < Window::kFields; ++f) empty = empty && window_.field[f] == 0;
    if (!empty) limbs_.addWindow(window_);
    window_.start(top);
  }

  __device__ __forceinline__ void restart() {
    low_ = bitCast<Number>(static_cast<ValueKey<Number>>(kInfinity));
    high_ = -low_;
    seen_ = nonfinite_ = 0;
  }

  template <class Total>
  __device__ __forceinline__ void expand(Moments* to, const Total& total) {
    Window::expand(
        first_top_, total,
        [&](int128 value, int exponent) {
          splitTotal<SumLimbs>(value, exponent, [&](int limb, int64_t amount) {
            addAtomically(to->sum + limb, amount);
          });
        },
        [&](int128 value, int exponent) {
          splitTotal<SquareLimbs>(value, exponent, [&](int limb, int64_t amount) {
            addAtomically(to->squares + limb, amount);
          });
        });
  }

  static constexpr int kMoveAt = 8;
  static constexpr uint64_t kInfinity = kDouble ? 0x7ff0000000000000ull : 0x7f800000ull;

  Window window_;
  Number low_;
  Number high_;
  int32_t seen_;
  int32_t nonfinite_;
  int32_t first_top_;  // of all threads with this channel
  Limbs& limbs_;
};

// ---- One pass over the samples: moments, and the values that brackets around quantiles need.

// The work of a block: a part of a group's samples of some channels.
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

// The exponent of a window for a channel, from a few samples at different places: neighbours may
// all be alike.
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
      // Not at even distances, which a period in the data might share.
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
  return active ? tops[lanes.channel()] + 1 : 0;  // a margin for numbers of twice the size
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
__global__ void __launch_bounds__(kThreads, blocksOfPass(sizeof(typename Reader::Number) == 8))
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
    // The next numbers are loaded meanwhile, unless each one is so expensive that other warps hide
    // the latency.
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

// ---- The launch of a reader's kernel.

template <class Reader>
cudaError_t launchPassOf(PassKind kind, PassArguments& arguments, int64_t blocks,
                         const LaunchDevice& device, cudaStream_t cuda_stream) {
  const auto kernel = kind == PassKind::kMoments          ? passChannels<Reader, true, false>
                      : kind == PassKind::kMomentsAndKeep ? passChannels<Reader, true, true>
                                                          : passChannels<Reader, false, true>;
  return launchBlocks(kernel, &arguments, blocks, kThreads, device, cuda_stream);
}

}  // namespace statistics

}  // namespace rbc::cuda
