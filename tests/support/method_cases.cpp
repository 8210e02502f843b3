// The resampling cases of every method, of groups of channels, and of the steps after
// interpolation.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/resample_table.h"

namespace support {

std::vector<ResampleCase> methodCases() {
  detail::ResampleTable add{{}, 1001};
  for (const int32_t method :
       {RBC_METHOD_CUBIC, RBC_METHOD_PCHIP, RBC_METHOD_SLERP, RBC_METHOD_ANGLE}) {
    const std::string name = methodName(method);
    for (const rbcDType dtype : kFloatDTypes) {
      for (const TimePattern pattern : kTimePatterns) {
        add(name + " " + nameOf(dtype), [&](auto& c) {
          c.method = method;
          c.channels = 12;
          c.values = c.out = dtype;
          c.pattern = pattern;
          c.order = QueryOrder::kRandom;
          c.queries = 60;
          c.times = same(dtype, kF64) ? kF64 : kF32;
        });
      }
      for (const rbcDType out : kFloatDTypes) {
        if (same(dtype, out)) continue;
        add(name + " " + nameOf(dtype) + " to " + nameOf(out), [&](auto& c) {
          c.method = method;
          c.channels = 20;
          c.values = dtype;
          c.out = out;
        });
      }
      add(name + " " + nameOf(dtype) + " special values", [&](auto& c) {
        c.method = method;
        c.channels = 16;
        c.values = c.out = dtype;
        c.specials = true;
        c.order = QueryOrder::kAtSamples;
      });
    }
    for (const rbcDType dtype : kTimeDTypes) {
      add(name + " times " + nameOf(dtype), [&](auto& c) {
        c.method = method;
        c.channels = 8;
        c.times = dtype;
        c.pattern = TimePattern::kDuplicates;
        c.order = QueryOrder::kAtSamples;
        c.queries = 90;
      });
      add(name + " max_gap " + nameOf(dtype), [&](auto& c) {
        c.method = method;
        c.channels = 8;
        c.times = dtype;
        c.max_gap = 2.5;
        c.fill_value = -3;
        c.pattern = TimePattern::kGaps;
        c.order = QueryOrder::kRandom;
      });
    }
    // Rows without a neighbour on one side or the other.
    for (const int64_t samples : {0, 1, 2, 3, 4}) {
      for (const int32_t outside : {RBC_OUTSIDE_HOLD, RBC_OUTSIDE_FILL}) {
        add(name + " of " + std::to_string(samples) + " samples", [&](auto& c) {
          c.method = method;
          c.channels = 4;
          c.samples = samples;
          c.outside = outside;
          c.fill_value = 9;
          c.order = QueryOrder::kRandom;
        });
      }
    }
    // Widths around vector widths, in the layouts that have separate paths.
    for (const int64_t channels : {1, 3, 4, 8, 15, 16, 17, 32, 36, 64, 100}) {
      if (method == RBC_METHOD_SLERP && channels % 4 != 0) continue;
      for (const Layout layout : {Layout::kContiguous, Layout::kMisaligned, Layout::kStrided}) {
        add(name + " " + std::to_string(channels) + " channels " + nameOf(layout), [&](auto& c) {
          c.method = method;
          c.channels = channels;
          c.samples = 20;
          c.queries = 11;
          c.values_layout = c.out_layout = layout;
        });
      }
    }
    for (const Layout layout : kLayouts) {
      add(name + " layout " + nameOf(layout), [&](auto& c) {
        c.method = method;
        c.channels = 24;
        c.shift = c.scale = true;
        c.everyLayout(layout);
      });
    }
    add(name + " packed", [&](auto& c) {
      c.method = method;
      c.channels = 4;
      c.packed = true;
      c.batch = 9;
    });
    add(name + " for threads", [&](auto& c) {
      c.method = method;
      c.batch = 3;
      c.samples = 200;
      c.queries = 300;
      c.channels = 64;
      c.lengths = true;
    });
  }

  // Angles with a period, on each path of the library: by dtypes, widths, layouts and later steps.
  for (int32_t period = 1; period < kPeriods; ++period) {
    const auto addAngles = [&](const std::string& name, int64_t channels, auto&& edit) {
      add("angle of period " + std::to_string(period) + ", " + name, [&](auto& c) {
        c.setAngles(channels, period);
        c.queries = 60;
        c.order = QueryOrder::kRandom;
        edit(c);
      });
    };
    for (const rbcDType dtype : kFloatDTypes) {
      for (const rbcDType out : kFloatDTypes) {
        for (const int64_t channels : {7, 64}) {
          addAngles(nameOf(dtype) + " to " + nameOf(out), channels, [&](auto& c) {
            c.values = dtype;
            c.out = out;
            c.times = same(dtype, kF64) ? kF64 : kF32;
            c.specials = channels == 7;
            if (channels == 7) c.order = QueryOrder::kAtSamples;
          });
        }
      }
    }
    for (const int64_t channels : {1, 3, 8, 15, 16, 36, 640}) {
      for (const Layout layout : {Layout::kContiguous, Layout::kMisaligned, Layout::kStrided}) {
        addAngles(std::to_string(channels) + " channels " + nameOf(layout), channels, [&](auto& c) {
          c.values_layout = c.out_layout = layout;
          c.shift = c.scale = channels == 36;
          c.missing = channels == 8 ? 0.3 : 0;
        });
      }
    }
  }

  // Integers are converted to floats.
  for (const rbcDType dtype : kIntegerDTypes) {
    for (const rbcDType out : kFloatDTypes) {
      add(nameOf(dtype) + " to " + nameOf(out), [&](auto& c) {
        c.method = RBC_METHOD_PREVIOUS;
        c.values = dtype;
        c.out = out;
        c.channels = 19;
        c.fill_value = -1;
        c.outside = RBC_OUTSIDE_FILL;
      });
      add(nameOf(dtype) + " to " + nameOf(out) + " normalized", [&](auto& c) {
        c.method = RBC_METHOD_NEAREST;
        c.values = dtype;
        c.out = out;
        c.channels = 21;
        c.shift = c.scale = true;
        c.affine = kF64;
      });
    }
  }

  // Invalid quaternions, on each path of the library: by dtypes, widths, layouts and groups.
  const auto addBroken = [&](const std::string& name, auto&& edit) {
    add("slerp of invalid rotations, " + name, [&](auto& c) {
      c.method = RBC_METHOD_SLERP;
      c.no_rotations = 0.15;
      c.fill_value = 7;
      c.channels = 8;
      c.queries = 60;
      c.order = QueryOrder::kAtSamples;
      edit(c);
    });
  };
  for (const rbcDType dtype : kFloatDTypes) {
    for (const rbcDType out : kFloatDTypes) {
      for (const bool affine : {false, true}) {
        addBroken(nameOf(dtype) + " to " + nameOf(out), [&](auto& c) {
          c.values = dtype;
          c.out = out;
          c.shift = c.scale = affine;
          c.times = same(dtype, kF64) ? kF64 : kF32;
        });
      }
    }
  }
  for (const int64_t channels : {4, 12, 16, 20, 36, 100, 640}) {
    for (const Layout layout : {Layout::kContiguous, Layout::kMisaligned, Layout::kStrided}) {
      for (const QueryOrder order : {QueryOrder::kSorted, QueryOrder::kOutside}) {
        addBroken(std::to_string(channels) + " channels " + nameOf(layout), [&](auto& c) {
          c.channels = channels;
          c.no_rotations = 2.0 / static_cast<double>(channels);
          c.values_layout = c.out_layout = c.mask_layout = layout;
          c.order = order;
        });
      }
    }
  }
  // Few queries, so that a row is divided among threads and blocks; at most one quaternion is
  // invalid.
  for (const int64_t channels : {1024, 4096, 16384}) {
    for (const rbcDType dtype : {kF32, kBF16}) {
      for (const bool aligned : {true, false}) {
        addBroken("few queries of " + std::to_string(channels) + " channels", [&](auto& c) {
          c.channels = channels;
          c.no_rotations = 1.5 / static_cast<double>(channels);
          c.values = c.out = dtype;
          c.samples = 9;
          c.queries = 7;
          c.values_layout = aligned ? Layout::kContiguous : Layout::kMisaligned;
        });
      }
    }
  }
  addBroken("without a valid", [](auto& c) { c.mask = false; });
  addBroken("special values", [](auto& c) { c.specials = true; });
  addBroken("ragged", [](auto& c) {
    c.lengths = c.query_lengths = true;
    c.outside = RBC_OUTSIDE_FILL;
    c.max_gap = 1.5;
    c.pattern = TimePattern::kGaps;
  });
  addBroken("in groups", [](auto& c) {
    c.setGroups({{3, RBC_METHOD_LINEAR},
                 {4, RBC_METHOD_SLERP},
                 {1, RBC_METHOD_PREVIOUS},
                 {20, RBC_METHOD_SLERP},
                 {2, RBC_METHOD_ANGLE},
                 {400, RBC_METHOD_SLERP},
                 {2, RBC_METHOD_CUBIC}});
    c.no_rotations = 0.005;
  });

  // Rows so wide, with so few queries, that a GPU's thread processes vectors of different channels
  // at once.
  for (const int32_t method : {RBC_METHOD_LINEAR, RBC_METHOD_SLERP, RBC_METHOD_CUBIC}) {
    add(std::string(methodName(method)) + " of wide rows, normalized", [&](auto& c) {
      c.method = method;
      c.channels = 640;
      c.queries = 200;
      c.shift = c.scale = true;
    });
  }

  for (const int32_t method : kAllMethods) {
    for (const rbcDType dtype : kFloatDTypes) {
      for (const rbcDType affine : {kF32, kF64}) {
        add(std::string(methodName(method)) + " " + nameOf(dtype) + " normalized", [&](auto& c) {
          c.method = method;
          c.channels = 12;
          c.values = c.out = dtype;
          c.shift = c.scale = true;
          c.affine = affine;
          c.outside = RBC_OUTSIDE_FILL;
          c.fill_value = 5;
          c.order = QueryOrder::kAtSamples;
        });
      }
    }
  }
  add("only shift", [](auto& c) { c.shift = true; });
  add("only scale", [](auto& c) { c.scale = true; });
  add("normalized specials", [](auto& c) { c.shift = c.scale = c.specials = true; });
  for (const Layout layout : kLayouts) {
    add(std::string("shift and scale ") + nameOf(layout), [&](auto& c) {
      c.shift = c.scale = true;
      c.affine_layout = layout;
      c.channels = 37;
    });
  }

  // Groups.
  const auto addGroups = [&](const std::string& name,
                             const std::vector<std::pair<int64_t, int32_t>>& sizes, auto&& edit) {
    add(name, [&](auto& c) {
      c.setGroups(sizes);
      edit(c);
    });
  };
  const std::vector<std::pair<int64_t, int32_t>> pose = {
      {3, RBC_METHOD_LINEAR}, {4, RBC_METHOD_SLERP}, {1, RBC_METHOD_PREVIOUS}};
  // Channels of each period, and groups that must not be merged.
  const std::vector<std::pair<int64_t, int32_t>> angles = {
      {2, angleBy(RBC_PERIOD_DEGREES)},
      {3, angleBy(RBC_PERIOD_DEGREES_POSITIVE)},
      {1, angleBy(RBC_PERIOD_RADIANS)},
      {4, angleBy(RBC_PERIOD_RADIANS_POSITIVE)},
      {1, angleBy(RBC_PERIOD_TURNS)},
      {17, angleBy(RBC_PERIOD_TURNS_POSITIVE)},
      {2, RBC_METHOD_LINEAR}};
  const std::vector<std::pair<int64_t, int32_t>> everything = {
      {5, RBC_METHOD_ANGLE}, {8, RBC_METHOD_SLERP},   {3, RBC_METHOD_CUBIC}, {1, RBC_METHOD_NEXT},
      {7, RBC_METHOD_PCHIP}, {2, RBC_METHOD_NEAREST}, {9, RBC_METHOD_LINEAR}};
  for (const rbcDType dtype : kFloatDTypes) {
    for (const rbcDType time : kTimeDTypes) {
      addGroups("pose " + nameOf(dtype), pose, [&](auto& c) {
        c.values = c.out = dtype;
        c.times = time;
        c.pattern = TimePattern::kGaps;
        c.order = QueryOrder::kAtSamples;
        c.max_gap = 2;
        c.tolerance = 0.4;  // only for the gripper
        c.fill_value = 0.25;
      });
      addGroups("angles of all periods " + nameOf(dtype), angles, [&](auto& c) {
        c.values = c.out = dtype;
        c.times = time;
        c.order = QueryOrder::kAtSamples;
      });
      addGroups("all methods " + nameOf(dtype), everything, [&](auto& c) {
        c.values = c.out = dtype;
        c.times = time;
        c.shift = c.scale = true;
        c.order = QueryOrder::kOutside;
        c.pattern = TimePattern::kDuplicates;
        c.outside = RBC_OUTSIDE_EXTRAPOLATE;  // for linear; the others hold
      });
    }
  }
  for (const Layout layout : kLayouts) {
    addGroups(std::string("groups ") + nameOf(layout), everything,
              [&](auto& c) { c.everyLayout(layout); });
  }
  addGroups("groups in reverse", everything, [](auto& c) {
    std::reverse(c.groups.begin(), c.groups.end());
    c.lengths = true;
  });
  addGroups("groups of wide aligned runs",
            {{64, RBC_METHOD_LINEAR}, {64, RBC_METHOD_SLERP}, {64, RBC_METHOD_PREVIOUS}},
            [](auto& c) { c.values = c.out = kBF16; });
  addGroups("one group", {{5, RBC_METHOD_LINEAR}}, [](auto&) {});
  addGroups("integer groups", {{2, RBC_METHOD_NEXT}, {3, RBC_METHOD_NEAREST}}, [](auto& c) {
    c.values = c.out = kU16;
    c.tolerance = 0.5;
  });
  add("256 groups", [](auto& c) {
    std::vector<std::pair<int64_t, int32_t>> sizes;
    for (int i = 0; i < RBC_FUSE_MAX_CHANNEL_GROUPS; ++i) {
      const int32_t method = kAllMethods[i % 8];
      sizes.push_back({method == RBC_METHOD_SLERP ? 4 : 1, method});
    }
    c.setGroups(sizes);
    c.queries = 9;
    c.samples = 12;
    c.order = QueryOrder::kRandom;
  });
  return add.cases;
}

}  // namespace support
