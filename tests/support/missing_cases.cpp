// The cases of missing samples.
#include "support/missing_cases.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/fuse_table.h"
#include "support/resample_table.h"

namespace support {

std::vector<ResampleCase> missingCases() {
  detail::ResampleTable table{{}, 30001};
  const auto add = [&](const std::string& name, auto&& edit) {
    table("missing samples, " + name, [&](auto& c) {
      c.missing = 0.3;
      c.channels = 8;
      c.samples = 60;
      c.queries = 90;
      c.order = QueryOrder::kAtSamples;
      edit(c);
    });
  };
  for (const int32_t method : kAllMethods) {
    for (const rbcDType times : kTimeDTypes) {
      for (const TimePattern pattern :
           {TimePattern::kJittered, TimePattern::kDuplicates, TimePattern::kGaps}) {
        add(methodName(method), [&](auto& c) {
          c.method = method;
          c.times = times;
          c.pattern = pattern;
          c.missing = pattern == TimePattern::kGaps ? 0.7 : 0.3;
          if (pattern == TimePattern::kGaps) c.max_gap = 4;
        });
      }
    }
    for (const double missing : {0.5, 0.95, 1.0}) {
      add(std::string("all or nearly all, ") + methodName(method), [&](auto& c) {
        c.method = method;
        c.missing = missing;
        c.samples = 5;
        c.batch = 9;
        c.fill_value = -3;
      });
      add(std::string("in long runs, ") + methodName(method), [&](auto& c) {
        c.method = method;
        c.missing = missing;
        c.samples = 500;
        c.in_runs = true;
        c.shift = true;
      });
    }
    add(std::string("wide, ") + methodName(method), [&](auto& c) {
      c.method = method;
      c.values = c.out = kBF16;
      c.channels = 200;
      c.scale = true;
    });
    add(std::string("many queries, ") + methodName(method), [&](auto& c) {
      c.method = method;
      c.channels = 64;
      c.batch = 5;
      c.samples = 300;
      c.queries = 200;
      c.missing = 0.05;
    });
  }
  for (const int32_t outside : {RBC_OUTSIDE_HOLD, RBC_OUTSIDE_FILL, RBC_OUTSIDE_EXTRAPOLATE}) {
    for (const rbcDType times : kTimeDTypes) {
      for (const int64_t samples : {2, 4, 30}) {
        add("at the ends", [&](auto& c) {
          c.outside = outside;
          c.times = times;
          c.samples = samples;
          c.missing = 0.6;
          c.batch = 12;
          c.fill_value = 9;
          c.order = QueryOrder::kOutside;
          c.pattern = TimePattern::kDuplicates;
        });
      }
    }
  }
  for (const int32_t method : kSteps) {
    add("with a tolerance", [&](auto& c) {
      c.method = method;
      c.tolerance = 0.5;
      c.fill_value = 9;
      c.missing = 0.5;
    });
    for (const rbcDType dtype : kIntegerDTypes) {
      add("integers", [&](auto& c) {
        c.method = method;
        c.values = c.out = dtype;
        c.channels = 5;
      });
    }
  }
  for (const Layout layout : kLayouts) {
    for (const bool runs : {false, true}) {
      add(std::string("valid ") + nameOf(layout), [&](auto& c) {
        c.sample_mask_layout = layout;
        c.in_runs = runs;
        c.samples = 300;
        c.missing = 0.6;
        c.sample_mask_dtype = kU8;
      });
    }
    add(std::string("everything ") + nameOf(layout), [&](auto& c) {
      c.everyLayout(layout);
      c.method = RBC_METHOD_CUBIC;
    });
  }
  for (const bool runs : {false, true}) {
    add("ragged", [&](auto& c) {
      c.lengths = true;
      c.batch = 9;
      c.in_runs = runs;
      c.check_times = true;
    });
    add("packed", [&](auto& c) {
      c.packed = true;
      c.batch = 9;
      c.in_runs = runs;
    });
    add("one valid for all rows", [&](auto& c) {
      c.shared_sample_mask = true;
      c.in_runs = runs;
    });
    add("one row of times for all, a valid for each", [&](auto& c) {
      c.shared_times = true;
      c.in_runs = runs;
    });
    add("without batch", [&](auto& c) {
      c.batched = false;
      c.batch = 1;
      c.in_runs = runs;
    });
  }
  add("for threads", [](auto& c) {
    c.batch = 5;
    c.samples = 300;
    c.queries = 400;
    c.channels = 96;
    c.in_runs = true;
  });
  add("odd values and queries", [](auto& c) {
    c.specials = true;
    c.times = kF64;
    c.order = QueryOrder::kOutside;
  });
  return table.cases;
}

std::vector<FuseCase> missingFuseCases() {
  detail::FuseTable table{{}, 32001};
  const auto add = [&](const std::string& name, auto&& edit) {
    table("missing samples, " + name, [&](auto& c) {
      for (StreamCase& stream : c.streams) stream.missing = 0.3;
      edit(c);
    });
  };
  for (const rbcDType out : kFloatDTypes) {
    for (const rbcDType times : kTimeDTypes) {
      for (const QueryOrder order : kQueryOrders) {
        add("a robot", [&](auto& c) {
          c.out = out;
          c.times = times;
          c.order = order;
        });
      }
    }
  }
  for (size_t other = 0; other < 4; ++other) {
    add("one stream with, the others without", [&](auto& c) {
      for (StreamCase& stream : c.streams) stream.missing = 0;
      c.streams[other].missing = 0.5;
      c.streams[other].in_runs = true;
    });
    add("one stream without, the others with", [&](auto& c) { c.streams[other].missing = 0; });
    add("one stream of only missing samples", [&](auto& c) { c.streams[other].missing = 1; });
  }
  for (const int streams : {2, 8, 9, 17}) {
    for (const bool odd : {false, true}) {
      for (const auto kind : {detail::ManyKind::kLines, detail::ManyKind::kFormulas}) {
        for (const rbcDType dtype : {kF32, kBF16}) {
          add("similar streams", [&](auto& c) {
            c.streams = detail::manyStreams(streams, dtype, kind, odd);
            for (size_t n = 0; n < c.streams.size(); ++n)
              c.streams[n].missing = n % 3 == 2 ? 0 : 0.25;
            c.out = dtype;
            c.batch = 5;
            c.queries = 70;
            c.order = QueryOrder::kRandom;
            c.query_lengths = streams == 8;
          });
        }
      }
    }
  }
  // Lines and angles in widths of whole vectors, which CUDA has kernels for.
  for (const rbcDType out : {kF32, kF16, kBF16}) {
    for (const int32_t method : {RBC_METHOD_LINEAR, RBC_METHOD_ANGLE}) {
      for (const bool affine : {false, true}) {
        add("wide streams", [&](auto& c) {
          c.out = out;
          c.times = kI64;
          c.queries = 300;
          c.streams.assign(3, {});
          for (StreamCase& stream : c.streams) {
            stream.missing = 0.1;
            stream.channels = 64;
            stream.samples = 200;
            stream.method = method;
            stream.shift = affine;
          }
          c.streams[1].method = RBC_METHOD_NEAREST;
          c.streams[1].lengths = true;
          if (method == RBC_METHOD_ANGLE) c.streams[0].setAngles(64, RBC_PERIOD_DEGREES_POSITIVE);
          c.streams[2].packed = true;
        });
      }
    }
  }
  return table.cases;
}

}  // namespace support
