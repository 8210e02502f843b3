// Dense voxelization: occupancy and counts straight onto the grid, or by bins; features by groups of
// points.

#include "voxelize.h"

#include "cells.cuh"
#include "clear_counts.h"
#include "launch.h"
#include "launch_order.cuh"
#include "points.cuh"
#include "reduce_voxels.h"
#include "scratch_cutter.h"
#include "voxel_bins.h"

namespace rbc {
namespace {

constexpr int kThreads = 256;

// Cells in scratch, where the output itself cannot take them.
size_t cellBytes(const VoxelizeProblem& p) {
  return p.mode == VoxelMode::kOccupancy ? sizeof(uint8_t) : sizeof(uint32_t);
}

bool takesCells(const VoxelizeProblem& p) {
  return p.empty_bits == 0 && cellOutputOf(p).contiguous &&
         static_cast<size_t>(sizeOf(p.out.dtype)) == cellBytes(p) && !isFloat(p.out.dtype);
}

int64_t cellsOf(const VoxelizeProblem& p) { return p.points.clouds * p.grid.volume(); }

template <class Number>
struct MarkArguments {
  PointSource<Number> source;
  void* cells;
  int64_t count;
  const int32_t* coherent;  // null, or 0: nothing is to be done
};

// kLook: where most cells are marked already, looking first is faster than marking them again.
template <bool kLook>
__device__ void addToCell(uint8_t* cell) {
  if (!kLook || *cell == 0) *cell = 1;
}
template <bool kLook>
__device__ void addToCell(uint32_t* cell) {
  atomicAdd(cell, 1u);
}

template <class Loader, class Cell, bool kCoherent>
__global__ void __launch_bounds__(kThreads)
    addPoints(const __grid_constant__ MarkArguments<typename Loader::Number> a) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads * kPoints;
  auto* cells = static_cast<Cell*>(a.cells);
  waitForLaunchesAhead();
  if (kCoherent && *a.coherent == 0) return;
  DropCounter drops(a.source);
  // Every thread of a warp takes each step, for the counter's sake.
  for (int64_t base = static_cast<int64_t>(blockIdx.x) * kThreads * kPoints; base < a.source.total;
       base += step) {
    int64_t keys[kPoints];
    loadKeys<Loader>(a.source, base + threadIdx.x * kPoints, keys, &drops);
#pragma unroll
    for (int k = 0; k < kPoints; ++k) {
      if (keys[k] >= 0) addToCell<kCoherent>(cells + keys[k]);
    }
  }
  drops.finish();
}

template <class Number, class Cell>
__global__ void __launch_bounds__(kThreads)
    clearCells(const __grid_constant__ MarkArguments<Number> a) {
  waitForLaunchesAhead();
  if (*a.coherent == 0) return;
  constexpr int kPerWord = 16 / sizeof(Cell);
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  auto* cells = static_cast<Cell*>(a.cells);
  const int64_t words = reinterpret_cast<uintptr_t>(cells) % 16 == 0 ? a.count / kPerWord : 0;
  for (int64_t i = thread; i < words; i += threads) {
    reinterpret_cast<uint4*>(cells)[i] = make_uint4(0, 0, 0, 0);
  }
  for (int64_t i = words * kPerWord + thread; i < a.count; i += threads) cells[i] = 0;
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

int64_t blocksFor(int64_t items, int64_t per_block, const LaunchDevice& device) {
  const int64_t blocks = (items + per_block - 1) / per_block;
  const int64_t most = int64_t{16} * device.multiprocessors;
  return blocks < most ? blocks : most;
}

template <class Cell>
cudaError_t launchDirect(const VoxelizeProblem& p, void* scratch, const LaunchDevice& device,
                         cudaStream_t stream) {
  const bool direct = takesCells(p);
  void* cells = direct ? p.out.data : scratch;
  const int64_t count = cellsOf(p);
  cudaError_t error = cudaMemsetAsync(cells, 0, static_cast<size_t>(count) * sizeof(Cell), stream);
  if (error == cudaSuccess && p.points.total() > 0) {
    error = visitLoader(p.points, [&](auto tag) {
      using Loader = typename decltype(tag)::type;
      using Number = typename Loader::Number;
      MarkArguments<Number> arguments = {sourceOf<Number>(p.points, p.grid, p.dropped), cells,
                                         count, nullptr};
      return launchBlocks(addPoints<Loader, Cell, false>, &arguments,
                          blocksFor(p.points.total(), kThreads * kPoints, device), kThreads, device,
                          stream);
    });
  }
  if (error != cudaSuccess || direct) return error;
  ExpandArguments arguments = {cellOutputOf(p), cells, count};
  return visitCellElement(p.out.dtype, [&](auto tag) {
    using Element = typename decltype(tag)::type;
    return launchBlocks(expandCells<Cell, Element>, &arguments,
                        blocksFor(count, kThreads * 16, device), kThreads, device, stream);
  });
}

// By bins; or straight onto the grid, if it takes cells and the device finds the points coherent.
template <class Cell>
cudaError_t launchBins(const VoxelizeProblem& p, void* scratch, const LaunchDevice& device,
                       cudaStream_t stream) {
  if (!takesCells(p)) return launchVoxelBins(p, scratch, nullptr, device, stream);
  const int32_t* coherent = nullptr;
  const cudaError_t error = launchVoxelBins(p, scratch, &coherent, device, stream);
  if (error != cudaSuccess) return error;
  return visitLoader(p.points, [&](auto tag) {
    using Loader = typename decltype(tag)::type;
    using Number = typename Loader::Number;
    const int64_t count = cellsOf(p);
    MarkArguments<Number> arguments = {sourceOf<Number>(p.points, p.grid, p.dropped), p.out.data,
                                       count, coherent};
    const cudaError_t first =
        launchBlocks(clearCells<Number, Cell>, &arguments, blocksFor(count, kThreads * 16, device),
                     kThreads, device, stream);
    if (first != cudaSuccess) return first;
    return launchBlocks(addPoints<Loader, Cell, true>, &arguments,
                        blocksFor(p.points.total(), kThreads * kPoints, device), kThreads, device,
                        stream);
  });
}

template <class Cell>
cudaError_t launchCells(const VoxelizeProblem& p, void* scratch, const LaunchDevice& device,
                        cudaStream_t stream) {
  if (suitsBins(p, device)) return launchBins<Cell>(p, scratch, device, stream);
  const cudaError_t error = clearCounts(p.dropped, p.points.clouds, device, stream);
  if (error != cudaSuccess) return error;
  return launchDirect<Cell>(p, scratch, device, stream);
}

// ---- features -----------------------------------------------------------------------------------

struct FillArguments {
  void* data;
  int64_t stride[5];
  VoxelPlaces places;
  int64_t features;
  int64_t count;  // elements
  uint64_t bits;
  bool contiguous;
};

template <class Element>
__global__ void __launch_bounds__(kThreads) fillGrid(const __grid_constant__ FillArguments a) {
  waitForLaunchesAhead();
  const auto value = elementOf<Element>(a.bits);
  auto* data = static_cast<Element*>(a.data);
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = thread; i < a.count; i += threads) {
    int64_t offset = i;
    if (!a.contiguous) {
      const int64_t key = i / a.features;
      const VoxelPlace at = a.places(key);
      offset = at.cloud * a.stride[0] + at.x * a.stride[1] + at.y * a.stride[2] +
               at.z * a.stride[3] + (i - key * a.features) * a.stride[4];
    }
    data[offset] = value;
  }
}

cudaError_t launchFill(const VoxelizeProblem& p, const LaunchDevice& device, cudaStream_t stream) {
  FillArguments arguments = {p.out.data,   {},  VoxelPlaces(p.grid), p.features.count, 0,
                             p.empty_bits, true};
  const int64_t extent[] = {p.points.clouds, p.grid.shape[0], p.grid.shape[1], p.grid.shape[2],
                            p.features.count};
  int64_t compact = 1;
  for (int i = 4; i >= 0; --i) {
    arguments.stride[i] = p.out.stride[i];
    arguments.contiguous &= extent[i] == 1 || p.out.stride[i] == compact;
    compact *= extent[i];
  }
  arguments.count = compact;
  if (compact == 0) return cudaSuccess;
  if (arguments.contiguous && p.empty_bits == 0) {
    const auto bytes = static_cast<size_t>(compact) * static_cast<size_t>(sizeOf(p.out.dtype));
    return cudaMemsetAsync(p.out.data, 0, bytes, stream);
  }
  return visitFloat(p.out.dtype, [&](auto tag) {
    return launchBlocks(fillGrid<typename decltype(tag)::type>, &arguments,
                        blocksFor(compact, kThreads * 4, device), kThreads, device, stream);
  });
}

struct FeatureParts {
  PointGrouping grouping;
  VoxelReduction reduction;

