// Converts pixels of a depth image to points. Every step is rounded: see rbcUnproject.
#pragma once

#include "platform.h"
#include "quotient.h"

namespace rbc {

// A camera and its pose.
template <class Number>
struct Pinhole {
  Number focal[2];
  Number centre[2];
  Number pose[3][4];  // rows R | t
};

// The points to keep, and how depth is read.
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

// The point in the world for x, y and z in the camera's frame; returns whether it is kept.
// Comparisons with NaN are false, and no limit is beyond infinity, so that only finite points are
// kept.
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

// The point of a pixel; its ray() is computed for columns and rows. Returns false if there is no
// point.
template <class Number>
RBC_HD bool unproject(const Pinhole<Number>& camera, const DepthRules<Number>& rules, Number depth,
                      Number ray_x, Number ray_y, Number (&point)[3]) {
  const Number z = depth / rules.depth_scale;
  if (!(z > rules.min_depth && z < rules.max_depth)) return false;
  return placeSeen(camera, rules, (ray_x * z) / camera.focal[0], (ray_y * z) / camera.focal[1], z,
                   point);
}

// Reciprocals of the divisors in unproject().
template <class Number>
struct PinholeReciprocals {
  Number focal[2];
  Number depth_scale;
  bool suit;  // whether quotientByProducts() applies, for depths that suit it
};

// Whether |x| is within a factor of 2^20 of 1.
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

// Depths of 0 and less give no point, with either division. For moderate ones every dividend in
// unproject() is 0, or from 2^-83 to 2^65, and the quotients are from 2^-103 to 2^85: rays are
// differences of a multiple of 1/2 below 2^25 and a moderate centre, so they are 0, or at least
// 2^-43 (f64: 2^-72, which is as far from its limits).
template <class Number>
RBC_HD bool suitsProducts(Number depth) {
  return (!(depth > 0)) | ((depth >= Number(0x1p-20)) & (depth <= Number(0x1p20)));
}

// Equal to unproject() bit for bit, where products suit: a division takes a GPU about ten
// instructions and a branch, a CPU one instruction.
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
