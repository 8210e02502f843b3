// Occupancy and counts by bins: atomics on a grid in memory are many times slower than the points
// can be read, so they are done in shared memory.
//
// The voxels are cut into bins of neighbours, as large as shared memory has cells. One launch sorts
// each tile of points by bin, in shared memory, and writes down for each point its place in the bin
// (two bytes) and for each tile where its bins begin. The next launch takes a bin a block: it
// gathers the bin's points from all tiles, counts them in shared memory, and writes the bin's part
// of the output once. A bin with many more points than others is cut by tiles into parts, whose cells
// a last launch adds up. Nothing depends on the order of threads.
//
// Points that come as a scanner sees them fall into few voxels, which stay in the caches: for those,
// going straight to the grid is the faster way. So some of the points are looked at first, and where
// the output allows it, both ways are launched, and the wrong one returns at once.

#include "points/voxel_bins.h"

#include <algorithm>
#include <cub/block/block_scan.cuh>

#include "points/dense_output.cuh"
#include "points/points.cuh"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "scratch_layout.h"

namespace rbc::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kBinThreads = 512;
constexpr int kGroups = 4;  // of kPoints a thread
constexpr int kTile = kBinThreads * kGroups * kPoints;
constexpr int kMaxRun = 8;     // tiles of a block
constexpr int kMaxBins = 512;  // one a thread
constexpr int kCellThreads = 1024;
constexpr int kMaxParts = 64;
constexpr int kPlaces = 8;    // in a word
constexpr int kSamples = 64;  // of kSampleThreads * kPoints neighbouring points each
constexpr int kSampleThreads = 256;
static_assert(kMaxBins == kBinThreads);

// Bins of a multiple of 16 cells, so that each begins at a word of any output.
struct Bins {
  int64_t voxels;
  int shift;  // log2 of a bin's cells
  int count;
  int run;  // tiles of a block
  int64_t tiles;
  int64_t part_points;  // a bin with more is cut
  int64_t most_parts;   // of all cut bins

  RBC_HD int cells() const { return 1 << shift; }
  int64_t blocks() const { return (tiles + run - 1) / run; }
};

struct Unit {
  int32_t bin;
  int32_t part;
  int32_t parts;
  int32_t slot;  // of the first part's cells
};

// What a sample of neighbouring points has.
struct Sample {
  uint32_t points;     // in voxels
  uint32_t different;  // words of the grid among them
};

struct BinScratch {
  uint16_t* staged;  // [tiles, kTile]: the places in their bins of a tile's points, bin by bin
  uint16_t* begins;  // [bins + 1, tiles]
  uint32_t* totals;  // [bins]: points; and behind them:
  uint32_t* done;    // [1]: blocks
  uint32_t* units_used;
  uint32_t* cuts_used;
  Unit* units;
  Unit* cuts;       // [most_parts]: those of bins in parts, once more
  void* parts;      // [most_parts, cells]
  Sample* samples;  // [kSamples]
  int32_t* coherent;
};

template <class Cell>
BinScratch cut(ScratchLayout* cutter, const Bins& bins) {
  BinScratch s = {};
  cutter->take(&s.staged, bins.tiles * kTile);
  cutter->take(&s.begins, (bins.count + 1) * bins.tiles);
  cutter->take(&s.totals, bins.count + 3);
  s.done = s.totals + bins.count;
  s.units_used = s.done + 1;
  s.cuts_used = s.units_used + 1;
  cutter->take(&s.units, bins.count + bins.most_parts);
  cutter->take(&s.cuts, bins.most_parts);
  Cell* parts;
  cutter->take(&parts, bins.most_parts * bins.cells());
  s.parts = parts;
  cutter->take(&s.samples, kSamples);
  cutter->take(&s.coherent, 1);
  return s;
}

// What shared memory holds of a bin, and 16 bits tell apart.
int mostShift(VoxelMode mode, const LaunchDevice& device) {
  if (mode == VoxelMode::kOccupancy) return 16;
  return device.block_memory >= 1 << 17 ? 15 : 14;
}

