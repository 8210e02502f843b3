// Farthest points: a cluster of blocks a cloud, or a block where there are no clusters. Multiprocessors keep
// the points, or the workspace where they are too many. One kernel takes all K.

#include "farthest_problem.h"

#include <iterator>
#include <type_traits>
#include <vector>

#include "points/farthest_blocks.cuh"
#include "points/farthest_kept.cuh"
#include "points/farthest_workspace.cuh"
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
  int cluster;       // blocks of a cloud
  int64_t each;      // numbers of an array in the workspace
  Number* numbers;   // [4][each]
  uint32_t* places;  // [each]
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

// The points of a cloud, as blocks share them out.
template <class Number, int kThreads>
struct Source {
  const FarthestProblem& problem;
  int64_t cloud;
  RowRange range;
  Share<kThreads> share;

  __device__ bool operator()(uint32_t index, Number (&point)[3]) const {
    return index < range.count && loadPoint(problem.points, cloud, range.begin + index, point);
  }
};

// Wherever points are kept: lower(taken, turn) of a cloud gives the best candidates of the warp's first
// kEach lanes once a point is taken, and look() looks a point of the block up.
template <class Cloud, class Number, int kThreads>
__device__ void takeAll(const Source<Number, kThreads>& source, Blocks<Number, kThreads>& blocks,
                        Cloud& points) {
  const FarthestProblem& p = source.problem;
  const RowRange& range = source.range;
  // The first is the first finite one from the start on, then from 0.
  const int64_t start = startOf(p, source.cloud, range.count);
  Candidate<Number> first = kNoCandidate<Number>;
  int finite = 0;
  for (uint32_t i = source.share.indexOf(threadIdx.x); i < range.count;
       i += source.share.cluster * kThreads) {
    Number point[3];
    if (!source(i, point)) continue;
    ++finite;
    const int64_t behind = i >= start ? i - start : i + range.count - start;
    const auto key = static_cast<typename Order<Number>::Key>(0x80000000u - behind);
    if (key > first.key) first = {key, i};
  }
  const bool writes = blocks.rank() == 0;
  const int64_t first_row = p.points.packed() ? range.begin : 0;
  const auto taken = static_cast<uint32_t>(min(static_cast<int64_t>(blocks.sum(finite)), p.count));
  if (taken > 0) {
    Winner<Number> next = blocks.template best<1>(
        bestOfWarp<Number>(first),
        [&](uint32_t index, int, Winner<Number>* winner) { source(index, winner->position); });
    Number distance = static_cast<Number>(INFINITY);
    // Each thread keeps one result of kThreads, so that no round waits for a write.
    uint32_t kept_index = 0;
    Number kept_distance = 0;
    int place = 0;
    for (uint32_t left = taken;;) {
      if (static_cast<int>(threadIdx.x) == place) {
        kept_index = next.candidate.label, kept_distance = distance;
      }
      --left;
      if (left == 0 || place == kThreads - 1) {
        if (writes && static_cast<int>(threadIdx.x) <= place) {
          putFarthest(p, source.cloud, int64_t{taken} - left - 1 - place + threadIdx.x,
                      first_row + kept_index, static_cast<double>(kept_distance));
        }
        if (left == 0) break;
        place = -1;
      }
      ++place;
      const int turn = blocks.nextTurn();
      next = blocks.template best<Cloud::kEach>(
          points.lower(next.position, turn),
          [&](uint32_t label, int entry, Winner<Number>* winner) {
            points.look(label, entry, turn, winner);
          });
      distance = Order<Number>::distance(next.candidate.key);
    }
  }
  if (!writes) return;
  for (int64_t k = int64_t{taken} + threadIdx.x; k < p.count; k += kThreads) {
    putFarthest(p, source.cloud, k, -1, 0);
  }
}

// What a block takes of a cloud: whole turns.
__host__ __device__ int64_t roomOf(int64_t count, int64_t cluster, int threads) {
  const int64_t turns = (count + cluster * threads - 1) / (cluster * threads);
  return (turns > 0 ? turns : 1) * threads;
}

// Rows of the workspace that are not a cloud's: its last turn, and up to whole words.
__host__ __device__ int64_t rowsBeside(int64_t cluster, int threads) {
  return cluster * threads + kFour;
}

