// Pixels of a depth image as points. Every step is rounded: see rbcUnproject.
#pragma once

#include "platform.h"
#include "quotient.h"

namespace rbc {

// A camera and where it stands.
template <class Number>
struct Pinhole {
  Number focal[2];
  Number centre[2];
  Number pose[3][4];  // rows R | t
};

// Which points are kept, and how depth is to be read.
template <class Number>
struct DepthRules {
  Number depth_scale;
  Number min_depth;
  Number max_depth;
  Number low[3];
  Number high[3];
  Number pixel_offset;
  bool posed;
};

template <class Number>
RBC_HD Number ray(Number pixel, Number offset, Number centre) {
  return (pixel + offset) - centre;
}

// What the camera sees at x, y and z as a point in the world; whether it is kept. Comparisons with NaN are
// false, and no limit is beyond infinity: what is not finite is no point.
template <class Number>
RBC_HD bool placeSeen(const Pinhole<Number>& camera, const DepthRules<Number>& rules, Number x,
                      Number y, Number z, Number (&point)[3]) {
  point[0] = x, point[1] = y, point[2] = z;
  if (rules.posed) {
    for (int i = 0; i < 3; ++i) {
      const auto& row = camera.pose[i];
      point[i] = ((row[0] * x + row[1] * y) + row[2] * z) + row[3];
    }
  }
  bool inside = true;
  for (int i = 0; i < 3; ++i) {
    inside = inside & (point[i] > rules.low[i]) & (point[i] < rules.high[i]);
  }
  return inside;
}

// The point of a pixel, whose ray() is told for columns and rows; false: it is none.
template <class Number>
RBC_HD bool unproject(const Pinhole<Number>& camera, const DepthRules<Number>& rules, Number depth,
                      Number ray_x, Number ray_y, Number (&point)[3]) {
  const Number z = depth / rules.depth_scale;
  if (!(z > rules.min_depth && z < rules.max_depth)) return false;
  return placeSeen(camera, rules, (ray_x * z) / camera.focal[0], (ray_y * z) / camera.focal[1], z,
                   point);
}

// What unproject() divides by, as reciprocals.
template <class Number>
struct PinholeReciprocals {
  Number focal[2];
  Number depth_scale;
  bool suit;  // quotientByProducts(), for depths that suit them
};

// Within 2^20 of 1, either way.
template <class Number>
RBC_HD bool isModerate(Number x) {
  const Number magnitude = x < 0 ? -x : x;
  return magnitude >= Number(0x1p-20) && magnitude <= Number(0x1p20);
}

template <class Number>
RBC_HD PinholeReciprocals<Number> reciprocalsOf(const Pinhole<Number>& camera,
                                                const DepthRules<Number>& rules) {
  const Number one = 1;
  bool suit = isModerate(rules.depth_scale);
  for (int i = 0; i < 2; ++i) {
    suit = suit && isModerate(camera.focal[i]) &&
           (camera.centre[i] == 0 || isModerate(camera.centre[i]));
  }
  return {{one / camera.focal[0], one / camera.focal[1]}, one / rules.depth_scale, suit};
}

// Depths of 0 and less are no points, however they are divided. Of moderate ones all that unproject()
// divides is 0, or from 2^-83 to 2^65, and its quotients are from 2^-103 to 2^85: rays are differences
// of a multiple of 1/2 below 2^25 and a moderate centre, so they are 0, or 2^-43 at least (f64: 2^-72,
// which is as far from its limits).
template <class Number>
RBC_HD bool suitsProducts(Number depth) {
  return (!(depth > 0)) | ((depth >= Number(0x1p-20)) & (depth <= Number(0x1p20)));
}

// unproject() to the bit, where products suit: a GPU divides by some ten instructions and a branch, a CPU
// by one.
template <class Number>
RBC_HD bool unprojectByProducts(const Pinhole<Number>& camera, const PinholeReciprocals<Number>& by,
                                const DepthRules<Number>& rules, Number depth, Number ray_x,
                                Number ray_y, Number (&point)[3]) {
  const Number z = quotientByProducts(depth, rules.depth_scale, by.depth_scale);
  const Number x = quotientByProducts(ray_x * z, camera.focal[0], by.focal[0]);
  const Number y = quotientByProducts(ray_y * z, camera.focal[1], by.focal[1]);
  return (z > rules.min_depth) & (z < rules.max_depth) & placeSeen(camera, rules, x, y, z, point);
}

}  // namespace rbc
