// Farthest points: a cluster of blocks a cloud, or a block where there are no clusters. Its points
// stay in registers, with the distance of each to those taken, and warps skip what lies too far away; of
// clouds that are too large for that, they stay in the workspace. One kernel takes all K.

#include "farthest_problem.h"

#include "points/farthest_blocks.cuh"
#include "points/spatial_order.cuh"
#include "runtime/cuda_state.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "scratch_layout.h"

namespace rbc::cuda {
namespace {

using namespace farthest;

template <class Number>
struct Arguments {
  FarthestProblem problem;
  int cluster;    // blocks of a cloud
  Number* large;  // [4][total]: coordinates and distances of clouds too large for registers
};

template <class Number>
__device__ Number coordinateAt(const PointClouds& c, int64_t at) {
  switch (c.dtype) {
    case DType::F16: return static_cast<Number>(widen(static_cast<const f16*>(c.data)[at]));
    case DType::BF16: return static_cast<Number>(widen(static_cast<const bf16*>(c.data)[at]));
    case DType::F32: return static_cast<Number>(static_cast<const float*>(c.data)[at]);
    default: return static_cast<Number>(static_cast<const double*>(c.data)[at]);
  }
}

template <class Number>
__device__ bool loadPoint(const PointClouds& c, int64_t cloud, int64_t row, Number (&point)[3]) {
  bool finite = true;
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t at = cloud * c.stride[0] + row * c.stride[1] + axis * c.stride[2];
    point[axis] = coordinateAt<Number>(c, at);
    finite = finite && isFinite(point[axis]);
  }
  return finite;
}

// The place of a finite point among those that the first may be: from the start on, then from 0.
template <class Number>
__device__ Candidate<Number> asStart(int64_t index, int64_t start, int64_t count, bool finite) {
  const int64_t behind = index >= start ? index - start : index + count - start;
  using Key = typename Order<Number>::Key;
  return {finite ? static_cast<Key>(0x80000000u - behind) : 0, static_cast<uint32_t>(index)};
}

template <class Number>
__device__ Candidate<Number> better(Candidate<Number> a, Candidate<Number> b) {
  return b.key > a.key ? b : a;
}

// The same wherever points are kept: `lower(taken)` gives a warp's best candidate once a point is
// taken, and positionOf(index, position) looks a point of the block up.
template <class Number, int kThreads, class Lower, class PositionOf>
__device__ void takeAll(const FarthestProblem& p, int64_t cloud, int64_t first_row,
                        Blocks<Number, kThreads>& blocks, Candidate<Number> start, int finite,
                        Lower&& lower, PositionOf&& positionOf) {
  const bool writes = blocks.rank() == 0;
  const int64_t taken = min(static_cast<int64_t>(blocks.sum(finite)), p.count);
  if (taken > 0) {
    Winner<Number> next = blocks.best(bestOfWarp<Number>(start), positionOf);
    double distance = static_cast<double>(INFINITY);
    // Each thread keeps one result of kThreads, so that no round waits for a write.
    uint32_t kept_index = 0;
    double kept_distance = 0;
    for (int64_t k = 0;; ++k) {
      const auto place = static_cast<unsigned>(k) % kThreads;
      if (threadIdx.x == place) kept_index = next.candidate.index, kept_distance = distance;
      const bool is_last = k + 1 == taken;
      if (writes && (is_last || place == kThreads - 1) && threadIdx.x <= place) {
        putFarthest(p, cloud, k - place + threadIdx.x, first_row + kept_index, kept_distance);
      }
      if (is_last) break;
      next = blocks.best(lower(next.position), positionOf);
      distance = static_cast<double>(Order<Number>::distance(next.candidate.key));
    }
  }
  if (blocks.rank() == 0) {
    for (int64_t k = taken + threadIdx.x; k < p.count; k += kThreads) {
      putFarthest(p, cloud, k, -1, 0);
    }
  }
}

// What a block that keeps its points in registers has in shared memory.
template <class Number, int kThreads, int kPoints>
struct KeptPoints {
  static constexpr int kRoom = kThreads * kPoints;

