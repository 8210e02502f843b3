// The streams that several fusion cases share.
#include "support/fuse_table.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace support {
namespace detail {

std::vector<StreamCase> robotStreams() {
  StreamCase pose;
  pose.samples = 50;
  pose.setGroups({{3, RBC_METHOD_LINEAR}, {4, RBC_METHOD_SLERP}, {1, RBC_METHOD_PREVIOUS}});
  pose.no_rotations = 0.1;
  pose.max_gap = 3;
  pose.tolerance = 1;
  pose.pattern = TimePattern::kGaps;
  StreamCase inertial;
  inertial.samples = 120;
  inertial.channels = 6;
  inertial.method = RBC_METHOD_PCHIP;
  inertial.shift = inertial.scale = true;
  StreamCase features;
  features.samples = 20;
  features.channels = 64;
  features.values = kBF16;
  features.outside = RBC_OUTSIDE_FILL;
  StreamCase contacts;
  contacts.samples = 70;
  contacts.channels = 2;
  contacts.values = kBool;
  contacts.method = RBC_METHOD_PREVIOUS;
  contacts.fill_value = -1;
  contacts.tolerance = 2;
  return {pose, inertial, features, contacts};
}

std::vector<StreamCase> manyStreams(int count, rbcDType dtype, ManyKind kind, bool odd) {
  constexpr int32_t kLines[] = {RBC_METHOD_LINEAR, RBC_METHOD_PREVIOUS, RBC_METHOD_LINEAR,
                                RBC_METHOD_NEAREST, RBC_METHOD_NEXT};
  constexpr int32_t kFormulas[] = {RBC_METHOD_SLERP, RBC_METHOD_LINEAR, RBC_METHOD_ANGLE,
                                   RBC_METHOD_NEXT, RBC_METHOD_LINEAR};
  std::vector<StreamCase> streams(static_cast<size_t>(count));
  for (int n = 0; n < count; ++n) {
    StreamCase& s = streams[static_cast<size_t>(n)];
    s.values = dtype;
    s.method = kind == ManyKind::kLines ? kLines[n % 5] : kFormulas[n % 5];
    if (odd && s.method == RBC_METHOD_SLERP) s.method = RBC_METHOD_ANGLE;
    s.channels = odd ? 1 + n % 7 : 8 * (1 + n % 3);
    s.samples = 5 + 3 * n % 40;
    s.outside = n % 4 == 1 ? RBC_OUTSIDE_FILL : RBC_OUTSIDE_HOLD;
    if (n % 8 == 2) s.outside = s.method == RBC_METHOD_LINEAR ? RBC_OUTSIDE_EXTRAPOLATE : s.outside;
    s.fill_value = n - 4;
    s.lengths = n % 6 == 3;
    s.absent = s.lengths && n % 12 == 9;
    s.packed = n % 6 == 4;
    s.shared_times = n % 6 == 5;
    s.clock_offset = n % 3 == 1 ? 0.004 : 0;
    if (n % 5 == 4) s.max_gap = 1.5;
    if (isStep(s.method) && n % 3 == 0) s.tolerance = 0.5;
    s.shift = kind == ManyKind::kFormulas && n % 5 == 1;
    s.scale = kind == ManyKind::kFormulas && n % 4 == 1;
  }
  return streams;
}

}  // namespace detail
}  // namespace support