Bins binsOf(const VoxelizeProblem& p, const LaunchDevice& device) {
  constexpr int kFewestCells = 12;  // log2
  constexpr int kWantedBins = 256;
  constexpr int64_t kWantedBlocks = 512;
  constexpr int64_t kWantedParts = 256;
  Bins bins = {};
  bins.voxels = p.points.clouds * p.grid.volume();
  bins.shift = kFewestCells;
  while (bins.voxels >> bins.shift > kWantedBins && bins.shift < mostShift(p.mode, device)) {
    ++bins.shift;
  }
  bins.count = static_cast<int>(((bins.voxels - 1) >> bins.shift) + 1);
  const int64_t points = p.points.total();
  bins.tiles = (points + kTile - 1) / kTile;
  bins.run = static_cast<int>(std::clamp<int64_t>(bins.tiles / kWantedBlocks, 1, kMaxRun));
  bins.part_points = std::max(points / kWantedParts, 2 * points / bins.count);
  bins.most_parts = 2 * (points / bins.part_points);
  return bins;
}

template <class Number>
struct BinArguments {
  PointSource<Number> source;
  Bins bins;
  BinScratch scratch;
  bool sampled;
  int word_log2;  // cells of 32 bytes
};

// Clears what the next launch counts in. If sampled, counts the words of the grid that neighbouring
// points come to, by a hash of as many bits as make collisions rare. Few blocks: one to a
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

// What all samples say together; by all threads of a block.
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

// The parts of each bin, one after the other; by the last block of binPoints, a bin a thread.
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

// The bins of a tile's points, side by side in `staged`; the thread's bin begins at *begin and the
// points are *kept in all. All is unrolled: the more loads are on their way the better. `within` has
// room for which of its bin's points each is, as registers have not.
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

// Blocks of a multiprocessor: as many as the registers suffice for.
template <class Loader>
constexpr int kBinBlocks = Loader::kWords ? 2 : 1;

