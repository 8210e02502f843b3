// Conversion of rotations as plain numbers: the input of a backend.
#pragma once

#include "dtype.h"
#include "real.h"
#include "rotation.h"

namespace rbc {

// Rotations of one side; strides are in elements.
struct RotationArray {
  void* data;  // only `out` is written
  DType dtype;
  int32_t channels;
  int64_t channel_stride;
  int64_t stride[RBC_TENSOR_MAX_NDIM];  // of the dimensions before the channels

  // Whether they are contiguous.
  RBC_HD bool compact(int ndim) const {
    return channel_stride == 1 && ndim <= 1 && (ndim == 0 || stride[0] == channels);
  }
};

struct RotationProblem {
  RotationFormat source;
  RotationFormat target;
  RotationArray in;
  RotationArray out;
  int64_t count;
  // Dimensions before the channels; dimensions that adjoin in both arrays are merged.
  int32_t ndim;
  int64_t shape[RBC_TENSOR_MAX_NDIM];
};

// Where a rotation begins in the arrays, in elements.
struct RotationPlace {
  int64_t in;
  int64_t out;
};

RBC_HD RotationPlace placeOf(const RotationProblem& p, int64_t i) {
  RotationPlace place = {0, 0};
  for (int axis = p.ndim - 1; axis > 0; --axis) {
    const int64_t rest = i / p.shape[axis];
    const int64_t at = i - rest * p.shape[axis];
    place.in += at * p.in.stride[axis];
    place.out += at * p.out.stride[axis];
    i = rest;
  }
  if (p.ndim > 0) {
    place.in += i * p.in.stride[0];
    place.out += i * p.out.stride[0];
  }
  return place;
}

inline constexpr int kMaxRotationChannels = 9;

// Loads a rotation as f64; numbers are `stride` elements apart.
template <class Storage>
RBC_HD void loadRotation(const void* data, int64_t begin, int64_t stride, int channels,
                         double (&to)[kMaxRotationChannels]) {
  const auto* from = static_cast<const Storage*>(data) + begin;
  for (int i = 0; i < kMaxRotationChannels; ++i) {
    if (i < channels) to[i] = static_cast<double>(widen(from[i * stride]));
  }
}

template <class Storage>
RBC_HD void storeRotation(const double (&from)[kMaxRotationChannels], void* data, int64_t begin,
                          int64_t stride, int channels) {
  auto* to = static_cast<Storage*>(data) + begin;
  for (int i = 0; i < kMaxRotationChannels; ++i) {
    if (i < channels) to[i * stride] = narrow<Storage>(from[i]);
  }
}

}  // namespace rbc