  Number position[3][kRoom];  // as they came; x is NaN where there is no point
  uint32_t cells[kCells];
  uint16_t order[kRoom];
};

// Points go to blocks in turns, and within a block to warps by where they lie. A point that is taken
// changes nothing for a warp whose points are all nearer to those before than its box is to the point:
// no step of squaredDistance() rounds a smaller number to a larger one, so no bit is another.
template <class Number, int kThreads, int kPoints>
__device__ void takeFromRegisters(const FarthestProblem& p, int64_t cloud, const RowRange& range,
                                  Blocks<Number, kThreads>& blocks, int cluster_bits,
                                  KeptPoints<Number, kThreads, kPoints>* kept) {
  __shared__ SpatialMemory<Number> memory;
  const int64_t start = range.count > 0 ? startOf(p, cloud, range.count) : 0;
  Candidate<Number> first = {0, ~0u};
  int finite_points = 0;
  const auto indexOf = [&](int at) {
    const auto turn = static_cast<uint32_t>(at / kThreads);
    return ((turn << cluster_bits) + static_cast<uint32_t>(blocks.rank())) * kThreads +
           static_cast<uint32_t>(at % kThreads);
  };
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    const int at = k * kThreads + static_cast<int>(threadIdx.x);
    const int64_t i = indexOf(at);
    Number point[3] = {};
    const bool finite = i < range.count && loadPoint(p.points, cloud, range.begin + i, point);
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      kept->position[axis][at] = finite ? point[axis] : static_cast<Number>(NAN);
    }
    first = better(first, asStart<Number>(i, start, range.count, finite));
    finite_points += __syncthreads_count(finite);
  }
  orderInSpace<Number, kThreads, kPoints>(kept->position, kept->cells, kept->order, &memory);

  const int lane = static_cast<int>(threadIdx.x) % 32;
  uint16_t* order = kept->order + (threadIdx.x / 32) * 32 * kPoints + lane;
  // A thread's points in ascending order: of those equally far the first is the one to take.
  int places[kPoints];
#pragma unroll
  for (int k = 0; k < kPoints; ++k) places[k] = order[k * 32];
#pragma unroll
  for (int i = 1; i < kPoints; ++i) {
#pragma unroll
    for (int k = 0; k < kPoints - i; ++k) {
      const int one = places[k], two = places[k + 1];
      places[k] = min(one, two), places[k + 1] = max(one, two);
    }
  }
#pragma unroll
  for (int k = 0; k < kPoints; ++k) order[k * 32] = static_cast<uint16_t>(places[k]);
  Number x[kPoints], y[kPoints], z[kPoints], d[kPoints];
  Number low[3] = {kNowhere<Number>, kNowhere<Number>, kNowhere<Number>};
  Number high[3] = {kNowhere<Number>, kNowhere<Number>, kNowhere<Number>};  // negative
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    const int at = places[k];
    const Number point[3] = {kept->position[0][at], kept->position[1][at], kept->position[2][at]};
    const bool finite = point[0] == point[0];
    x[k] = finite ? point[0] : 0, y[k] = finite ? point[1] : 0, z[k] = finite ? point[2] : 0;
    d[k] = finite ? static_cast<Number>(INFINITY) : Number(-1);
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = point[axis] < low[axis] ? point[axis] : low[axis];
      high[axis] = -point[axis] < high[axis] ? -point[axis] : high[axis];
    }
  }
  bool any = false;
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) {
    low[axis] = leastOfWarp(low[axis]);
    high[axis] = leastOfWarp(high[axis]);
    any = low[axis] < kNowhere<Number>;
  }
  Candidate<Number> own = {0, ~0u};
  Number most_of_warp = any ? static_cast<Number>(INFINITY) : Number(-1);
  bool is_new = true;  // no point was taken yet

  const auto lower = [&](const Number(&taken)[3]) {
    Number apart[3];
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      const Number below = low[axis] - taken[axis];
      const Number above = taken[axis] + high[axis];
      const Number farther = below > above ? below : above;
      apart[axis] = farther > 0 ? farther : 0;
    }
    const bool reaches = squaredDistance(apart[0], apart[1], apart[2]) < most_of_warp;
    if (!reaches && !is_new) return own;
    is_new = false;
    Number most = Number(-1);
    int slot = 0;
#pragma unroll
    for (int k = 0; k < kPoints; ++k) {
      const Number other = squaredDistance(x[k] - taken[0], y[k] - taken[1], z[k] - taken[2]);
      d[k] = other < d[k] ? other : d[k];
      slot = d[k] > most ? k : slot;
      most = d[k] > most ? d[k] : most;
    }
    own.key = mostOfWarp(Order<Number>::of(most));
    const uint32_t index = indexOf(order[slot * 32]);
    own.index = __reduce_min_sync(~0u, Order<Number>::of(most) == own.key ? index : ~0u);
    most_of_warp = own.key > 0 ? Order<Number>::distance(own.key) : Number(-1);
    return own;
  };
  const auto positionOf = [&](uint32_t index, Number(&position)[3]) {
    const uint32_t turn = index / kThreads >> cluster_bits;
    const uint32_t at = turn * kThreads + index % kThreads;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) position[axis] = kept->position[axis][at];
  };
  takeAll<Number, kThreads>(p, cloud, p.points.packed() ? range.begin : 0, blocks, first,
                            finite_points, lower, positionOf);
}