template <class Loader>
__global__ void __launch_bounds__(kBinThreads, kBinBlocks<Loader>)
    binPoints(const __grid_constant__ BinArguments<typename Loader::Number> a) {
  using Scan = cub::BlockScan<uint32_t, kBinThreads>;
  __shared__ alignas(16) uint16_t staged[kTile];
  __shared__ uint2 within[kTile / kPoints];  // which of its bin's points each is, in 16 bits
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

  // Behind the last bin, those that are not there begin where the points end.
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

// A point in a cell: marks only say that there is one.
__device__ void addPoint(uint8_t* cells, uint16_t place) { cells[place] = 1; }
__device__ void addPoint(uint32_t* cells, uint16_t place) { atomicAdd(&cells[place], 1u); }

__device__ void addCell(uint8_t* cell, uint8_t more) { *cell |= more; }
__device__ void addCell(uint32_t* cell, uint32_t more) { *cell += more; }

struct CellArguments {
  Bins bins;
  BinScratch scratch;
  CellOutput out;
  bool sampled;
};

// Adds those of a word's eight places that lie in begin .. end - 1 of the tile.
template <class Cell>
__device__ __forceinline__ void addWord(const uint4& word, int first, int begin, int end,
                                        Cell* cells) {
  const uint32_t pairs[] = {word.x, word.y, word.z, word.w};
#pragma unroll
  for (int k = 0; k < kPlaces; ++k) {
    if (first + k >= begin && first + k < end) {
      addPoint(cells, static_cast<uint16_t>(pairs[k / 2] >> (k % 2 * 16)));
    }
  }
}

struct Segment {
  int begin;
  int end;
};

// Where the bin's points lie in a tile.
__device__ __forceinline__ Segment segmentOf(const Bins& bins, const BinScratch& s, int bin,
                                             int64_t tile, int64_t end_tile) {
  if (tile >= end_tile) return {0, 0};
  return {__ldg(&s.begins[bin * bins.tiles + tile]),
          __ldg(&s.begins[(bin + 1) * bins.tiles + tile])};
}

// A warp adds the segments that its bin has in up to 32 tiles, of which each lane knows one. Four
// lanes do a short segment, and all loads of a lane are on their way before it uses the first: this
// waits for memory, nothing else.
template <class Cell>
__device__ void addSegments(const Bins& bins, const BinScratch& s, int64_t first_tile, Segment own,
                            Cell* cells) {
  constexpr int kLanes = 4;
  constexpr int kAtOnce = kWarp / kLanes;
  constexpr int kLong = 4 * kLanes * kPlaces;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const auto* words = reinterpret_cast<const uint4*>(s.staged + first_tile * kTile);
  const int words_of_tile = kTile / kPlaces;
  const unsigned is_long = __ballot_sync(~0u, own.end - own.begin > kLong);
  uint4 word[kLanes];
  Segment segment[kLanes];
#pragma unroll
  for (int j = 0; j < kLanes; ++j) {
    const int t = j * kAtOnce + lane / kLanes;
    const int begin = __shfl_sync(~0u, own.begin, t);
    const int end = __shfl_sync(~0u, own.end, t);
    segment[j] = {begin, (is_long >> t & 1) != 0 ? 0 : end};
    const int w = begin / kPlaces + lane % kLanes;
    if (w * kPlaces < segment[j].end) word[j] = __ldg(words + t * words_of_tile + w);
  }
#pragma unroll
  for (int j = 0; j < kLanes; ++j) {
    const int t = j * kAtOnce + lane / kLanes;
    int w = segment[j].begin / kPlaces + lane % kLanes;
    while (w * kPlaces < segment[j].end) {
      addWord(word[j], w * kPlaces, segment[j].begin, segment[j].end, cells);
      w += kLanes;
      if (w * kPlaces < segment[j].end) word[j] = __ldg(words + t * words_of_tile + w);
    }
  }
  for (unsigned rest = is_long; rest != 0; rest &= rest - 1) {
    const int t = __ffs(rest) - 1;
    const int begin = __shfl_sync(~0u, own.begin, t);
    const int end = __shfl_sync(~0u, own.end, t);
    for (int w = begin / kPlaces + lane; w * kPlaces < end; w += kWarp) {
      addWord(__ldg(words + t * words_of_tile + w), w * kPlaces, begin, end, cells);
    }
  }
}

// Where a part of a cut bin leaves its cells.
template <class Cell>
__device__ Cell* partCells(const BinScratch& s, const Bins& bins, const Unit& unit, int part) {
  return static_cast<Cell*>(s.parts) + static_cast<int64_t>(unit.slot + part) * bins.cells();
}

// The cells begin .. end - 1 of a bin, as far as there are voxels.
template <class Element, class Cell>
__device__ void writeBin(const CellArguments& a, int bin, const Cell* cells, int begin, int end) {
  const int64_t key = static_cast<int64_t>(bin) << a.bins.shift;
  const int64_t count = min(static_cast<int64_t>(end), a.bins.voxels - key) - begin;
  if (count > 0) {
    writeCells<Element>(a.out, cells + begin, key + begin, count, threadIdx.x, kCellThreads);
  }
}

// All cells of the output, for those who go straight there; by all blocks together.
template <class Cell>
__device__ void clearCells(const CellArguments& a) {
  constexpr int kPerWord = 16 / sizeof(Cell);
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kCellThreads + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kCellThreads;
  auto* cells = static_cast<Cell*>(a.out.data);
  const int64_t count = a.bins.voxels;
  const int64_t words = reinterpret_cast<uintptr_t>(cells) % 16 == 0 ? count / kPerWord : 0;
  for (int64_t i = thread; i < words; i += threads) {
    reinterpret_cast<uint4*>(cells)[i] = make_uint4(0, 0, 0, 0);
  }
  for (int64_t i = words * kPerWord + thread; i < count; i += threads) cells[i] = 0;
}

template <class Cell, class Element>
__global__ void __launch_bounds__(kCellThreads)
    countCells(const __grid_constant__ CellArguments a) {
  extern __shared__ uint4 memory[];
  auto* cells = reinterpret_cast<Cell*>(memory);
  const Bins& bins = a.bins;
  const int cells_of_bin = bins.cells();
  const auto thread = static_cast<int>(threadIdx.x);
  // Each bin is a unit at least; the blocks past these mostly have nothing to do.
  const bool surplus = blockIdx.x >= bins.count;
  if (surplus) waitForLaunchesAhead();
  if (!surplus || blockIdx.x < *a.scratch.units_used) {
    for (int i = thread; i < cells_of_bin * static_cast<int>(sizeof(Cell)) / 16;
         i += kCellThreads) {
      memory[i] = make_uint4(0, 0, 0, 0);
    }
  }
  waitForLaunchesAhead();
  if (a.sampled && *a.scratch.coherent != 0) {
    clearCells<Cell>(a);
    return;
  }
  if (blockIdx.x >= *a.scratch.units_used) return;
  const Unit unit = a.scratch.units[blockIdx.x];
  __syncthreads();
  const int64_t first = bins.tiles * unit.part / unit.parts;
  const int64_t end = bins.tiles * (unit.part + 1) / unit.parts;
  // Few tiles are shared out among all warps.
  constexpr int kWarps = kCellThreads / kWarp;
  const int64_t share = min(static_cast<int64_t>(kWarp), (end - first + kWarps - 1) / kWarps);
  const int lane = thread % kWarp;
  const auto segmentAt = [&](int64_t tile) {
    return lane < share ? segmentOf(bins, a.scratch, unit.bin, tile + lane, end) : Segment{0, 0};
  };
  int64_t tile = first + thread / kWarp * share;
  Segment next = segmentAt(tile);
  while (tile < end) {
    const Segment own = next;
    const int64_t own_tile = tile;
    tile += kWarps * share;
    next = segmentAt(tile);
    addSegments(bins, a.scratch, own_tile, own, cells);
  }
  __syncthreads();
  if (unit.parts == 1) {
    writeBin<Element>(a, unit.bin, cells, 0, cells_of_bin);
    return;
  }
  auto* part = reinterpret_cast<uint4*>(partCells<Cell>(a.scratch, bins, unit, unit.part));
  for (int i = thread; i < cells_of_bin * static_cast<int>(sizeof(Cell)) / 16; i += kCellThreads) {
    part[i] = memory[i];
  }
}

// For each part of a cut bin, a slice of a multiple of 16 cells is added up and written.
template <class Cell, class Element>
__global__ void __launch_bounds__(kCellThreads) addParts(const __grid_constant__ CellArguments a) {
  extern __shared__ uint4 memory[];
  auto* cells = reinterpret_cast<Cell*>(memory);
  const Bins& bins = a.bins;
  waitForLaunchesAhead();
  if (a.sampled && *a.scratch.coherent != 0) return;
  if (blockIdx.x >= *a.scratch.cuts_used) return;
  const Unit unit = a.scratch.cuts[blockIdx.x];
  const auto* parts = partCells<Cell>(a.scratch, bins, unit, 0);
  const int slice = (bins.cells() / 16 + unit.parts - 1) / unit.parts * 16;
  const int begin = min(bins.cells(), unit.part * slice);
  const int end = min(bins.cells(), begin + slice);
  for (int i = begin + static_cast<int>(threadIdx.x); i < end; i += kCellThreads) {
    Cell cell = 0;
    for (int part = 0; part < unit.parts; ++part) {
      addCell(&cell, parts[i + (part << bins.shift)]);
    }
    cells[i - begin] = cell;
  }
  __syncthreads();
  writeBin<Element>(a, unit.bin, cells - begin, begin, end);
}

template <class Cell, class Element>
cudaError_t launchCells(const VoxelizeProblem& p, const Bins& bins, const BinScratch& scratch,
                        bool sampled, const LaunchDevice& device, cudaStream_t stream) {
  CellArguments arguments = {bins, scratch, cellOutputOf(p), sampled};
  const int64_t units = bins.count + bins.most_parts;
  const int bytes = bins.cells() * static_cast<int>(sizeof(Cell));
  const cudaError_t error = launchBlocks(countCells<Cell, Element>, &arguments, units, kCellThreads,
                                         device, stream, bytes);
  if (error != cudaSuccess || bins.most_parts == 0) return error;
  return launchBlocks(addParts<Cell, Element>, &arguments, bins.most_parts, kCellThreads, device,
                      stream, bytes / 2);
}

template <class Cell>
cudaError_t launch(const VoxelizeProblem& p, void* memory, const int32_t** coherent,
                   const LaunchDevice& device, cudaStream_t stream) {
  const Bins bins = binsOf(p, device);
  ScratchLayout cutter(memory);
  const BinScratch scratch = cut<Cell>(&cutter, bins);
  const cudaError_t error = visitLoader(p.points, [&](auto tag) {
    using Loader = typename decltype(tag)::type;
    using Number = typename Loader::Number;
    BinArguments<Number> arguments = {sourceOf<Number>(p.points, p.grid, p.dropped), bins, scratch,
                                      coherent != nullptr, sizeof(Cell) == 1 ? 5 : 3};
    if (coherent != nullptr) *coherent = scratch.coherent;
    const cudaError_t first =
        launchBlocks(prepareBins<Loader>, &arguments, kSamples, kSampleThreads, device, stream);
    if (first != cudaSuccess) return first;
    return launchBlocks(binPoints<Loader>, &arguments, bins.blocks(), kBinThreads, device, stream);
  });
  if (error != cudaSuccess) return error;
  return visitCellElement(p.out.dtype, [&](auto tag) {
    using Element = typename decltype(tag)::type;
    return launchCells<Cell, Element>(p, bins, scratch, coherent != nullptr, device, stream);
  });
}

// A kernel has to be told of the most dynamic shared memory that a launch may ask for: once, and the
// same for all contexts, as they share the setting.
template <class Arguments>
cudaError_t allowShared(void (*kernel)(Arguments), int bytes) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

template <class Cell>
cudaError_t allowCells(VoxelMode mode, const LaunchDevice& device) {
  const int bytes = static_cast<int>(sizeof(Cell)) << mostShift(mode, device);
  return forEachCellElement([&](auto tag) {
    using Element = typename decltype(tag)::type;
    const cudaError_t error = allowShared(countCells<Cell, Element>, bytes);
    return error != cudaSuccess ? error : allowShared(addParts<Cell, Element>, bytes);
  });
}

}  // namespace

