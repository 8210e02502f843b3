// Occupancy and counts by bins: atomics on a grid in memory are many times slower than the points
// can be read, so they are done in shared memory.
//
// The voxels are divided into bins of neighbours, as large as shared memory allows. One launch
// sorts each tile of points by bin, in shared memory, and writes for each point its place in the
// bin (two bytes) and for each tile where its bins begin. In the next launch a block processes a
// bin: it gathers the bin's points from all tiles, counts them in shared memory, and writes the
// bin's part of the output once. A bin with many more points than others is split by tiles into
// parts, whose cells a last launch adds. Nothing depends on the order of threads.
//
// Points in the order of a scanner fall into few voxels, which stay in the caches: for those it is
// faster to add to the grid directly. So some of the points are sampled first, and if the output
// allows it, both ways are launched, and the wrong one returns at once.

#include "points/voxel_bins.h"

#include <cub/block/block_scan.cuh>

#include "points/count_bins.cuh"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace {

using namespace bins;

// ---- points into bins ---------------------------------------------------------------------------

template <class Number>
struct BinArguments {
  PointSource<Number> source;
  Bins bins;
  BinScratch scratch;
  bool sampled;
  int word_log2;  // cells of 32 bytes
};

// Clears the counters of the next launch. If sampled, counts the distinct words of the grid among
// consecutive points, by a hash with enough bits to make collisions rare. Few blocks: one per
// multiprocessor.
template <class Loader>
__global__ void __launch_bounds__(kSampleThreads, 1)
    prepareBins(const __grid_constant__ BinArguments<typename Loader::Number> a) {
  constexpr int kHashBits = 15;
  __shared__ uint32_t seen[(1 << kHashBits) / kWarp];
  __shared__ Sample sample;
  const auto thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < (1 << kHashBits) / kWarp; i += kSampleThreads) seen[i] = 0;
  if (thread == 0) sample = {0, 0};
  waitForLaunchesAhead();
  letNextLaunchBegin();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kSampleThreads + thread;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kSampleThreads;
  for (int64_t i = first; i < a.bins.count + 3; i += threads) a.scratch.totals[i] = 0;
  PointSource<typename Loader::Number> source = a.source;
  if (source.dropped != nullptr) {
    for (int64_t b = first; b < source.clouds.clouds; b += threads) {
      source.dropped[b * source.dropped_stride] = 0;
    }
  }
  if (!a.sampled) return;
  __syncthreads();
  const int64_t begin = source.total / kSamples * blockIdx.x / kPoints * kPoints;
  source.dropped = nullptr;  // they are counted later
  DropCounter drops(source);
  int32_t keys[kPoints];
  loadKeys<Loader>(source, begin + thread * kPoints, keys, &drops);
  uint32_t points = 0;
  uint32_t different = 0;
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    if (keys[k] < 0) continue;
    const uint32_t hash = (static_cast<uint32_t>(keys[k]) >> a.word_log2) * 2654435761u;
    const uint32_t at = hash >> (32 - kHashBits);
    const uint32_t bit = 1u << at % kWarp;
    ++points;
    if ((atomicOr(&seen[at / kWarp], bit) & bit) == 0) ++different;
  }
  atomicAdd(&sample.points, points);
  atomicAdd(&sample.different, different);
  __syncthreads();
  if (thread == 0) a.scratch.samples[blockIdx.x] = sample;
}

// The verdict of all samples; by all threads of a block.
__device__ bool foundCoherent(const Sample* samples) {
  __shared__ bool coherent;
  if (threadIdx.x < kWarp) {
    uint32_t points = 0;
    uint32_t different = 0;
    for (int i = static_cast<int>(threadIdx.x); i < kSamples; i += kWarp) {
      points += samples[i].points;
      different += samples[i].different;
    }
    points = __reduce_add_sync(~0u, points);
    different = __reduce_add_sync(~0u, different);
    if (threadIdx.x == 0) coherent = different < points / 2;
  }
  __syncthreads();
  return coherent;
}

// Lists the parts of each bin, one after the other; by the last block of binPoints, one bin per
// thread.
template <class Scan, class Storage>
__device__ void planUnits(const Bins& bins, const BinScratch& s, Storage& storage) {
  const auto bin = static_cast<int>(threadIdx.x);
  int parts = 0;
  if (bin < bins.count) {
    const int64_t wanted = __ldcg(&s.totals[bin]) / bins.part_points + 1;
    parts = static_cast<int>(wanted < kMaxParts ? wanted : kMaxParts);
  }
  uint32_t first;
  uint32_t slot;
  uint32_t total;
  Scan(storage).ExclusiveSum(static_cast<uint32_t>(parts), first, total);
  __syncthreads();
  Scan(storage).ExclusiveSum(parts > 1 ? static_cast<uint32_t>(parts) : 0, slot);
  for (int part = 0; part < parts; ++part) {
    const Unit unit = {bin, part, parts, static_cast<int32_t>(slot)};
    s.units[first + part] = unit;
    if (parts > 1) s.cuts[slot + part] = unit;
  }
  if (bin == kMaxBins - 1) {
    *s.units_used = total;
    *s.cuts_used = slot + (parts > 1 ? static_cast<uint32_t>(parts) : 0);
  }
}