template <class Number, int kThreads>
__device__ void takeFromMemory(const FarthestProblem& p, int64_t cloud, const RowRange& range,
                               Blocks<Number, kThreads>& blocks, int cluster, Number* large) {
  const int64_t total = p.points.total();
  const int64_t first_row = p.points.packed() ? range.begin : cloud * p.points.rows;
  Number* x = large + first_row;
  Number* y = x + total;
  Number* z = y + total;
  Number* d = z + total;
  const int64_t begin = blocks.rank() * kThreads + static_cast<int64_t>(threadIdx.x);
  const int64_t step = static_cast<int64_t>(cluster) * kThreads;
  const int64_t start = range.count > 0 ? startOf(p, cloud, range.count) : 0;
  Candidate<Number> first = {0, ~0u};
  int finite_points = 0;
  for (int64_t turn = 0; turn < range.count; turn += step) {
    const int64_t i = turn + begin;
    Number point[3] = {};
    const bool finite = i < range.count && loadPoint(p.points, cloud, range.begin + i, point);
    if (i < range.count) {
      x[i] = finite ? point[0] : 0, y[i] = finite ? point[1] : 0, z[i] = finite ? point[2] : 0;
      d[i] = finite ? static_cast<Number>(INFINITY) : Number(-1);
    }
    first = better(first, asStart<Number>(i, start, range.count, finite));
    finite_points += __syncthreads_count(finite);
  }
  const auto lower = [&](const Number(&taken)[3]) {
    Candidate<Number> best = {0, ~0u};
#pragma unroll 4
    for (int64_t i = begin; i < range.count; i += step) {
      const Number other = squaredDistance(x[i] - taken[0], y[i] - taken[1], z[i] - taken[2]);
      const Number least = other < d[i] ? other : d[i];
      d[i] = least;
      best = better(best, {Order<Number>::of(least), static_cast<uint32_t>(i)});
    }
    return bestOfWarp<Number>(best);
  };
  const auto positionOf = [&](uint32_t index, Number(&position)[3]) {
    position[0] = x[index], position[1] = y[index], position[2] = z[index];
  };
  takeAll<Number, kThreads>(p, cloud, p.points.packed() ? range.begin : 0, blocks, first,
                            finite_points, lower, positionOf);
}

template <class Number, int kThreads, int kPoints>
__global__ void __launch_bounds__(kThreads, 1)
    farthestPoints(const __grid_constant__ Arguments<Number> a) {
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ Meeting<Number> meeting;
  const FarthestProblem& p = a.problem;
  Blocks<Number, kThreads> blocks(&meeting, a.cluster);
  const int64_t cloud = static_cast<int64_t>(blockIdx.x) / a.cluster;
  const RowRange range = pointsOf(p.points, cloud);
  blocks.wait();  // all are there to be written to
  if (range.count <= static_cast<int64_t>(kThreads) * kPoints * a.cluster) {
    takeFromRegisters<Number, kThreads, kPoints>(
        p, cloud, range, blocks, __ffs(a.cluster) - 1,
        reinterpret_cast<KeptPoints<Number, kThreads, kPoints>*>(memory));
  } else {
    takeFromMemory<Number, kThreads>(p, cloud, range, blocks, a.cluster, a.large);
  }
  blocks.wait();  // none leaves while others write to it
}

// ---- launch -------------------------------------------------------------------------------------

template <class Number>
struct Form {
  void (*kernel)(Arguments<Number>);
  int threads;
  int points;  // of a thread

  size_t shared_bytes;

  int64_t room() const { return static_cast<int64_t>(threads) * points; }
};
template <class Number, int kThreads, int kPoints>
constexpr Form<Number> formOf() {
  return {farthestPoints<Number, kThreads, kPoints>, kThreads, kPoints,
          sizeof(KeptPoints<Number, kThreads, kPoints>)};
}

