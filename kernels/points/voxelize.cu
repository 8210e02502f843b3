// Dense voxelization: occupancy and counts directly on the grid, or by bins; features by groups of
// points.

#include <algorithm>
#include <type_traits>

#include "element_of.h"
#include "points/clear_counts.h"
#include "points/dense_output.cuh"
#include "points/points.cuh"
#include "points/reduce_voxels.h"
#include "points/voxel_bins.h"
#include "runtime/cuda_state.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "scratch_layout.h"
#include "visit_dtype.h"

namespace rbc::cuda {

// ---- Fills a dense grid of features with the values of voxels without points.

inline constexpr int kFillThreads = 256;

struct FillArguments {
  void* data;
  int64_t stride[5];
  VoxelCoordsOf places;
  int64_t features;
  int64_t count;  // elements
  uint64_t bits;
  bool contiguous;
};

template <class Element>
__global__ void __launch_bounds__(kFillThreads) fillGrid(const __grid_constant__ FillArguments a) {
  waitForLaunchesAhead();
  const auto value = elementOf<Element>(a.bits);
  auto* data = static_cast<Element*>(a.data);
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kFillThreads + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kFillThreads;
  for (int64_t i = thread; i < a.count; i += threads) {
    int64_t offset = i;
    if (!a.contiguous) {
      const int64_t key = i / a.features;
      const VoxelCoords at = a.places(key);
      offset = at.cloud * a.stride[0] + at.x * a.stride[1] + at.y * a.stride[2] +
               at.z * a.stride[3] + (i - key * a.features) * a.stride[4];
    }
    data[offset] = value;
  }
}

inline FillArguments fillOf(const VoxelizeProblem& p) {
  FillArguments fill = {p.out.data,   {},  VoxelCoordsOf(p.grid), p.features.count, 0,
                        p.empty_bits, true};
  const int64_t extent[] = {p.points.clouds, p.grid.shape[0], p.grid.shape[1], p.grid.shape[2],
                            p.features.count};
  int64_t compact = 1;
  for (int i = 4; i >= 0; --i) {
    fill.stride[i] = p.out.stride[i];
    fill.contiguous &= extent[i] == 1 || p.out.stride[i] == compact;
    compact *= extent[i];
  }
  fill.count = compact;
  return fill;
}

inline cudaError_t launchFill(const VoxelizeProblem& p, FillArguments* fill,
                              const LaunchDevice& device, cudaStream_t cuda_stream) {
  if (fill->count == 0) return cudaSuccess;
  if (fill->contiguous && p.empty_bits == 0) {
    const auto bytes = static_cast<size_t>(fill->count) * static_cast<size_t>(sizeOf(p.out.dtype));
    return cudaMemsetAsync(p.out.data, 0, bytes, cuda_stream);
  }
  const int64_t most_blocks = int64_t{16} * device.multiprocessors;
  return visitFloat(p.out.dtype, [&](auto tag) {
    return launchBlocks(fillGrid<typename decltype(tag)::type>, fill,
                        blocksFor(fill->count, kFillThreads * 4, most_blocks), kFillThreads, device,
                        cuda_stream);
  });
}

// The part of it that the reduction can fill by the bits of the groups.
inline EmptyVoxels emptyOf(const VoxelizeProblem& p, const FillArguments& fill,
                           const PointGroups& groups) {
  constexpr int64_t kVec = sizeof(uint4);
  constexpr int64_t kMaxRow = int64_t{1} << 24;  // bytes: the rows of a word are counted in 32 bits
  const int64_t size = sizeOf(p.out.dtype);
  const bool suits = groups.words != nullptr && groups.most > 0 && fill.contiguous &&
                     fill.count > 0 && p.features.count <= kMaxRow / size &&
                     p.features.count * size % kVec == 0 &&
                     reinterpret_cast<uintptr_t>(p.out.data) % kVec == 0;
  if (!suits) return {};
  uint64_t bits = p.empty_bits;
  for (int64_t bytes = size; bytes < 8; bytes *= 2) bits |= bits << 8 * bytes;
  const auto low = static_cast<uint32_t>(bits);
  const auto high = static_cast<uint32_t>(bits >> 32);
  return {p.points.clouds * p.grid.volume(),
          FastDivmod(p.features.count * size / kVec),
          {low, high, low, high}};
}

namespace {

constexpr int kThreads = kCellThreads;

int64_t cellsOf(const VoxelizeProblem& p) { return p.points.clouds * p.grid.volume(); }

template <class Number>
struct MarkArguments {
  PointSource<Number> source;
  void* cells;
  const int32_t* coherent;  // if not null, and 0 there: nothing to do
  int groups;               // of points that share a table of counts
};

// kLook: if most cells are marked already, checking first is faster than marking them again.
template <bool kLook>
__device__ void addToCell(uint8_t* cell) {
  if (!kLook || *cell == 0) *cell = 1;
}
template <bool>
__device__ void addToCell(uint32_t* cell) {
  atomicAdd(cell, 1u);
}

// Blocks that must fit on a multiprocessor; 0 leaves it to the compiler, which spills for doubles.
template <class Loader>
constexpr int kPointBlocks = sizeof(typename Loader::Number) == 8 ? 4 : 0;

template <class Loader, class Cell, bool kLook>
__global__ void __launch_bounds__(kThreads, kPointBlocks<Loader>)
    addPoints(const __grid_constant__ MarkArguments<typename Loader::Number> a) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads * kPoints;
  auto* cells = static_cast<Cell*>(a.cells);
  waitForLaunchesAhead();
  if (a.coherent != nullptr && *a.coherent == 0) return;
  DropCounter drops(a.source);
  // Every thread of a warp takes each step, as the counter requires.
  for (int64_t base = static_cast<int64_t>(blockIdx.x) * kThreads * kPoints; base < a.source.total;
       base += step) {
    int64_t keys[kPoints];
    loadKeys<Loader>(a.source, base + threadIdx.x * kPoints, keys, &drops);
#pragma unroll
    for (int k = 0; k < kPoints; ++k) {
      if (keys[k] >= 0) addToCell<kLook>(cells + keys[k]);
    }
  }
  drops.finish();
}

constexpr int32_t kNoKey = -1;

// Counts for the cells of a block's points, added to the grid at once. A cell has one place in the
// table; the first cell to arrive takes it.
struct CountTable {
  static constexpr int kPlacesLog2 = 11;
  static constexpr int kPlaces = 1 << kPlacesLog2;
  int32_t keys[kPlaces];
  uint32_t counts[kPlaces];