// The bins of a tile's points, side by side in `staged`; the thread's bin begins at *begin, and
// there are *kept points in total. Everything is unrolled: the more loads are in flight the better.
// `within` holds the index of each point in its bin, to save registers.
template <class Loader, class Scan, class Source, class Storage>
__device__ void sortTile(const Source& source, const Bins& bins, int64_t tile, uint32_t* begins,
                         uint2* within, uint16_t* staged, DropCounter<Source>* drops,
                         Storage& storage, uint32_t* begin, uint32_t* kept) {
  const auto thread = static_cast<int>(threadIdx.x);
  begins[thread] = 0;
  __syncthreads();
  const int64_t first = tile * kTile + thread * kPoints;
  int32_t keys[kGroups][kPoints];
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    loadKeys<Loader>(source, first + g * kBinThreads * kPoints, keys[g], drops);
    uint32_t at[kPoints] = {};
    uint32_t run = 1;  // of neighbours in one bin
#pragma unroll
    for (int k = 0; k < kPoints; ++k, ++run) {
      const int bin = keys[g][k] >> bins.shift;  // -1 for none
      if (k + 1 < kPoints && keys[g][k + 1] >> bins.shift == bin) continue;
      if (bin >= 0) {
        const uint32_t end = atomicAdd(&begins[bin], run) + run;
#pragma unroll
        for (int j = 0; j <= k; ++j) {
          if (static_cast<uint32_t>(k - j) < run) at[j] = end - static_cast<uint32_t>(k - j) - 1;
        }
      }
      run = 0;
    }
    within[g * kBinThreads + thread] = make_uint2(at[0] | at[1] << 16, at[2] | at[3] << 16);
  }
  __syncthreads();
  Scan(storage).ExclusiveSum(begins[thread], *begin, *kept);
  begins[thread] = *begin;
  __syncthreads();

  const auto place = static_cast<uint32_t>(bins.cells() - 1);
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const uint2 pairs = within[g * kBinThreads + thread];
#pragma unroll
    for (int k = 0; k < kPoints; ++k) {
      const int32_t key = keys[g][k];
      if (key < 0) continue;
      const uint32_t pair = k < 2 ? pairs.x : pairs.y;
      const uint32_t at = begins[key >> bins.shift] + (pair >> k % 2 * 16 & 0xffff);
      staged[at] = static_cast<uint16_t>(static_cast<uint32_t>(key) & place);
    }
  }
  __syncthreads();
}

// Blocks per multiprocessor: as many as the registers allow.
template <class Loader>
constexpr int kBinBlocks = Loader::kWords ? 2 : 1;

template <class Loader>
__global__ void __launch_bounds__(kBinThreads, kBinBlocks<Loader>)
    binPoints(const __grid_constant__ BinArguments<typename Loader::Number> a) {
  using Scan = cub::BlockScan<uint32_t, kBinThreads>;
  __shared__ alignas(16) uint16_t staged[kTile];
  __shared__ uint2 within[kTile / kPoints];  // the index of each point in its bin, in 16 bits
  __shared__ uint32_t tile_begins[kMaxBins];
  __shared__ uint16_t begins[kMaxBins + 1][kMaxRun];
  __shared__ typename Scan::TempStorage scan;
  __shared__ bool last;
  const Bins& bins = a.bins;
  const BinScratch& s = a.scratch;
  const auto thread = static_cast<int>(threadIdx.x);
  waitForLaunchesAhead();
  if (a.sampled) {
    const bool coherent = foundCoherent(s.samples);
    if (blockIdx.x == 0 && thread == 0) *s.coherent = coherent ? 1 : 0;
    if (coherent) return;
  }

  DropCounter drops(a.source);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * bins.run;
  const auto run = static_cast<int>(min(static_cast<int64_t>(bins.run), bins.tiles - first));
  for (int t = 0; t < run; ++t) {
    uint32_t begin;
    uint32_t kept;
    sortTile<Loader, Scan>(a.source, bins, first + t, tile_begins, within, staged, &drops, scan,
                           &begin, &kept);
    begins[thread][t] = static_cast<uint16_t>(begin);
    if (thread == kMaxBins - 1) begins[kMaxBins][t] = static_cast<uint16_t>(kept);
    auto* out = reinterpret_cast<uint4*>(s.staged + (first + t) * kTile);
    for (int i = thread; i * 8 < static_cast<int>(kept); i += kBinThreads) {
      out[i] = reinterpret_cast<const uint4*>(staged)[i];
    }
    __syncthreads();
  }

  // Unused entries after the last bin get the end of the points.
  for (int i = thread; i < (bins.count + 1) * run; i += kBinThreads) {
    s.begins[i / run * bins.tiles + first + i % run] = begins[i / run][i % run];
  }
  drops.finish();
  uint32_t total = 0;
  for (int t = 0; t < run; ++t) total += begins[thread + 1][t] - begins[thread][t];
  if (total > 0) atomicAdd(&s.totals[thread], total);
  __threadfence();
  __syncthreads();
  if (thread == 0) last = atomicAdd(s.done, 1u) == gridDim.x - 1;
  __syncthreads();
  if (last) planUnits<Scan>(bins, s, scan);
}

