// Copies of strided tensors on the host.

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "ceil_div.h"
#include "runtime/cpu_state.h"
#include "visit_dtype.h"

namespace rbc::cpu {
namespace {

// Smaller copies use one thread: see kThreadBytes in fuse.cpp.
constexpr int64_t kChunkBytes = 1 << 20;

// Two tensors of one shape: extents, and strides in bytes. Extents of 1 are omitted, and dimensions
// that adjoin in both tensors are merged.
struct Copy {
  int ndim = 0;
  int64_t shape[RBC_TENSOR_MAX_NDIM];
  int64_t from[RBC_TENSOR_MAX_NDIM];
  int64_t to[RBC_TENSOR_MAX_NDIM];
};

Copy simplified(const View& source, const View& destination) {
  Copy copy;
  const int64_t size = sizeOf(source.dtype);
  for (int i = 0; i < source.ndim; ++i) {
    if (source.shape[i] == 1) continue;
    const int64_t extent = source.shape[i];
    const int64_t from = source.strides[i] * size;
    const int64_t to = destination.strides[i] * size;
    const int last = copy.ndim - 1;
    if (last >= 0 && copy.from[last] == from * extent && copy.to[last] == to * extent) {
      copy.shape[last] *= extent;
      copy.from[last] = from;
      copy.to[last] = to;
    } else {
      copy.shape[copy.ndim] = extent;
      copy.from[copy.ndim] = from;
      copy.to[copy.ndim++] = to;
    }
  }
  return copy;
}

template <class Word>
void copyLine(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride,
              int64_t count) {
  constexpr int64_t kSize = sizeof(Word);
  if (from_stride == kSize && to_stride == kSize) {
    std::memcpy(to, from, static_cast<size_t>(count * kSize));
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * to_stride, from + i * from_stride, kSize);
}

using CopyLine = void (*)(const std::byte*, int64_t, std::byte*, int64_t, int64_t);

CopyLine copyLineFor(int size) {
  return visitWord(size,
                   [](auto tag) -> CopyLine { return copyLine<typename decltype(tag)::type>; });
}

// Copies dimensions dim .. ndim - 1.
void copyFrom(const Copy& copy, int dim, CopyLine line, const std::byte* from, std::byte* to) {
  if (dim + 1 == copy.ndim) {
    line(from, copy.from[dim], to, copy.to[dim], copy.shape[dim]);
    return;
  }
  for (int64_t i = 0; i < copy.shape[dim]; ++i) {
    copyFrom(copy, dim + 1, line, from + i * copy.from[dim], to + i * copy.to[dim]);
  }
}

}  // namespace

void copy(BackendState& state, const View& source, const View& destination) {
  if (source.count == 0) return;
  const int size = sizeOf(source.dtype);
  const Copy copy = simplified(source, destination);
  const bool compact =
      copy.ndim == 0 || (copy.ndim == 1 && copy.from[0] == size && copy.to[0] == size);
  const int64_t bytes = source.count * size;
  const int64_t chunks = ceilDiv(bytes, kChunkBytes);
  ThreadPool& pool = cpuState(state).pool;
  if (!compact) {  // one thread, interruptible between chunks of the first dimension
    const int64_t extent = copy.shape[0];
    const int64_t slices = ceilDiv(extent, std::min(chunks, extent));
    pool.parallelFor(ceilDiv(extent, slices), 1, [&](int64_t i) {
      Copy slab = copy;
      slab.shape[0] = std::min(slices, extent - i * slices);
      copyFrom(slab, 0, copyLineFor(size), source.data + i * slices * copy.from[0],
               destination.data + i * slices * copy.to[0]);
    });
    return;
  }
  pool.parallelFor(chunks, pool.threads(), [&](int64_t i) {
    const int64_t begin = i * kChunkBytes;
    std::memcpy(destination.data + begin, source.data + begin,
                static_cast<size_t>(std::min(kChunkBytes, bytes - begin)));
  });
}

}  // namespace rbc::cpu