  __device__ void clear() {
    for (int i = static_cast<int>(threadIdx.x); i < kPlaces; i += kThreads) {
      keys[i] = kNoKey;
      counts[i] = 0;
    }
  }

  static __device__ uint32_t coordsOf(int32_t key) {
    return static_cast<uint32_t>(key) * 2654435761u >> (32 - kPlacesLog2);
  }

  // Takes the place; returns the key that has it from now on.
  __device__ int32_t take(int32_t key, uint32_t place) {
    const int32_t there = *static_cast<volatile int32_t*>(&keys[place]);
    if (there != kNoKey) return there;
    const int32_t before = atomicCAS(&keys[place], kNoKey, key);
    return before == kNoKey ? key : before;
  }

  __device__ void add(int32_t key, uint32_t count, uint32_t* cells) {
    const uint32_t place = coordsOf(key);
    if (take(key, place) == key) {
      atomicAdd(&counts[place], count);
    } else {
      atomicAdd(&cells[key], count);
    }
  }

  // Adds the counts to the grid and clears the table.
  __device__ void flush(uint32_t* cells) {
    for (int i = static_cast<int>(threadIdx.x); i < kPlaces; i += kThreads) {
      if (keys[i] == kNoKey) continue;
      atomicAdd(&cells[keys[i]], counts[i]);
      keys[i] = kNoKey;
      counts[i] = 0;
    }
  }
};

// Uses a table if the points share cells: each block checks some of its own.
template <class Loader>
__global__ void __launch_bounds__(kThreads)
    addCounts(const __grid_constant__ MarkArguments<typename Loader::Number> a) {
  __shared__ CountTable table;
  constexpr int kGroup = kThreads * kPoints;
  auto* cells = static_cast<uint32_t*>(a.cells);
  waitForLaunchesAhead();
  if (a.coherent != nullptr && *a.coherent == 0) return;
  table.clear();
  __syncthreads();
  DropCounter drops(a.source);
  bool looked = false;
  bool combines = true;
  const int64_t chunk = static_cast<int64_t>(a.groups) * kGroup;
  for (int64_t base = blockIdx.x * chunk; base < a.source.total; base += gridDim.x * chunk) {
    for (int g = 0; g < a.groups; ++g) {
      int32_t keys[kPoints];
      loadKeys<Loader>(a.source, base + g * kGroup + threadIdx.x * kPoints, keys, &drops);
      if (!looked) {
        const int32_t key = keys[0];
        const int32_t before =
            key >= 0 ? atomicCAS(&table.keys[CountTable::coordsOf(key)], kNoKey, key) : key;
        const int found = __syncthreads_count(key >= 0);
        combines = 4 * __syncthreads_count(before != key) < 3 * found;
        looked = found > 0;
      }
      uint32_t run = 1;  // of neighbours in one cell
#pragma unroll
      for (int k = 0; k < kPoints; ++k, ++run) {
        if (k + 1 < kPoints && keys[k + 1] == keys[k]) continue;
        if (keys[k] >= 0 && combines) table.add(keys[k], run, cells);
        if (keys[k] >= 0 && !combines) atomicAdd(&cells[keys[k]], run);
        run = 0;
      }
    }
    if (!combines) continue;
    __syncthreads();
    table.flush(cells);
    __syncthreads();
  }
  drops.finish();
}

struct ExpandArguments {
  CellOutput out;
  const void* cells;
  int64_t count;
};

template <class Cell, class Element>
__global__ void __launch_bounds__(kThreads) expandCells(const __grid_constant__ ExpandArguments a) {
  waitForLaunchesAhead();
  writeCells<Element>(a.out, static_cast<const Cell*>(a.cells), 0, a.count,
                      static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x,
                      static_cast<int64_t>(gridDim.x) * kThreads);
}

// Enough blocks that all multiprocessors are busy.
int64_t mostBlocks(const LaunchDevice& device) { return int64_t{16} * device.multiprocessors; }

// Adds all points to cells that are cleared; or none, depending on MarkArguments.
template <class Cell>
cudaError_t launchPoints(const CellChoice& choice, const VoxelizeProblem& p, void* cells,
                         const int32_t* coherent, const LaunchDevice& device,
                         cudaStream_t cuda_stream) {
  if (p.points.total() == 0) return cudaSuccess;
  return visitLoader(p.points, [&](auto tag) {
    using Loader = typename decltype(tag)::type;
    using Number = typename Loader::Number;
    MarkArguments<Number> arguments = {sourceOf<Number>(p.points, p.grid, p.dropped), cells,
                                       coherent, choice.groups};
    const auto launch = [&](auto kernel) {
      return launchBlocks(kernel, &arguments, choice.direct_grid, kThreads, device, cuda_stream);
    };
    if constexpr (std::is_same_v<Cell, uint32_t>) {
      if (choice.direct == CellKernel::kCounts) return launch(addCounts<Loader>);
    } else if (coherent != nullptr) {
      return launch(addPoints<Loader, Cell, true>);
    }
    return launch(addPoints<Loader, Cell, false>);
  });
}

template <class Cell>
cudaError_t launchDirect(const CellChoice& choice, const VoxelizeProblem& p, void* scratch,
                         const LaunchDevice& device, cudaStream_t cuda_stream) {
  const bool direct = choice.takes_cells;
  void* cells = direct ? p.out.data : scratch;
  const int64_t count = cellsOf(p);
  cudaError_t error =
      cudaMemsetAsync(cells, 0, static_cast<size_t>(count) * sizeof(Cell), cuda_stream);
  if (error == cudaSuccess) {
    error = launchPoints<Cell>(choice, p, cells, nullptr, device, cuda_stream);
  }
  if (error != cudaSuccess || direct) return error;
  ExpandArguments arguments = {cellOutputOf(p), cells, count};
  return visitCellElement(p.out.dtype, [&](auto tag) {
    using Element = typename decltype(tag)::type;
    return launchBlocks(expandCells<Cell, Element>, &arguments,
                        blocksFor(count, kThreads * 16, mostBlocks(device)), kThreads, device,
                        cuda_stream);
  });
}

// By bins; or directly to the grid, if it takes cells and the device finds the points coherent.
template <class Cell>
cudaError_t launchBins(const CellChoice& choice, const VoxelizeProblem& p, void* scratch,
                       const LaunchDevice& device, cudaStream_t cuda_stream) {
  if (!choice.takes_cells) {
    return launchVoxelBins(choice, p, scratch, nullptr, device, cuda_stream);
  }
  const int32_t* coherent = nullptr;
  const cudaError_t error = launchVoxelBins(choice, p, scratch, &coherent, device, cuda_stream);
  if (error != cudaSuccess) return error;
  return launchPoints<Cell>(choice, p, p.out.data, coherent, device, cuda_stream);
}

template <class Cell>
cudaError_t launchCells(const CellChoice& choice, const VoxelizeProblem& p, void* scratch,
                        const LaunchDevice& device, cudaStream_t cuda_stream) {
  if (choice.family == CellKernel::kBins) {
    return launchBins<Cell>(choice, p, scratch, device, cuda_stream);
  }
  const cudaError_t error = clearCounts(p.dropped, p.points.clouds, device, cuda_stream);
  if (error != cudaSuccess) return error;
  return launchDirect<Cell>(choice, p, scratch, device, cuda_stream);
}

// ---- features -----------------------------------------------------------------------------------

struct FeatureParts {
  PointGrouping grouping;
  VoxelReduction reduction;