// With fewer, atomics on the grid are as fast.
constexpr int64_t kFewestPoints = 1 << 22;

bool suitsBins(const VoxelizeProblem& p, const LaunchDevice& device) {
  const int64_t voxels = p.points.clouds * p.grid.volume();
  const int64_t points = p.points.total();
  return !reducesFeatures(p.mode) && points >= kFewestPoints && voxels / 16 <= points &&
         voxels <= int64_t{kMaxBins} << mostShift(p.mode, device);
}

size_t voxelBinsScratchBytes(const VoxelizeProblem& p, const LaunchDevice& device) {
  ScratchLayout cutter(nullptr);
  const Bins bins = binsOf(p, device);
  if (p.mode == VoxelMode::kOccupancy) {
    cut<uint8_t>(&cutter, bins);
  } else {
    cut<uint32_t>(&cutter, bins);
  }
  return cutter.used();
}

cudaError_t launchVoxelBins(const VoxelizeProblem& p, void* scratch, const int32_t** coherent,
                            const LaunchDevice& device, cudaStream_t stream) {
  return p.mode == VoxelMode::kOccupancy ? launch<uint8_t>(p, scratch, coherent, device, stream)
                                         : launch<uint32_t>(p, scratch, coherent, device, stream);
}

cudaError_t loadVoxelBins(const LaunchDevice& device) {
  cudaError_t error = loadKernelsBeside(countCells<uint8_t, uint8_t>);
  if (error == cudaSuccess) error = allowCells<uint8_t>(VoxelMode::kOccupancy, device);
  if (error == cudaSuccess) error = allowCells<uint32_t>(VoxelMode::kCount, device);
  return error;
}

}  // namespace rbc::cuda
