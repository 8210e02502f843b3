#include "overlap.h"
#include "status.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace rbc {
namespace {

struct Axis {
  int64_t stride;  // bytes, positive
  int64_t extent;
};

// The view's axes of more than one element, widest stride first, seen from its lowest byte.
int axesOf(const View& view, Axis (&axes)[RBC_TENSOR_MAX_NDIM]) {
  int count = 0;
  for (int i = 0; i < view.ndim; ++i) {
    if (view.shape[i] > 1) {
      axes[count++] = {std::abs(view.strides[i]) * sizeOf(view.dtype), view.shape[i]};
    }
  }
  std::sort(axes, axes + count, [](const Axis& a, const Axis& b) { return a.stride > b.stride; });
  return count;
}

// Splits off the axes whose stride is at least `period`: their gcd, and the bytes that the rest
// spans.
void fold(const View& view, int64_t period, int64_t* gcd, int64_t* span) {
  Axis axes[RBC_TENSOR_MAX_NDIM];
  const int count = axesOf(view, axes);
  *span = sizeOf(view.dtype);
  for (int i = 0; i < count; ++i) {
    if (axes[i].stride >= period) {
      *gcd = std::gcd(*gcd, axes[i].stride);
    } else {
      *span += (axes[i].extent - 1) * axes[i].stride;
    }
  }
}

// True if both views, folded modulo a common period, stay in separate parts of it.
bool interleaved(const View& a, const View& b, int64_t period) {
  int64_t gcd = 0;
  int64_t span_a = 0;
  int64_t span_b = 0;
  fold(a, period, &gcd, &span_a);
  fold(b, period, &gcd, &span_b);
  if (gcd == 0) return false;
  int64_t distance = (b.begin - a.begin) % gcd;  // they overlap, so it is less than a span
  if (distance < 0) distance += gcd;
  return distance >= span_a && span_b <= gcd - distance;
}

}  // namespace

void requireDistinctElements(const View& output, const char* argument) {
  if (output.count < 2) return;
  Axis axes[RBC_TENSOR_MAX_NDIM];
  const int count = axesOf(output, axes);
  int64_t span = sizeOf(output.dtype);
  for (int i = count - 1; i >= 0; --i) {
    if (axes[i].stride < span) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "%s: elements share memory (shape %s, strides %s), expected distinct ones", argument,
           shapeText(output.ndim, output.shape), shapeText(output.ndim, output.strides));
    }
    span += (axes[i].extent - 1) * axes[i].stride;
  }
}

void requireDisjoint(const View& output, const char* argument, const View& other,
                     const char* other_argument) {
  if (output.count == 0 || other.count == 0) return;
  if (output.end <= other.begin || other.end <= output.begin) return;
  for (const View* view : {&output, &other}) {
    Axis axes[RBC_TENSOR_MAX_NDIM];
    const int count = axesOf(*view, axes);
    for (int i = 0; i < count; ++i) {
      if (axes[i].stride > 0 && interleaved(output, other, axes[i].stride)) return;
    }
  }
  fail(RBC_STATUS_INVALID_ARGUMENT, "%s: overlaps %s, expected memory of its own", argument,
       other_argument);
}

}  // namespace rbc
