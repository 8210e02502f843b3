// Pixels of a depth image as points. Every step is rounded: see rbcUnproject.
#pragma once

#include "platform.h"

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

// The point of a pixel, whose ray() is told for columns and rows; false: it is none. Comparisons with
// NaN are false, and no limit is beyond infinity: what is not finite is no point.
template <class Number>
RBC_HD bool unproject(const Pinhole<Number>& camera, const DepthRules<Number>& rules, Number depth,
                      Number ray_x, Number ray_y, Number (&point)[3]) {
  const Number z = depth / rules.depth_scale;
  if (!(z > rules.min_depth && z < rules.max_depth)) return false;
  const Number x = (ray_x * z) / camera.focal[0];
  const Number y = (ray_y * z) / camera.focal[1];
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

}  // namespace rbc
