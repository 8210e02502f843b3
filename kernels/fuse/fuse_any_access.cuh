// How a warp of the kernel of any fusion walks its part of a segment, and reads and writes channels.
#pragma once

#include "fuse/fuse_any_queries.cuh"
#include "real.h"
#include "runtime/aligned_vec.cuh"

namespace rbc::cuda {
namespace any {

inline constexpr int kWarp = 32;

// A warp's part of one segment: `count` queries times `width` vectors.
template <class Form>
struct Part {
  const FuseProblem& problem;
  const StreamTask& task;
  const QuerySlot<Form>* slots;
  bool* masks;      // of the queries: cleared where values turn out to be none
  int64_t channel;  // the first
  int count;
  int width;
};

// Calls visit(query, v, mask) for the lane's items, 32 apart.
template <class Number, class Form, class Visitor>
__device__ __forceinline__ void visitItems(const Part<Form>& part, Visitor&& visit) {
  const auto lane = static_cast<int>(threadIdx.x % kWarp);
  const int width = part.width;
  const int step_queries = kWarp / width;
  const int step_vectors = kWarp - step_queries * width;
  int k = lane / width;
  int v = lane - k * width;
  while (k < part.count) {
    visit(reinterpret_cast<const Query<Number, Form::kMasked>&>(part.slots[k]), v, part.masks + k);
    k += step_queries;
    v += step_vectors;
    if (v >= width) {
      v -= width;
      ++k;
    }
  }
}

// ---- access to channels -------------------------------------------------------------------------

// kElements neighbouring channels at once.
template <class In, class Out, int kElements>
struct VecAccess {
  using Number = Compute<In>;
  using Raw = AlignedVec<In, kElements>;
  static constexpr int kCount = kElements;

  template <class Form>
  __device__ __forceinline__ explicit VecAccess(const Part<Form>&) {}

  __device__ __forceinline__ Raw read(const char* row, int v) const {
    return load<Raw>(row + v * static_cast<int>(sizeof(Raw)));
  }
  static __device__ __forceinline__ Number number(const Raw& raw, int i) {
    return widen(raw.element[i]);
  }
  __device__ __forceinline__ void write(char* row, int v,
                                        const AlignedVec<Out, kCount>& vec) const {
    store(row + v * static_cast<int>(sizeof vec), vec);
  }
};

// A channel of a known dtype and any stride.
template <class In, class Out>
struct SingleAccess {
  using Number = Compute<In>;
  using Raw = AlignedVec<In, 1>;
  static constexpr int kCount = 1;

  template <class Form>
  __device__ __forceinline__ explicit SingleAccess(const Part<Form>& part)
      : in_step(part.task.stream.values_stride[2] * static_cast<int>(sizeof(In))),
        out_step(part.problem.out_stride[2] * static_cast<int>(sizeof(Out))) {}

  __device__ __forceinline__ Raw read(const char* row, int v) const {
    return load<Raw>(row + v * in_step);
  }
  static __device__ __forceinline__ Number number(const Raw& raw, int) {
    return widen(raw.element[0]);
  }
  __device__ __forceinline__ void write(char* row, int v, const AlignedVec<Out, 1>& vec) const {
    store(row + v * out_step, vec);
  }

  const int64_t in_step;  // from channel to channel, in bytes
  const int64_t out_step;
};

// Channels of any dtype that is computed in a type, one by one.
template <class ComputeType, class Out, int kElements>
struct AnyAccess {
  using Number = ComputeType;
  struct Raw {
    Number element[kElements];
  };
  static constexpr int kCount = kElements;

  template <class Form>
  __device__ __forceinline__ explicit AnyAccess(const Part<Form>& part)
      : dtype(part.task.stream.values_dtype),
        in_step(part.task.stream.values_stride[2] * part.task.value_bytes),
        out_step(part.problem.out_stride[2] * static_cast<int>(sizeof(Out))) {}

  __device__ __forceinline__ Raw read(const char* row, int v) const {
    Raw raw;
#pragma unroll
    for (int i = 0; i < kCount; ++i) raw.element[i] = readOne(row + (v * kCount + i) * in_step);
    return raw;
  }
  static __device__ __forceinline__ Number number(const Raw& raw, int i) { return raw.element[i]; }
  __device__ __forceinline__ void write(char* row, int v,
                                        const AlignedVec<Out, kCount>& vec) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      store(row + (v * kCount + i) * out_step, AlignedVec<Out, 1>{{vec.element[i]}});
  }

 private:
  __device__ __forceinline__ Number readOne(const char* at) const {
    switch (dtype) {
#define RBC_CASE(name, storage, code, text)                      \
  case DType::name:                                              \
    if constexpr (std::is_same_v<Compute<storage>, Number>) {    \
      return widen(load<AlignedVec<storage, 1>>(at).element[0]); \
    }                                                            \
    break;
      RBC_DTYPES(RBC_CASE)
#undef RBC_CASE
    }
    return Number(0);
  }

  const DType dtype;
  const int64_t in_step;
  const int64_t out_step;
};

}  // namespace any
}  // namespace rbc::cuda