  FeatureParts(const VoxelizeProblem& p, ScratchCutter* cutter)
      : grouping(p.points, p.grid, p.dropped, false, cutter),
        reduction(p.points, p.features, p.mode, cutter) {}
};

cudaError_t launchFeatures(const VoxelizeProblem& p, void* scratch, const LaunchDevice& device,
                           cudaStream_t stream) {
  ScratchCutter cutter(scratch);
  const FeatureParts parts(p, &cutter);
  cudaError_t error = parts.grouping.launch(device, stream);
  if (error == cudaSuccess) error = launchFill(p, device, stream);
  if (error != cudaSuccess) return error;
  const VoxelTarget target = {p.out.data,
                              p.out.dtype,
                              {p.out.stride[0], p.out.stride[1], p.out.stride[2], p.out.stride[3]},
                              p.out.stride[4],
                              true,
                              VoxelPlaces(p.grid),
                              nullptr,
                              0};
  return parts.reduction.launch(parts.grouping.groups(), target, device, stream);
}

}  // namespace

size_t voxelizeScratchBytes(const VoxelizeProblem& p, const LaunchDevice& device) {
  if (reducesFeatures(p.mode)) {
    ScratchCutter cutter(nullptr);
    const FeatureParts parts(p, &cutter);
    return cutter.used();
  }
  if (suitsBins(p, device)) return voxelBinsScratchBytes(p, device);
  return takesCells(p) ? 0 : static_cast<size_t>(cellsOf(p)) * cellBytes(p);
}

cudaError_t launchVoxelize(const VoxelizeProblem& p, void* scratch, const LaunchDevice& device,
                           cudaStream_t stream) {
  if (!reducesFeatures(p.mode)) {
    return p.mode == VoxelMode::kOccupancy ? launchCells<uint8_t>(p, scratch, device, stream)
                                           : launchCells<uint32_t>(p, scratch, device, stream);
  }
  const cudaError_t error = clearCounts(p.dropped, p.points.clouds, device, stream);
  return error != cudaSuccess ? error : launchFeatures(p, scratch, device, stream);
}

}  // namespace rbc