template <class Number>
__device__ PointArrays<Number> arraysOf(const Arguments<Number>& a, int64_t first_row,
                                        int64_t cloud, int rank, int64_t room, int threads) {
  const int64_t begin = first_row + cloud * rowsBeside(a.cluster, threads);
  const int64_t at = (begin + kFour - 1) / kFour * kFour + rank * room;
  auto* x = a.numbers + at;
  return {{x, x + a.each, x + 2 * a.each}, x + 3 * a.each, a.places + at};
}

// Clouds may be larger than what was expected of them.
template <class Form>
using LargeOf = InWorkspace<typename Form::Number, Form::kThreads>;

template <class Form>
__global__ void __launch_bounds__(Form::kThreads, 1)
    farthestPoints(const __grid_constant__ Arguments<typename Form::Number> a) {
  using Number = typename Form::Number;
  constexpr int kThreads = Form::kThreads;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ Meeting<Number> meeting;
  __shared__ SpatialMemory<Number> spatial;
  const FarthestProblem& p = a.problem;
  Blocks<Number, kThreads> blocks(&meeting, a.cluster);
  const int64_t cloud = static_cast<int64_t>(blockIdx.x) / a.cluster;
  const RowRange range = pointsOf(p.points, cloud);
  const int64_t room = roomOf(range.count, a.cluster, kThreads);
  blocks.wait();  // all are there to be written to
  const Source<Number, kThreads> source = {
      p, cloud, range, {static_cast<uint32_t>(blocks.rank()), static_cast<uint32_t>(a.cluster)}};
  if (range.count == 0) {
    for (int64_t k = threadIdx.x; k < p.count && blocks.rank() == 0; k += kThreads) {
      putFarthest(p, cloud, k, -1, 0);
    }
  } else if (room > Form::kRoom) {
    const int64_t first_row = p.points.packed() ? range.begin : cloud * p.points.rows;
    WorkspaceCloud<LargeOf<Form>> points(
        reinterpret_cast<WorkspaceMemory<LargeOf<Form>>*>(memory), &spatial, source.share,
        arraysOf(a, first_row, cloud, blocks.rank(), room, kThreads), static_cast<uint32_t>(room),
        source);
    takeAll(source, blocks, points);
  } else if constexpr (Form::kRoom > 0) {
    KeptCloud<Form> points(reinterpret_cast<KeptMemory<Form>*>(memory), &spatial, source.share,
                           source);
    takeAll(source, blocks, points);
  }
  blocks.wait();  // none leaves while others write to it
}

// ---- launch -------------------------------------------------------------------------------------

template <class Number>
struct LaunchForm {
  void (*kernel)(Arguments<Number>);
  int threads;
  int64_t room;  // points of a block that it keeps
  size_t shared_bytes;
};
template <class Form>
constexpr LaunchForm<typename Form::Number> launchForm() {
  size_t bytes = sizeof(WorkspaceMemory<LargeOf<Form>>);
  if constexpr (Form::kRoom > 0) bytes = std::max(bytes, sizeof(KeptMemory<Form>));
  return {farthestPoints<Form>, Form::kThreads, Form::kRoom, bytes};
}

// Ascending by what a block keeps; the first fits any device. Each warp takes part in every round: few of
// them with many points.
template <class Number>
struct Forms;
template <>
struct Forms<float> {
  static constexpr LaunchForm<float> all[] = {launchForm<Kept<float, 256, 1, 4, true>>(),
                                              launchForm<Kept<float, 256, 2, 8, true>>(),
                                              launchForm<Kept<float, 512, 2, 8, true>>()};
  static constexpr LaunchForm<float> large = launchForm<InWorkspace<float, 512>>();
};
template <>
struct Forms<double> {
  static constexpr LaunchForm<double> all[] = {launchForm<Kept<double, 256, 1, 4, true>>(),
                                               launchForm<Kept<double, 256, 2, 8, true>>(),
                                               launchForm<Kept<double, 256, 4, 8, false>>()};
  static constexpr LaunchForm<double> large = launchForm<InWorkspace<double, 512>>();
};

template <class Number>
struct Plan {
  LaunchForm<Number> form;
  int cluster;
  bool in_workspace;  // clouds may be
};

