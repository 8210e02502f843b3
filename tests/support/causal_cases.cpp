#include "support/causal_cases.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/fuse_table.h"
#include "support/resample_table.h"

namespace support {
namespace {

void lookBack(Random& random, const SharedCase& shared, StreamCase* c) {
  c->arrivals = random.chance(0.8);
  c->delay = random.chance(0.3) ? random.uniform(10, 50) : random.uniform(0, 4);
  c->shared_arrivals = !c->packed && shared.batched && random.chance(0.3);
  if (random.chance(0.5)) c->arrivals_layout = random.pick(kLayouts);
  if (!c->arrivals || random.chance(0.6)) {
    c->setCausal(shared.times, random.chance(0.2) ? kNone : random.uniform(0.1, 6));
  }
  c->in_order = random.chance(0.4);
}

double anyLag(Random& random) { return static_cast<double>(random.below(5) - 1); }

}  // namespace

ResampleCase randomCausalCase(uint64_t seed) {
  ResampleCase c = randomResampleCase(seed);
  Random random(seed + 7000003);
  c.lag = anyLag(random);
  lookBack(random, c, &c);
  return c;
}

FuseCase randomCausalFuseCase(uint64_t seed) {
  FuseCase c = randomFuseCase(seed);
  Random random(seed + 9000011);
  c.lag = anyLag(random);
  for (size_t n = 0; n < c.streams.size(); ++n) {
    if (n == 0 || random.chance(0.7)) lookBack(random, c, &c.streams[n]);
  }
  return c;
}

std::vector<ResampleCase> causalCases() {
  detail::ResampleTable table{{}, 40001};
  const auto add = [&](const std::string& name, auto&& edit) {
    table("arrivals, " + name, [&](auto& c) {
      c.arrivals = true;
      c.channels = 8;
      c.samples = 60;
      c.queries = 90;
      c.lag = 1;
      edit(c);
    });
  };
  for (const int32_t method : kAllMethods) {
    for (const rbcDType times : kTimeDTypes) {
      for (const TimePattern pattern :
           {TimePattern::kJittered, TimePattern::kDuplicates, TimePattern::kGaps}) {
        for (const bool causal : {false, true}) {
          add(methodName(method) + std::string(causal ? ", causal" : ""), [&](auto& c) {
            c.method = method;
            c.times = times;
            c.pattern = pattern;
            c.order = QueryOrder::kAtSamples;
            if (pattern == TimePattern::kGaps) c.max_gap = 4;
            if (causal) c.setCausal(times, pattern == TimePattern::kGaps ? kNone : 2);
          });
        }
      }
    }
    add(std::string("all had arrived, ") + methodName(method), [&](auto& c) {
      c.arrivals = false;
      c.method = method;
      c.missing = 0.3;
      c.setCausal(c.times, 1.5);
    });
    add(std::string("nothing had arrived, ") + methodName(method), [&](auto& c) {
      c.method = method;
      c.delay = 1e6;
      c.fill_value = -3;
      c.setCausal(c.times, kNone);
    });
    // Long enough for minima, with searches across several blocks.
    for (const bool causal : {false, true}) {
      add(std::string("long rows, ") + methodName(method), [&](auto& c) {
        c.method = method;
        c.samples = 9000;
        c.batch = 2;
        c.queries = 40;
        c.channels = 4;
        c.delay = 700;
        c.missing = 0.2;
        if (causal) c.setCausal(c.times, 50);
      });
    }
    add(std::string("wide, ") + methodName(method), [&](auto& c) {
      c.method = method;
      c.values = c.out = kBF16;
      c.channels = 200;
      c.scale = true;
      c.setCausal(c.times, 1);
    });
  }
  for (const int32_t outside : {RBC_OUTSIDE_HOLD, RBC_OUTSIDE_FILL, RBC_OUTSIDE_EXTRAPOLATE}) {
    for (const rbcDType times : kTimeDTypes) {
      for (const int64_t samples : {2, 4, 30}) {
        for (const bool causal : {false, true}) {
          add("at the ends", [&](auto& c) {
            c.outside = outside;
            c.times = times;
            c.samples = samples;
            c.batch = 12;
            c.fill_value = 9;
            c.order = QueryOrder::kOutside;
            if (causal) c.setCausal(times, 0.8);
          });
        }
      }
    }
  }
  for (const Layout layout : kLayouts) {
    add(std::string("arrivals ") + nameOf(layout), [&](auto& c) {
      c.arrivals_layout = layout;
      c.samples = 300;
      c.missing = 0.4;
    });
    add(std::string("everything ") + nameOf(layout), [&](auto& c) {
      c.everyLayout(layout);
      c.arrivals_layout = layout;
      c.method = RBC_METHOD_CUBIC;
      c.setCausal(c.times, kNone);
    });
  }
  for (const bool causal : {false, true}) {
    const auto pair = [&](const std::string& name, auto&& edit) {
      add(name, [&](auto& c) {
        edit(c);
        if (causal) c.setCausal(c.times, 2);
      });
    };
    pair("ragged", [](auto& c) {
      c.lengths = true;
      c.batch = 9;
      c.check_times = true;
    });
    pair("packed", [](auto& c) {
      c.packed = true;
      c.batch = 9;
    });
    pair("packed, long rows", [](auto& c) {
      c.packed = true;
      c.batch = 5;
      c.samples = 1000;
      c.delay = 200;
    });
    pair("the same for all rows", [](auto& c) {
      c.shared_arrivals = true;
      c.samples = 400;
    });
    pair("one row of times for all, arrivals for each", [](auto& c) {
      c.shared_times = true;
      c.samples = 400;
    });
    pair("without batch", [](auto& c) {
      c.batched = false;
      c.batch = 1;
    });
    pair("groups", [](auto& c) {
      c.setGroups({{4, RBC_METHOD_SLERP},
                   {2, RBC_METHOD_NEXT},
                   {3, RBC_METHOD_CUBIC},
                   {3, angleBy(RBC_PERIOD_DEGREES)},
                   {1, RBC_METHOD_PREVIOUS},
                   {2, RBC_METHOD_LINEAR}});
      c.no_rotations = 0.1;
    });
    pair("odd values and queries", [](auto& c) {
      c.specials = true;
      c.times = kF64;
      c.order = QueryOrder::kOutside;
    });
  }
  // Sums with the lag saturate, or lie before or after all arrivals.
  for (const rbcDType times : kTimeDTypes) {
    for (const double lag : {-9e11, -50.0, 50.0, 9e11}) {
      for (const bool causal : {false, true}) {
        add("a far lag", [&](auto& c) {
          c.times = times;
          c.lag = lag;
          c.samples = 300;
          c.order = QueryOrder::kOutside;
          if (causal) c.setCausal(times, 3);
        });
      }
    }
  }
  // Minima pass over what is missing in one row only, although rows share their arrivals.
  for (const bool shared : {false, true}) {
    for (const bool in_runs : {false, true}) {
      add("missing, long rows", [&](auto& c) {
        c.batch = 3;
        c.samples = 5000;
        c.queries = 50;
        c.delay = 300;
        c.missing = 0.9;
        c.in_runs = in_runs;
        c.shared_arrivals = true;
        c.shared_sample_mask = shared;
        c.setCausal(c.times, kNone);
      });
    }
  }
  add("for threads", [](auto& c) {
    c.batch = 5;
    c.samples = 300;
    c.queries = 400;
    c.channels = 96;
    c.setCausal(c.times, 4);
  });
  return table.cases;
}

std::vector<FuseCase> causalFuseCases() {
  detail::FuseTable table{{}, 42001};
  for (const rbcDType out : kFloatDTypes) {
    for (const rbcDType times : kTimeDTypes) {
      for (const QueryOrder order : kQueryOrders) {
        table("arrivals, a robot", [&](auto& c) {
          c.out = out;
          c.times = times;
          c.order = order;
          c.lag = 1;
          Random random(c.seed);
          for (StreamCase& stream : c.streams) lookBack(random, c, &stream);
          c.streams[0].clock_offset = same(times, kI64) ? 0 : 0.5;
          c.streams[0].clock_offset_ticks = same(times, kI64) ? 500000000 : 0;
        });
      }
    }
  }
  // More streams than one launch takes.
  for (const int count : {33, 64}) {
    for (const rbcDType out : {kBF16, kF64}) {
      table("arrivals, many streams", [&](auto& c) {
        c.out = out;
        c.streams = detail::manyStreams(count, kF32, detail::ManyKind::kLines, true);
        c.lag = 2;
        Random random(c.seed);
        for (StreamCase& stream : c.streams) {
          if (random.chance(0.5)) stream.samples = 700;
          if (random.chance(0.8)) lookBack(random, c, &stream);
        }
      });
    }
  }
  return table.cases;
}

}  // namespace support
