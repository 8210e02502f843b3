// A point in a truncated signed distance field: the ray from its sensor, the voxels that the ray
// passes, and their observations.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "real.h"
#include "voxel.h"

namespace rbc {

// Observations are added as integers, in any order: weights in quanta of 2^-32, distances times
// weights in quanta of truncation * 2^-32. The sums of 2^31 - 1 points fit in 64 bits.
inline constexpr double kTsdfQuanta = 0x1p32;

// Rounds to the nearest integer; numbers of 24 bits in f32.
template <class Number>
RBC_HD int64_t toQuanta(Number x) {
  return static_cast<int64_t>(x + (x < 0 ? Number(-0.5) : Number(0.5)));
}

// Calls body(axis) for the three axes: unrolled, so that a GPU keeps arrays in registers.
template <class Body>
RBC_HD void forAxes(Body&& body) {
  body(0);
  body(1);
  body(2);
}

// Constants, so that device code can use them too.
template <class Number>
struct Limits {
  static constexpr Number kInfinity = std::numeric_limits<Number>::infinity();
  static constexpr Number kSmallest = std::numeric_limits<Number>::min();  // normal
  static constexpr Number kLargest = std::numeric_limits<Number>::max();
};

// The values that all rays of a call share.
template <class Number>
struct RayField {
  GridOf<Number> grid;
  int32_t extent[3];
  Number truncation;
  Number inverse_truncation;
  bool carve;
  bool inverse_square;
};

// Positions along the ray are distances from the point: negative before it.
template <class Number>
struct TsdfRay {
  Number offset[3];     // the point, relative to the grid's origin
  Number place[3];      // the same in voxels
  Number direction[3];  // of length 1
  Number spacing[3];    // along the ray from one face across an axis to the next; any finite number
  int32_t first[3];     // the voxel in which the ray begins
  Number weight;        // in quanta: an integer from 1 to 2^32
};

// Returns false if the point is dropped.
template <class Number>
RBC_HD bool aim(const RayField<Number>& field, const Number (&point)[3], const Number (&sensor)[3],
                TsdfRay<Number>* ray) {
  constexpr Number kInfinity = Limits<Number>::kInfinity;
  constexpr Number kLargest = Limits<Number>::kLargest;
  const GridOf<Number>& grid = field.grid;

  const Number x = point[0] - sensor[0];
  const Number y = point[1] - sensor[1];
  const Number z = point[2] - sensor[2];
  const Number square = x * x + y * y + z * z;
  if (!(square >= Limits<Number>::kSmallest && square < kInfinity)) return false;
  const Number distance = std::sqrt(square);
  const Number inverse = 1 / distance;
  ray->direction[0] = x * inverse;
  ray->direction[1] = y * inverse;
  ray->direction[2] = z * inverse;

  // The part of the ray inside the box of the grid.
  Number begin = field.carve || distance < field.truncation ? -distance : -field.truncation;
  Number end = field.truncation;
  Number slope[3];  // voxels along each axis per unit of distance
  forAxes([&](int axis) {
    ray->offset[axis] = point[axis] - grid.origin[axis];
    const Number place = ray->place[axis] = ray->offset[axis] / grid.voxel_size[axis];
    slope[axis] = ray->direction[axis] / grid.voxel_size[axis];
    // Parallel to the faces, the next one is as far away as possible; 0 times this is not NaN.
    // (Infinities are not used in comparisons: GCC 13 folds them wrongly.)
    Number spacing = 1 / slope[axis];
    if (!(std::fabs(spacing) <= kLargest)) spacing = slope[axis] < 0 ? -kLargest : kLargest;
    ray->spacing[axis] = spacing;
    const Number low = -place * spacing;
    const Number high = (grid.limit[axis] - place) * spacing;
    const Number enter = spacing < 0 ? high : low;
    const Number leave = spacing < 0 ? low : high;
    if (enter > begin) begin = enter;
    if (leave < end) end = leave;
  });
  if (!(begin <= end)) return false;

  forAxes([&](int axis) {
    // Rounding may move it past the faces.
    const Number from = ray->place[axis] + begin * slope[axis];
    const int32_t last = field.extent[axis] - 1;
    ray->first[axis] = !(from > 0)                  ? 0
                       : !(from < grid.limit[axis]) ? last
                                                    : static_cast<int32_t>(from);
  });
  const Number weight = field.inverse_square ? 1 / square : Number(1);
  const Number quanta = (weight < 1 ? weight : Number(1)) * Number(kTsdfQuanta);
  ray->weight = quanta > 1 ? static_cast<Number>(toQuanta(quanta)) : Number(1);
  return true;
}

// The maximum number of voxels that a ray passes. Along an axis it takes at most the steps that
// lead through the grid. Unless it carves, it also takes at most one step per face within the
// truncation on both sides of the point, plus fewer than 4 due to rounding, if numbers are
// moderate. With e for the relative error of an operation:
// - A step across a face means that (face - place) * spacing < truncation as computed: the face is
// at most truncation / voxel_size * (1 + 12 e) beyond the place.
// - The ray begins at most that far before the place, plus up to 1 voxel since indices are
//   integers, plus e times the place: less than 1 / 2, since aim() drops places beyond 2 * extent.
template <class Number>
int64_t mostVoxels(const RayField<Number>& field) {
  constexpr int32_t kMaxExtent = 1 << 22;
  const auto moderate = [](double x) { return x >= 0x1p-100 && x <= 0x1p100; };
  const auto truncation = static_cast<double>(field.truncation);
  int64_t most = 1;
  for (int axis = 0; axis < 3; ++axis) {
    int64_t steps = field.extent[axis] - 1;
    const auto size = static_cast<double>(field.grid.voxel_size[axis]);
    if (!field.carve && field.extent[axis] <= kMaxExtent && moderate(size) &&
        moderate(truncation)) {
      const double faces = 2 * truncation / size * (1 + 0x1p-16) + 4;
      if (faces < static_cast<double>(steps)) steps = static_cast<int64_t>(faces);
    }
    most += steps;
  }
  return most;
}

// The distance observed at a voxel, times the ray's weight, in quanta.
template <class Number>
RBC_HD int64_t observedDistance(const RayField<Number>& field, const TsdfRay<Number>& ray,
                                const int32_t (&voxel)[3]) {
  Number distance = 0;
  forAxes([&](int axis) {
    const Number centre =
        (static_cast<Number>(voxel[axis]) + Number(0.5)) * field.grid.voxel_size[axis];
    distance += (ray.offset[axis] - centre) * ray.direction[axis];
  });
  Number share = distance * field.inverse_truncation;
  if (!(share < 1)) share = 1;  // NaN too, from numbers that nearly overflow
  if (share < -1) share = -1;
  return toQuanta(share * ray.weight);
}

// Moves from a voxel of the ray to the next one; returns false at the last. Each step is along one
// axis and in one direction, and a step out of the grid ends the walk: for any numbers the walk
// ends, and it visits no voxel twice.
template <class Number>
RBC_HD bool advance(const RayField<Number>& field, const TsdfRay<Number>& ray,
                    int32_t (&voxel)[3]) {
  // Where the ray leaves the voxel across each axis; computed from the face, so that errors do not
  // add up.
  Number next[3];
  forAxes([&](int axis) {
    const int32_t face = voxel[axis] + (ray.spacing[axis] < 0 ? 0 : 1);
    next[axis] = (static_cast<Number>(face) - ray.place[axis]) * ray.spacing[axis];
  });
  const bool first = next[0] <= next[1];
  const Number nearer = first ? next[0] : next[1];
  const bool third = !(nearer <= next[2]);
  const bool steps[3] = {first && !third, !first && !third, third};
  bool goes_on = (third ? next[2] : nearer) < field.truncation;
  forAxes([&](int axis) {
    if (steps[axis]) voxel[axis] += ray.spacing[axis] < 0 ? -1 : 1;
    goes_on &= static_cast<uint32_t>(voxel[axis]) < static_cast<uint32_t>(field.extent[axis]);
  });
  return goes_on;
}

// Calls visit(index, distance) for the voxels that the ray passes, with their places in
// lexicographic order and the observed distances.
template <class Number, class Visitor>
RBC_HD void walk(const RayField<Number>& field, const TsdfRay<Number>& ray, Visitor&& visit) {
  int32_t voxel[3] = {ray.first[0], ray.first[1], ray.first[2]};
  do {
    const int64_t line = int64_t{voxel[0]} * field.extent[1] + voxel[1];
    visit(line * field.extent[2] + voxel[2], observedDistance(field, ray, voxel));
  } while (advance(field, ray, voxel));
}

// The sums of the observations of a voxel, in quanta; without any, the weight is 0.
struct TsdfSums {
  uint64_t distance;  // signed
  uint64_t weight;
};

// Updates the running average with the observations of a call.
RBC_HD void integrate(const TsdfSums& sums, double truncation, double max_weight, float* tsdf,
                      float* weight) {
  const auto before = static_cast<double>(*weight);
  const auto average = static_cast<double>(*tsdf);  // loaded with the weight, needed or not
  const double distance =
      static_cast<double>(static_cast<int64_t>(sums.distance)) * (truncation / kTsdfQuanta);
  const double total = before + static_cast<double>(sums.weight) / kTsdfQuanta;
  const double sum = before != 0 ? average * before + distance : distance;
  *tsdf = narrow<float>(sum / total);
  *weight = narrow<float>(total < max_weight ? total : max_weight);
}

}  // namespace rbc
