// The table of resampling cases.
#include "support/cases.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "support/resample_table.h"

namespace support {

// ---- the rules, layouts and dtypes --------------------------------------------------------------

std::vector<ResampleCase> resampleCases() {
  detail::ResampleTable add;
  for (const rbcDType dtype : kFloatDTypes) {
    add("linear " + nameOf(dtype), [&](auto& c) { c.values = c.out = dtype; });
    add("linear " + nameOf(dtype) + " special values", [&](auto& c) {
      c.values = c.out = dtype;
      c.specials = true;
      c.order = QueryOrder::kAtSamples;
    });
    for (const rbcDType out : kFloatDTypes) {
      if (same(dtype, out)) continue;
      add("linear " + nameOf(dtype) + " to " + nameOf(out), [&](auto& c) {
        c.values = dtype;
        c.out = out;
        c.channels = 19;
      });
    }
  }
  for (const rbcDType dtype : kTimeDTypes) {
    for (const TimePattern pattern : kTimePatterns) {
      add("times " + nameOf(dtype) + " pattern " + std::to_string(static_cast<int>(pattern)),
          [&](auto& c) {
            c.times = dtype;
            c.pattern = pattern;
            c.order = QueryOrder::kAtSamples;
            c.queries = 120;
          });
    }
  }
  for (const int32_t method : {RBC_METHOD_NEAREST, RBC_METHOD_PREVIOUS, RBC_METHOD_NEXT}) {
    const std::string name = "method " + std::to_string(method);
    for (const rbcDType dtype : kTimeDTypes) {
      add(name + " times " + nameOf(dtype), [&](auto& c) {
        c.method = method;
        c.times = dtype;
        c.order = QueryOrder::kAtSamples;
        c.pattern = TimePattern::kDuplicates;
        c.queries = 90;
      });
      add(name + " tolerance " + nameOf(dtype), [&](auto& c) {
        c.method = method;
        c.times = dtype;
        c.tolerance = 0.3;
        c.fill_value = -7;
        c.order = QueryOrder::kAtSamples;
        c.pattern = TimePattern::kGaps;
        c.queries = 90;
      });
    }
    add(name + " max_gap", [&](auto& c) {
      c.method = method;
      c.max_gap = 1.5;
      c.pattern = TimePattern::kGaps;
    });
    add(name + " fill", [&](auto& c) {
      c.method = method;
      c.outside = RBC_OUTSIDE_FILL;
      c.fill_value = 3.5;
      c.order = QueryOrder::kOutside;
    });
    for (const rbcDType dtype : kIntegerDTypes) {
      add(name + " " + nameOf(dtype), [&](auto& c) {
        c.method = method;
        c.values = c.out = dtype;
        c.fill_value = 1;
        c.outside = RBC_OUTSIDE_FILL;
      });
    }
  }
  for (const rbcDType dtype : kTimeDTypes) {
    add("extrapolate " + nameOf(dtype), [&](auto& c) {
      c.times = dtype;
      c.outside = RBC_OUTSIDE_EXTRAPOLATE;
      c.order = QueryOrder::kOutside;
      c.pattern = TimePattern::kDuplicates;
    });
    add("hold outside " + nameOf(dtype), [&](auto& c) {
      c.times = dtype;
      c.order = QueryOrder::kOutside;
      c.pattern = TimePattern::kDuplicates;
    });
    add("max_gap " + nameOf(dtype), [&](auto& c) {
      c.times = dtype;
      c.max_gap = 2.5;
      c.fill_value = std::nan("");
      c.pattern = TimePattern::kGaps;
      c.order = QueryOrder::kRandom;
    });
  }
  for (const int64_t samples : {0, 1, 2}) {
    for (const int32_t outside : {RBC_OUTSIDE_HOLD, RBC_OUTSIDE_FILL, RBC_OUTSIDE_EXTRAPOLATE}) {
      add(std::to_string(samples) + " samples outside " + std::to_string(outside), [&](auto& c) {
        c.samples = samples;
        c.outside = outside;
        c.fill_value = 9;
        c.order = samples == 0 ? QueryOrder::kRandom : QueryOrder::kAtSamples;
      });
    }
  }
  for (const Layout layout : kLayouts) {
    add(std::string("layout ") + nameOf(layout), [&](auto& c) { c.everyLayout(layout); });
    add(std::string("layout ") + nameOf(layout) + " bf16 i64", [&](auto& c) {
      c.everyLayout(layout);
      c.values = c.out = kBF16;
      c.times = kI64;
      c.channels = 33;
      c.method = RBC_METHOD_NEAREST;
    });
    add(std::string("layout ") + nameOf(layout) + " unbatched", [&](auto& c) {
      c.everyLayout(layout);
      c.batched = false;
      c.batch = 1;
    });
  }
  // Widths around vector widths, for every element size.
  for (const int64_t channels : {1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 64, 100}) {
    for (const rbcDType dtype : kFloatDTypes) {
      add(std::to_string(channels) + " channels " + nameOf(dtype), [&](auto& c) {
        c.channels = channels;
        c.values = c.out = dtype;
        c.samples = 20;
        c.queries = 11;
      });
    }
  }
  add("shared times", [](auto& c) { c.shared_times = true; });
  add("shared queries", [](auto& c) { c.shared_queries = true; });
  add("shared times and queries", [](auto& c) { c.shared_times = c.shared_queries = true; });
  add("random queries", [](auto& c) { c.order = QueryOrder::kRandom; });
  add("no mask", [](auto& c) { c.mask = false; });
  add("mask u8", [](auto& c) { c.mask_dtype = kU8; });
  add("one query", [](auto& c) { c.queries = 1, c.batch = 1, c.samples = 500, c.channels = 32; });
  for (const rbcDType index : {kI32, kI64}) {
    add("lengths " + nameOf(index), [&](auto& c) {
      c.lengths = true;
      c.batch = 9;
      c.index_dtype = index;
      c.check_times = true;
    });
    add("lengths and query_lengths " + nameOf(index), [&](auto& c) {
      c.lengths = c.query_lengths = true;
      c.batch = 9;
      c.index_dtype = index;
      c.fill_value = 4;
      c.order = QueryOrder::kRandom;
    });
    add("packed " + nameOf(index), [&](auto& c) {
      c.packed = true;
      c.batch = 9;
      c.index_dtype = index;
      c.query_lengths = true;
      c.check_times = true;
    });
  }
  add("packed with strides", [](auto& c) {
    c.packed = true;
    c.batch = 7;
    c.everyLayout(Layout::kReversed);
  });
  add("special queries",
      [](auto& c) { c.specials = true, c.order = QueryOrder::kOutside, c.times = kF64; });
  add("special queries extrapolate", [](auto& c) {
    c.specials = true;
    c.order = QueryOrder::kOutside;
    c.outside = RBC_OUTSIDE_EXTRAPOLATE;
  });
  // Empty calls succeed and write nothing except, without channels, the mask.
  add("empty batch", [](auto& c) { c.batch = 0; });
  add("no queries", [](auto& c) { c.queries = 0; });
  add("no channels", [](auto& c) { c.channels = 0; });
  // Large enough to be divided among threads.
  add("threads f32",
      [](auto& c) { c.batch = 5, c.samples = 300, c.queries = 400, c.channels = 96; });
  add("threads one row", [](auto& c) {
    c.batch = 1;
    c.samples = 3000;
    c.queries = 4001;
    c.channels = 33;
    c.times = kF64;
  });
  add("threads few wide queries", [](auto& c) {
    c.batch = 1;
    c.samples = 4;
    c.queries = 3;
    c.channels = 40001;
  });
  add("threads wide integers", [](auto& c) {
    c.batch = 1;
    c.samples = 4;
    c.queries = 2;
    c.channels = 90000;
    c.method = RBC_METHOD_NEAREST;
    c.values = c.out = kI64;
  });
  add("threads bf16 ragged", [](auto& c) {
    c.batch = 40;
    c.samples = 200;
    c.queries = 130;
    c.channels = 64;
    c.values = c.out = kBF16;
    c.times = kI64;
    c.lengths = true;
    c.order = QueryOrder::kRandom;
  });
  return add.cases;
}

ResampleCase randomResampleCase(uint64_t seed) {
  Random random(seed + 1000003);
  ResampleCase c;
  static_cast<SharedCase&>(c) = randomShared(random, seed);
  const bool integers = random.chance(0.25);
  static_cast<StreamCase&>(c) = randomStream(random, c, integers);
  if (random.chance(0.6) && !(integers && (c.shift || c.scale))) c.out = c.values;
  return c;
}

// ---- inputs -------------------------------------------------------------------------------------

ResampleInputs makeInputs(const ResampleCase& c) {
  Random random(c.seed);
  ResampleInputs in;
  in.c = c;
  detail::StreamRows rows(1);
  static_cast<StreamInputs&>(in) = detail::makeStream(c, c, random, &rows[0]);
  detail::makeQueries(c, {&c}, rows, random, &in);
  return in;
}

}  // namespace support
