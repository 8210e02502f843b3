// Tiles of samples on their way to shared memory, some ahead of the one in use: more bytes than registers
// could wait for.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "statistics/reduce_channels.cuh"
#include "statistics/sample_readers.cuh"

namespace rbc::cuda {
namespace statistics {

// Samples that lie one after the other, in whole words: see isDense().
template <class T>
struct StagedReader : PlainReader<T> {
  using PlainReader<T>::PlainReader;
};

template <class Reader>
inline constexpr bool kIsStaged = false;
template <class T>
inline constexpr bool kIsStaged<StagedReader<T>> = true;

template <class Storage>
class SampleStages {
 public:
  static constexpr int kStages = sizeof(Storage) == 4 ? 3 : 6;
  static constexpr int kWordBytes = 16;
  static constexpr int kWords = kThreads * kBatch * static_cast<int>(sizeof(Storage)) / kWordBytes;
  using Memory = uint4[kStages][kWords];

  __device__ __forceinline__ SampleStages(const Samples& s, Memory& memory, Lanes lanes,
                                          int64_t first_tile, int64_t parts)
      : memory_(memory),
        data_(static_cast<const uint4*>(s.data)),
        words_(lanes.phases * lanes.width * kBatch * static_cast<int>(sizeof(Storage)) /
               kWordBytes),
        stride_(lanes.phases * lanes.width),
        whole_tiles_(s.rows / (lanes.phases * kBatch)),
        next_(first_tile),
        parts_(parts) {
    for (int i = 0; i < kStages - 1; ++i) request();
  }

  // Waits for the next tile and requests another one. All threads of the block take part. False if the
  // tile is not whole, so that it was not requested.
  __device__ __forceinline__ bool advance() {
    const int64_t tile = next_ - (kStages - 1) * parts_;
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();  // everybody's words are there, and nobody uses the tile before
    current_ = current_ + 1 < kStages ? current_ + 1 : 0;
    request();
    return tile < whole_tiles_;
  }

  template <class Number>
  __device__ __forceinline__ void read(Number (&x)[kBatch]) const {
    const auto* tile = reinterpret_cast<const Storage*>(memory_[current_]) + threadIdx.x;
#pragma unroll
    for (int j = 0; j < kBatch; ++j) x[j] = widen(tile[j * stride_]);
  }

  // Before the memory serves something else.
  __device__ __forceinline__ void finish() {
    __pipeline_wait_prior(0);
    __syncthreads();
  }

 private:
  __device__ __forceinline__ void request() {
    if (next_ < whole_tiles_) {
      const uint4* from = data_ + next_ * words_;
      for (int i = static_cast<int>(threadIdx.x); i < words_; i += kThreads) {
        __pipeline_memcpy_async(&memory_[requested_][i], from + i, kWordBytes);
      }
    }
    __pipeline_commit();  // one for each tile, so that those ahead can be counted
    requested_ = requested_ + 1 < kStages ? requested_ + 1 : 0;
    next_ += parts_;
  }

  Memory& memory_;
  const uint4* data_;
  int words_;
  int stride_;
  int64_t whole_tiles_;
  int64_t next_;
  int64_t parts_;
  int requested_ = 0;
  int current_ = kStages - 1;
};

}  // namespace statistics
}  // namespace rbc::cuda
