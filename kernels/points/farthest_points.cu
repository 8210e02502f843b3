// Farthest points: a cluster of blocks per cloud, or a block if there are no clusters.
// Multiprocessors keep the points or, if there are too many, the workspace does. One kernel takes
// all K points.

#include "farthest_problem.h"

#include <type_traits>

#include "points/farthest_kept.cuh"
#include "points/farthest_take.cuh"
#include "points/farthest_workspace.cuh"
#include "points/select_farthest.h"
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
  int cluster;       // blocks per cloud
  int64_t each;      // numbers per array in the workspace
  Number* numbers;   // [4][each]
  uint32_t* places;  // [each]
};

// The number of points that a block processes: whole turns.
__host__ __device__ int64_t roomOf(int64_t count, int64_t cluster, int threads) {
  const int64_t turns = (count + cluster * threads - 1) / (cluster * threads);
  return (turns > 0 ? turns : 1) * threads;
}

// Rows of the workspace that do not belong to a cloud: the rest of its last turn, and padding to
// whole words.
__host__ __device__ int64_t rowsBeside(int64_t cluster, int threads) {
  return cluster * threads + kFour;
}

// The place of a cloud among those with such rows: ascending from cloud to cloud. Only clouds that
// are not kept have them, since there may be millions of small ones, and each of these has more
// than `kept` rows.
__host__ __device__ int64_t slotOf(int64_t cloud, int64_t first_row, int64_t kept) {
  return kept == 0 ? cloud : first_row / kept;
}

// `kept`: the number of points of a cloud that multiprocessors can keep.
template <class Number>
__device__ PointArrays<Number> arraysOf(const Arguments<Number>& a, int64_t first_row,
                                        int64_t cloud, int rank, int64_t room, int threads,
                                        int64_t kept) {
  const int64_t begin = first_row + slotOf(cloud, first_row, kept) * rowsBeside(a.cluster, threads);
  const int64_t at = (begin + kFour - 1) / kFour * kFour + rank * room;
  auto* x = a.numbers + at;
  return {{x, x + a.each, x + 2 * a.each}, x + 3 * a.each, a.places + at};
}

// Clouds may be larger than expected.
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
  blocks.wait();  // all blocks run and can be written to
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
  blocks.wait();  // no block exits while others write to it
}

// ---- launch -------------------------------------------------------------------------------------

template <class Number>
struct Kernels;
template <>
struct Kernels<float> {
  using Large = InWorkspace<float, 512>;
  static constexpr void (*all[])(Arguments<float>) = {
      farthestPoints<Kept<float, 256, 1, 4, true>>, farthestPoints<Kept<float, 512, 2, 4, true>>,
      farthestPoints<Kept<float, 512, 2, 8, true>>, farthestPoints<Large>};
};
template <>
struct Kernels<double> {
  using Large = InWorkspace<double, 512>;
  static constexpr void (*all[])(Arguments<double>) = {
      farthestPoints<Kept<double, 256, 1, 4, true>>, farthestPoints<Kept<double, 256, 2, 8, true>>,
      farthestPoints<Kept<double, 256, 4, 8, false>>, farthestPoints<Large>};
};

template <class Number>
constexpr const Form (&formsOf())[kKeptForms + 1] {
  if constexpr (std::is_same_v<Number, float>) {
    return kFormsOfFloats;
  } else {
    return kFormsOfDoubles;
  }
}

// Whether the numbers in select_farthest.h match a kernel.
template <class Form>
constexpr bool matches(const farthest::Form& form) {
  using Number = typename Form::Number;
  size_t kept_bytes = 0;
  if constexpr (Form::kRoom > 0) kept_bytes = sizeof(KeptMemory<Form>);
  return form.threads == Form::kThreads && form.room == Form::kRoom &&
         form.kept_bytes == kept_bytes &&
         form.workspace_bytes == sizeof(WorkspaceMemory<LargeOf<Form>>) &&
         form.entry_bytes == Batches<Number, Form::kThreads>::entryBytes(1);
}
static_assert(matches<Kept<float, 256, 1, 4, true>>(kFormsOfFloats[0]) &&
              matches<Kept<float, 512, 2, 4, true>>(kFormsOfFloats[1]) &&
              matches<Kept<float, 512, 2, 8, true>>(kFormsOfFloats[2]) &&
              matches<Kernels<float>::Large>(kFormsOfFloats[kLarge]));