  FeatureParts(const VoxelizeProblem& p, const LaunchDevice& device, ScratchLayout* cutter)
      : grouping(p.points, p.grid, p.dropped, {{}, false, true, false, false}, device, cutter),
        reduction(p.points, p.features, p.mode, cutter) {}
};

cudaError_t launchFeatures(const VoxelizeProblem& p, void* scratch, const LaunchDevice& device,
                           cudaStream_t cuda_stream, LaunchChoice* chosen) {
  ScratchLayout cutter(scratch);
  const FeatureParts parts(p, device, &cutter);
  *chosen = parts.grouping.choice();
  cudaError_t error;
  if (parts.grouping.byTable()) {
    error = parts.grouping.launchTable({}, parts.reduction.chunks(), device, cuda_stream);
  } else {
    error = clearCounts(p.dropped, p.points.clouds, device, cuda_stream);
    if (error == cudaSuccess) error = parts.reduction.clear(cuda_stream);
    if (error != cudaSuccess) return error;
    if (parts.grouping.ranked()) {
      error = parts.grouping.launchRanked({}, parts.reduction.chunks(), device, cuda_stream);
    } else {
      error = parts.grouping.launchSorted(device, cuda_stream);
      if (error == cudaSuccess) {
        error = parts.reduction.listChunks(parts.grouping.groups(), device, cuda_stream);
      }
    }
  }
  FillArguments fill = fillOf(p);
  const EmptyVoxels empty = emptyOf(p, fill, parts.grouping.groups());
  if (error == cudaSuccess && empty.voxels == 0) error = launchFill(p, &fill, device, cuda_stream);
  if (error != cudaSuccess) return error;
  const VoxelTarget target = {p.out.data,
                              p.out.dtype,
                              {p.out.stride[0], p.out.stride[1], p.out.stride[2], p.out.stride[3]},
                              p.out.stride[4],
                              true,
                              VoxelCoordsOf(p.grid),
                              nullptr,
                              0,
                              empty};
  return parts.reduction.launch(parts.grouping.groups(), target, device, cuda_stream);
}

size_t voxelizeScratchBytes(const VoxelizeProblem& p, const LaunchDevice& device) {
  if (reducesFeatures(p.mode)) {
    ScratchLayout cutter(nullptr);
    const FeatureParts parts(p, device, &cutter);
    return cutter.used();
  }
  const CellChoice choice = selectCells(p, device);
  if (choice.family == CellKernel::kBins) return voxelBinsScratchBytes(choice, p.mode);
  ScratchLayout cutter(nullptr);  // cells may exceed the memory
  if (choice.takes_cells) return 0;
  if (p.mode == Reduction::kOccupancy) {
    cutter.take<uint8_t>(cellsOf(p));
  } else {
    cutter.take<uint32_t>(cellsOf(p));
  }
  return cutter.used();
}

cudaError_t launchVoxelize(const VoxelizeProblem& p, void* scratch, const LaunchDevice& device,
                           cudaStream_t cuda_stream, LaunchChoice* chosen) {
  if (reducesFeatures(p.mode)) return launchFeatures(p, scratch, device, cuda_stream, chosen);
  const CellChoice choice = selectCells(p, device);
  *chosen = choice;
  return p.mode == Reduction::kOccupancy
             ? launchCells<uint8_t>(choice, p, scratch, device, cuda_stream)
             : launchCells<uint32_t>(choice, p, scratch, device, cuda_stream);
}

}  // namespace

extern const Operation<VoxelizeProblem> kVoxelize = {bytesOn<VoxelizeProblem, voxelizeScratchBytes>,
                                                     launchOn<VoxelizeProblem, launchVoxelize>};
cudaError_t loadVoxelize(const LaunchDevice&) { return loadKernelsBeside(fillGrid<uint8_t>); }

}  // namespace rbc::cuda
