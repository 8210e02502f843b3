// Farthest points: a cluster of blocks a cloud, or a block where there are no clusters. Multiprocessors keep
// the points, or the workspace where they are too many. One kernel takes all K.

#include "farthest_problem.h"

#include <iterator>
#include <type_traits>
#include <vector>

#include "points/farthest_kept.cuh"
#include "points/farthest_take.cuh"
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

// What a block takes of a cloud: whole turns.
__host__ __device__ int64_t roomOf(int64_t count, int64_t cluster, int threads) {
  const int64_t turns = (count + cluster * threads - 1) / (cluster * threads);
  return (turns > 0 ? turns : 1) * threads;
}

// Rows of the workspace that are not a cloud's: its last turn, and up to whole words.
__host__ __device__ int64_t rowsBeside(int64_t cluster, int threads) {
  return cluster * threads + kFour;
}

// Where a cloud is among those that have such rows: ascending from cloud to cloud. Only clouds that are not
// kept have them, since there may be millions of small ones, and each of those has more than `kept` rows.
__host__ __device__ int64_t slotOf(int64_t cloud, int64_t first_row, int64_t kept) {
  return kept == 0 ? cloud : first_row / kept;
}

// `kept`: points of a cloud that multiprocessors keep.
template <class Number>
__device__ PointArrays<Number> arraysOf(const Arguments<Number>& a, int64_t first_row,
                                        int64_t cloud, int rank, int64_t room, int threads,
                                        int64_t kept) {
  const int64_t begin = first_row + slotOf(cloud, first_row, kept) * rowsBeside(a.cluster, threads);
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
  extern __shared__ __align__(64) unsigned char memory[];
  __shared__ Meeting meeting;
  __shared__ SpatialMemory<Number> spatial;
  const FarthestProblem& p = a.problem;
  Blocks<kThreads> blocks(&meeting, a.cluster);
  const int64_t cloud = static_cast<int64_t>(blockIdx.x) / a.cluster;
  const RowRange range = pointsOf(p.points, cloud);
  const int64_t room = roomOf(range.count, a.cluster, kThreads);
  blocks.wait();  // all are there to be written to
  const int64_t first = min(blocks.rank() * room, range.count);
  const Source<Number> source = {
      p,
      cloud,
      range,
      {static_cast<uint32_t>(first), static_cast<uint32_t>(min(room, range.count - first))}};
  __shared__ ResultMemory<Number> result_memory;
  Results<Number, kThreads> results(source, &result_memory, blocks.rank() == 0);
  if (range.count > 0 && room > Form::kRoom) {
    __shared__ BatchMemory batch_memory;
    auto* entries = reinterpret_cast<Entry<Number>*>(memory);
    auto* points_memory = reinterpret_cast<WorkspaceMemory<LargeOf<Form>>*>(
        memory + Batches<Number, kThreads>::entryBytes(a.cluster));
    const int64_t first_row = p.points.packed() ? range.begin : cloud * p.points.rows;
    WorkspaceCloud<LargeOf<Form>> points(points_memory, &spatial, source.share,
                                         arraysOf(a, first_row, cloud, blocks.rank(), room,
                                                  kThreads, int64_t{a.cluster} * Form::kRoom),
                                         static_cast<uint32_t>(room), source);
    takeBatches(source, blocks, points, &batch_memory, entries, results);
  } else if constexpr (Form::kRoom > 0) {
    if (range.count > 0) {
      __shared__ WinnerMemory<Number> winner_memory;
      KeptCloud<Form> points(reinterpret_cast<KeptMemory<Form>*>(memory), &spatial, source.share,
                             source);
      takeOneByOne(source, blocks, points, &winner_memory, results);
    }
  }
  results.finish();
  blocks.wait();  // none leaves while others write to it
}

// ---- launch -------------------------------------------------------------------------------------

template <class Number>
struct LaunchForm {
  void (*kernel)(Arguments<Number>);
  int threads;
  int64_t room;            // points of a block that it keeps
  size_t kept_bytes;       // of shared memory, for a cloud that is kept
  size_t workspace_bytes;  // for one in the workspace
  size_t entry_bytes;      // beside these, for each block of a cluster

  size_t sharedBytes(int cluster) const {
    return std::max(kept_bytes, workspace_bytes + cluster * entry_bytes);
  }
};
template <class Form>
constexpr LaunchForm<typename Form::Number> launchForm() {
  using Number = typename Form::Number;
  size_t kept_bytes = 0;
  if constexpr (Form::kRoom > 0) kept_bytes = sizeof(KeptMemory<Form>);
  return {farthestPoints<Form>,
          Form::kThreads,
          Form::kRoom,
          kept_bytes,
          sizeof(WorkspaceMemory<LargeOf<Form>>),
          Batches<Number, Form::kThreads>::entryBytes(1)};
}

// Ascending by what a block keeps; the first fits any device. Each warp takes part in every round, so more of
// them cost. So do more buckets of a warp: all wait for one that has to lower two.
template <class Number>
struct Forms;
template <>
struct Forms<float> {
  static constexpr LaunchForm<float> all[] = {launchForm<Kept<float, 256, 1, 4, true>>(),
                                              launchForm<Kept<float, 512, 2, 4, true>>(),
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
  constexpr size_t kStaticBytes = sizeof(Meeting) + sizeof(BatchMemory) +
                                  sizeof(WinnerMemory<Number>) + sizeof(SpatialMemory<Number>) +
                                  sizeof(ResultMemory<Number>) + 64;
  return form.sharedBytes(mostBlocks(device)) + kStaticBytes <=
         static_cast<size_t>(device.block_memory);
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
  const int64_t slots =
      slotOf(p.points.clouds, p.points.total(), plan.cluster * plan.form.room) + 1;
  const int64_t rows = p.points.total() + slots * rowsBeside(plan.cluster, plan.form.threads);
  arguments->each = ceilDiv(rows, int64_t{kFour}) * kFour;  // all arrays begin with whole words
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
  config.dynamicSmemBytes = plan.form.sharedBytes(plan.cluster);
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
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(form.sharedBytes(mostBlocks(device))));
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
  cudaError_t error = loadKernelsBeside(farthestPoints<Kept<float, 512, 2, 4, true>>);
  if (error == cudaSuccess) error = allow<float>(device);
  return error == cudaSuccess ? allow<double>(device) : error;
}

}  // namespace rbc::cuda