static_assert(matches<Kept<double, 256, 1, 4, true>>(kFormsOfDoubles[0]) &&
              matches<Kept<double, 256, 2, 8, true>>(kFormsOfDoubles[1]) &&
              matches<Kept<double, 256, 4, 8, false>>(kFormsOfDoubles[2]) &&
              matches<Kernels<double>::Large>(kFormsOfDoubles[kLarge]));

template <class Number>
constexpr size_t kStaticBytes = sizeof(Meeting) + sizeof(BatchMemory) +
                                sizeof(WinnerMemory<Number>) + sizeof(SpatialMemory<Number>) +
                                sizeof(ResultMemory<Number>) + 64;
static_assert(kStaticBytes<float> == kStaticBytesOfFloats &&
              kStaticBytes<double> == kStaticBytesOfDoubles);

// Takes a choice's arrays from the workspace; a null workspace gives only their size.
template <class Number>
void cutWorkspace(const FarthestProblem& p, const FarthestChoice& choice, ScratchLayout* layout,
                  Arguments<Number>* arguments) {
  const int64_t room = formsOf<Number>()[choice.number].room;
  const int64_t slots = slotOf(p.points.clouds, p.points.total(), choice.cluster * room) + 1;
  const int64_t rows = p.points.total() + slots * rowsBeside(choice.cluster, choice.threads);
  arguments->each = ceilDiv(rows, int64_t{kFour}) * kFour;  // all arrays begin with whole words
  layout->take(&arguments->numbers, 4 * arguments->each);
  layout->take(&arguments->places, arguments->each);
}

size_t bytesOfChoice(const FarthestProblem& p, const LaunchDevice& device) {
  ScratchLayout layout(nullptr);
  const FarthestChoice choice = selectFarthest(p, device);
  visitNumber(p.points.dtype, [&](auto tag) {
    Arguments<typename decltype(tag)::type> arguments = {};
    if (choice.in_workspace) cutWorkspace(p, choice, &layout, &arguments);
  });
  return layout.used();
}

template <class Number>
cudaError_t launch(const FarthestProblem& p, const FarthestChoice& choice, void* scratch,
                   cudaStream_t stream) {
  if (choice.grid > INT32_MAX) return cudaErrorInvalidConfiguration;
  Arguments<Number> arguments = {p, choice.cluster, 0, nullptr, nullptr};
  ScratchLayout layout(scratch);
  if (choice.in_workspace) cutWorkspace(p, choice, &layout, &arguments);
  cudaLaunchConfig_t config = {};
  config.gridDim = gridOf(choice.grid);
  config.blockDim = dim3(static_cast<unsigned>(choice.threads));
  config.dynamicSmemBytes = static_cast<size_t>(choice.shared_bytes);
  config.stream = stream;
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = static_cast<unsigned>(choice.cluster);
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  config.attrs = &cluster;
  config.numAttrs = choice.cluster > 1 ? 1 : 0;
  void* list[] = {&arguments};
  const auto* kernel = reinterpret_cast<const void*>(Kernels<Number>::all[choice.number]);
  return cudaLaunchKernelExC(&config, kernel, list);
}

cudaError_t launchFarthest(const FarthestProblem& p, void* scratch, const LaunchDevice& device,
                           cudaStream_t stream, LaunchChoice* chosen) {
  const FarthestChoice choice = selectFarthest(p, device);
  *chosen = choice;
  return visitNumber(p.points.dtype, [&](auto tag) {
    return launch<typename decltype(tag)::type>(p, choice, scratch, stream);
  });
}

// If a device lacks the shared memory of a form, only its launch fails: contexts can still be
// opened.
template <class Number>
cudaError_t allow(const LaunchDevice& device) {
  for (int i = 0; i <= kLarge; ++i) {
    const auto* kernel = reinterpret_cast<const void*>(Kernels<Number>::all[i]);
    cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
        static_cast<int>(formsOf<Number>()[i].sharedBytes(mostBlocks(device))));
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
    bytesOn<FarthestProblem, bytesOfChoice>, launchOn<FarthestProblem, launchFarthest>};
cudaError_t loadFarthestPoints(const LaunchDevice& device) {
  cudaError_t error = loadKernelsBeside(farthestPoints<Kept<float, 512, 2, 4, true>>);
  if (error == cudaSuccess) error = allow<float>(device);
  return error == cudaSuccess ? allow<double>(device) : error;
}

}  // namespace rbc::cuda