// Blocks of a cluster. Code for devices before Hopper has none, and more than 8 are not for all.
int mostBlocks(const LaunchDevice& device) {
  if (!device.early_launches) return 1;
  return device.compute_capability == 90 ? kMaxCluster : 8;
}

// The most blocks of a cloud with which all clouds run at once.
int blocksTogether(const FarthestProblem& p, const LaunchDevice& device) {
  int cluster = 1;
  while (2 * cluster <= mostBlocks(device) &&
         2 * cluster * p.points.clouds <= device.multiprocessors) {
    cluster *= 2;
  }
  return cluster;
}

template <class Number>
bool fits(const LaunchForm<Number>& form, const LaunchDevice& device) {
  constexpr size_t kStaticBytes = sizeof(Meeting<Number>) + sizeof(SpatialMemory<Number>) + 64;
  return form.shared_bytes + kStaticBytes <= static_cast<size_t>(device.block_memory);
}

template <class Number>
Plan<Number> planOf(const FarthestProblem& p, const LaunchDevice& device) {
  const int64_t rows = std::max<int64_t>(1, p.points.rows);
  // Of packed clouds only the sum of their sizes is known here: some are larger than the mean.
  const int64_t expected =
      p.points.packed() ? std::min(rows, 2 * ceilDiv(rows, std::max<int64_t>(1, p.points.clouds)))
                        : rows;
  LaunchForm<Number> largest = Forms<Number>::all[0];
  for (const LaunchForm<Number>& form : Forms<Number>::all) {
    if (fits(form, device)) largest = form;
  }
  // More blocks cost more to agree than they save: only as many as the points need.
  int cluster = 1;
  while (cluster < mostBlocks(device) && expected > cluster * largest.room) cluster *= 2;
  // From the workspace a point takes some four times as long as if multiprocessors keep the points, but
  // there all clouds may run at once.
  const int together = blocksTogether(p, device);
  const auto turns = [&](int64_t blocks) {
    return ceilDiv(p.points.clouds * blocks, int64_t{device.multiprocessors});
  };
  if (turns(cluster) > 4 * turns(together)) cluster = together;
  for (const LaunchForm<Number>& form : Forms<Number>::all) {
    if (form.room > largest.room || expected > cluster * form.room) continue;
    return {form, cluster, rows > cluster * form.room};
  }
  return {fits(Forms<Number>::large, device) ? Forms<Number>::large : largest, together, true};
}

// What the workspace has of a plan; null in place of a workspace: only its size.
template <class Number>
void cutWorkspace(const FarthestProblem& p, const Plan<Number>& plan, ScratchLayout* layout,
                  Arguments<Number>* arguments) {
  arguments->each =
      p.points.total() + (p.points.clouds + 1) * rowsBeside(plan.cluster, plan.form.threads);
  layout->take(&arguments->numbers, 4 * arguments->each);
  layout->take(&arguments->places, arguments->each);
}

size_t bytesOfPlan(const FarthestProblem& p, const LaunchDevice& device) {
  ScratchLayout layout(nullptr);
  visitNumber(p.points.dtype, [&](auto tag) {
    using Number = typename decltype(tag)::type;
    const Plan<Number> plan = planOf<Number>(p, device);
    Arguments<Number> arguments = {};
    if (plan.in_workspace) cutWorkspace(p, plan, &layout, &arguments);
  });
  return layout.used();
}

template <class Number>
cudaError_t launch(const FarthestProblem& p, void* scratch, const LaunchDevice& device,
                   cudaStream_t stream) {
  const Plan<Number> plan = planOf<Number>(p, device);
  const int64_t blocks = p.points.clouds * plan.cluster;
  if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
  Arguments<Number> arguments = {p, plan.cluster, 0, nullptr, nullptr};
  ScratchLayout layout(scratch);
  if (plan.in_workspace) cutWorkspace(p, plan, &layout, &arguments);
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
  std::vector<LaunchForm<Number>> forms(std::begin(Forms<Number>::all),
                                        std::end(Forms<Number>::all));
  forms.push_back(Forms<Number>::large);
  for (const LaunchForm<Number>& form : forms) {
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
  cudaError_t error = loadKernelsBeside(farthestPoints<Kept<float, 256, 2, 8, true>>);
  if (error == cudaSuccess) error = allow<float>(device);
  return error == cudaSuccess ? allow<double>(device) : error;
}

}  // namespace rbc::cuda