// Ascending by what a block holds. Each warp takes part in every round: few of them with many points.
template <class Number>
struct Forms;
template <>
struct Forms<float> {
  static constexpr Form<float> all[] = {formOf<float, 256, 4>(), formOf<float, 256, 16>(),
                                        formOf<float, 512, 16>()};
};
template <>
struct Forms<double> {
  static constexpr Form<double> all[] = {formOf<double, 256, 4>(), formOf<double, 256, 16>()};
};

template <class Number>
struct Plan {
  Form<Number> form;
  int cluster;
  bool in_memory;  // clouds may be too large for registers
};

// Blocks of a cluster. Code for devices before Hopper has none, and more than 8 are not for all.
int mostBlocks(const LaunchDevice& device) {
  if (!device.early_launches) return 1;
  return device.compute_capability == 90 ? kMaxCluster : 8;
}

template <class Number>
Plan<Number> planOf(const FarthestProblem& p, const LaunchDevice& device) {
  const int64_t rows = std::max<int64_t>(1, p.points.rows);
  // Of packed clouds only the sum of their sizes is known here: some are larger than the mean.
  const int64_t expected =
      p.points.packed() ? std::min(rows, 2 * ceilDiv(rows, std::max<int64_t>(1, p.points.clouds)))
                        : rows;
  constexpr size_t kStaticBytes = 4096;  // at most
  Form<Number> largest = Forms<Number>::all[0];
  for (const Form<Number>& form : Forms<Number>::all) {
    if (form.shared_bytes + kStaticBytes <= static_cast<size_t>(device.block_memory))
      largest = form;
  }
  // More blocks cost more to agree than they save: only as many as the points need.
  int cluster = 1;
  while (cluster < mostBlocks(device) && expected > cluster * largest.room()) cluster *= 2;
  for (const Form<Number>& form : Forms<Number>::all) {
    if (form.room() > largest.room() || expected > cluster * form.room()) continue;
    return {form, cluster, rows > cluster * form.room()};
  }
  return {largest, cluster, true};
}

size_t bytesOfPlan(const FarthestProblem& p, const LaunchDevice& device) {
  ScratchLayout layout(nullptr);
  visitNumber(p.points.dtype, [&](auto tag) {
    using Number = typename decltype(tag)::type;
    if (planOf<Number>(p, device).in_memory) layout.take<Number>(4 * p.points.total());
  });
  return layout.used();
}

template <class Number>
cudaError_t launch(const FarthestProblem& p, void* scratch, const LaunchDevice& device,
                   cudaStream_t stream) {
  const Plan<Number> plan = planOf<Number>(p, device);
  const int64_t blocks = p.points.clouds * plan.cluster;
  if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
  Arguments<Number> arguments = {p, plan.cluster, static_cast<Number*>(scratch)};
  cudaLaunchConfig_t config = {};
  config.gridDim = gridOf(blocks);
  config.blockDim = dim3(static_cast<unsigned>(plan.form.threads));
  config.dynamicSmemBytes = plan.form.shared_bytes;
  config.stream = stream;
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = static_cast<unsigned>(plan.cluster);
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  config.attrs = &cluster;
  config.numAttrs = plan.cluster > 1 ? 1 : 0;
  void* list[] = {&arguments};
  return cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(plan.form.kernel), list);
}

cudaError_t launchFarthest(const FarthestProblem& p, void* scratch, const LaunchDevice& device,
                           cudaStream_t stream) {
  return visitNumber(p.points.dtype, [&](auto tag) {
    return launch<typename decltype(tag)::type>(p, scratch, device, stream);
  });
}

// Where a device has not the shared memory of a form, its launch tells: contexts open all the same.
template <class Number>
cudaError_t allow(const LaunchDevice& device) {
  for (const Form<Number>& form : Forms<Number>::all) {
    const auto* kernel = reinterpret_cast<const void*>(form.kernel);
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(form.shared_bytes));
    if (error == cudaSuccess && mostBlocks(device) > 8) {
      error = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    }
    if (error == cudaSuccess) continue;
    if (error != cudaErrorInvalidValue) return error;
    cudaGetLastError();
  }
  return cudaSuccess;
}

}  // namespace

extern const Operation<FarthestProblem> kFarthestPoints = {
    bytesOn<FarthestProblem, bytesOfPlan>, launchOn<FarthestProblem, launchFarthest>};
cudaError_t loadFarthestPoints(const LaunchDevice& device) {
  cudaError_t error = loadKernelsBeside(farthestPoints<float, 256, 16>);
  if (error == cudaSuccess) error = allow<float>(device);
  return error == cudaSuccess ? allow<double>(device) : error;
}

}  // namespace rbc::cuda