// ---- launches -----------------------------------------------------------------------------------

template <class Cell, class Element>
cudaError_t launchCells(const VoxelizeProblem& p, const Bins& bins, const BinScratch& scratch,
                        bool sampled, const LaunchDevice& device, cudaStream_t cuda_stream) {
  CellArguments arguments = {bins, scratch, cellOutputOf(p), sampled};
  const int64_t units = bins.count + bins.most_parts;
  const int bytes = bins.cells() * static_cast<int>(sizeof(Cell));
  const cudaError_t error = launchBlocks(countCells<Cell, Element>, &arguments, units,
                                         kCountThreads, device, cuda_stream, bytes);
  if (error != cudaSuccess || bins.most_parts == 0) return error;
  return launchBlocks(addParts<Cell, Element>, &arguments, bins.most_parts, kCountThreads, device,
                      cuda_stream, bytes / 2);
}

template <class Cell>
cudaError_t launch(const CellChoice& choice, const VoxelizeProblem& p, void* memory,
                   const int32_t** coherent, const LaunchDevice& device, cudaStream_t cuda_stream) {
  const Bins& bins = choice.bins;
  ScratchLayout cutter(memory);
  const BinScratch scratch = cut<Cell>(&cutter, bins);
  const cudaError_t error = visitLoader(p.points, [&](auto tag) {
    using Loader = typename decltype(tag)::type;
    using Number = typename Loader::Number;
    BinArguments<Number> arguments = {sourceOf<Number>(p.points, p.grid, p.dropped), bins, scratch,
                                      coherent != nullptr, sizeof(Cell) == 1 ? 5 : 3};
    if (coherent != nullptr) *coherent = scratch.coherent;
    const cudaError_t first = launchBlocks(prepareBins<Loader>, &arguments, kSamples,
                                           kSampleThreads, device, cuda_stream);
    if (first != cudaSuccess) return first;
    return launchBlocks(binPoints<Loader>, &arguments, choice.grid, choice.threads, device,
                        cuda_stream);
  });
  if (error != cudaSuccess) return error;
  return visitCellElement(p.out.dtype, [&](auto tag) {
    using Element = typename decltype(tag)::type;
    return launchCells<Cell, Element>(p, bins, scratch, coherent != nullptr, device, cuda_stream);
  });
}

// Sets the most dynamic shared memory that a launch may request: once, and the same for all
// contexts, as they share the setting.
template <class Arguments>
cudaError_t allowShared(void (*kernel)(Arguments), int bytes) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

template <class Cell>
cudaError_t allowCells(Reduction mode, const LaunchDevice& device) {
  const int bytes = static_cast<int>(sizeof(Cell)) << mostShift(mode, device);
  return forEachCellElement([&](auto tag) {
    using Element = typename decltype(tag)::type;
    const cudaError_t error = allowShared(countCells<Cell, Element>, bytes);
    return error != cudaSuccess ? error : allowShared(addParts<Cell, Element>, bytes);
  });
}

}  // namespace

size_t voxelBinsScratchBytes(const CellChoice& choice, Reduction mode) {
  ScratchLayout cutter(nullptr);
  if (mode == Reduction::kOccupancy) {
    cut<uint8_t>(&cutter, choice.bins);
  } else {
    cut<uint32_t>(&cutter, choice.bins);
  }
  return cutter.used();
}

cudaError_t launchVoxelBins(const CellChoice& choice, const VoxelizeProblem& p, void* scratch,
                            const int32_t** coherent, const LaunchDevice& device,
                            cudaStream_t cuda_stream) {
  return p.mode == Reduction::kOccupancy
             ? launch<uint8_t>(choice, p, scratch, coherent, device, cuda_stream)
             : launch<uint32_t>(choice, p, scratch, coherent, device, cuda_stream);
}

cudaError_t loadVoxelBins(const LaunchDevice& device) {
  cudaError_t error = loadKernelsBeside(countCells<uint8_t, uint8_t>);
  if (error == cudaSuccess) error = allowCells<uint8_t>(Reduction::kOccupancy, device);
  if (error == cudaSuccess) error = allowCells<uint32_t>(Reduction::kCount, device);
  return error;
}

}  // namespace rbc::cuda
