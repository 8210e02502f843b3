// The table of fusion cases, except for cases with many streams.
#include "support/fuse_cases.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "support/fuse_table.h"
#include "support/random.h"

namespace support {

void FuseCase::everyLayout(Layout layout) {
  queries_layout = out_layout = mask_layout = layout;
  if (layout == Layout::kBroadcast) out_layout = mask_layout = Layout::kContiguous;
  for (StreamCase& stream : streams)
    stream.values_layout = stream.times_layout = stream.affine_layout = layout;
}

std::string describe(const FuseCase& c) {
  std::string s = describeShared(c);
  for (size_t n = 0; n < c.streams.size(); ++n)
    s += "; " + std::to_string(n) + ": " + describeStream(c.streams[n]);
  return s;
}

// ---- the table ----------------------------------------------------------------------------------

std::vector<FuseCase> fuseCases() {
  detail::FuseTable add{{}, 2001};
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
  for (const int64_t n : {1, 2, 3, 63, 64}) {
    for (const int64_t channels : {1, 7, 16}) {
      add("a number of streams", [&](auto& c) {
        c.streams.assign(static_cast<size_t>(n), {});
        for (StreamCase& stream : c.streams) stream.channels = channels;
        c.queries = 11;
      });
    }
  }
  // Enough queries that a GPU divides a wide stream's into smaller groups than the others'; these
  // then have none left at the end.
  for (const int64_t narrow : {1, 8}) {
    add("one wide stream among narrow ones", [&](auto& c) {
      c.batch = 4;
      c.queries = 1861;
      c.streams.assign(static_cast<size_t>(narrow + 1), {});
      for (StreamCase& stream : c.streams) stream.channels = 4;
      c.streams[1].channels = 64;
    });
  }
  // One tick of a control loop.
  add("one query", [](auto& c) {
    c.batch = c.queries = 1;
    c.streams.assign(8, {});
    for (StreamCase& stream : c.streams) stream.channels = 7, stream.samples = 100;
  });
  for (const rbcDType out : kFloatDTypes) {
    add("every dtype", [&](auto& c) {
      c.streams.clear();
      c.out = out;
      for (const rbcDType dtype : kFloatDTypes) {
        StreamCase stream;
        stream.values = dtype;
        stream.channels = 4 + static_cast<int64_t>(c.streams.size());
        c.streams.push_back(stream);
      }
      for (const rbcDType dtype : kIntegerDTypes) {
        StreamCase stream;
        stream.values = dtype;
        stream.method = kSteps[c.streams.size() % 3];
        stream.channels = 1 + static_cast<int64_t>(c.streams.size());
        stream.shift = c.streams.size() % 2 == 0;
        stream.fill_value = static_cast<double>(c.streams.size());
        stream.outside = RBC_OUTSIDE_FILL;
        c.streams.push_back(stream);
      }
    });
  }
  for (const int32_t method : kAllMethods) {
    add(std::string("every stream ") + methodName(method), [&](auto& c) {
      c.streams.assign(3, {});
      int64_t channels = 4;
      for (StreamCase& stream : c.streams) {
        stream.method = method;
        stream.channels = channels *= 2;
        stream.samples = 10 + channels;
      }
      c.order = QueryOrder::kAtSamples;
    });
  }

  // Clocks.
  for (const rbcDType times : kTimeDTypes) {
    for (const QueryOrder order : {QueryOrder::kAtSamples, QueryOrder::kSorted}) {
      add("clock batch_offsets", [&](auto& c) {
        c.times = times;
        c.order = order;
        c.queries = 80;
        double offset = -0.035;
        for (StreamCase& stream : c.streams) {
          if (same(times, kI64)) {
            stream.clock_offset_ticks = static_cast<int64_t>(offset * 1e9) + 1;
          } else {
            stream.clock_offset = offset;
          }
          offset += 0.0201;
        }
      });
    }
  }
  add("clock offsets at the ends of 64 bits", [](auto& c) {
    constexpr int64_t kEpoch = INT64_C(1700000000123456789);
    constexpr int64_t kOffsets[] = {std::numeric_limits<int64_t>::min(),
                                    std::numeric_limits<int64_t>::max(),
                                    std::numeric_limits<int64_t>::min() + kEpoch,
                                    -std::numeric_limits<int64_t>::max() + 2 * kEpoch,
                                    kEpoch,
                                    -kEpoch,
                                    1};
    c.times = kI64;
    c.streams.assign(std::size(kOffsets), c.streams[1]);
    for (size_t n = 0; n < c.streams.size(); ++n) c.streams[n].clock_offset_ticks = kOffsets[n];
  });

  // Rows.
  add("ragged", [](auto& c) {
    c.batch = 9;
    c.streams[0].lengths = true;
    c.streams[1].packed = true;
    c.streams[2].shared_times = true;
    c.streams[3].lengths = true;
    c.streams[3].index_dtype = kI32;
    c.query_lengths = true;
    c.check_times = true;
  });
  add("all packed", [](auto& c) {
    c.batch = 9;
    for (StreamCase& stream : c.streams) stream.packed = true;
    c.order = QueryOrder::kRandom;
  });
  for (const size_t absent : {0u, 1u, 3u}) {
    add("an absent stream", [&](auto& c) {
      c.streams[absent].lengths = c.streams[absent].absent = true;
      c.streams[absent].fill_value = 7;
    });
  }
  add("no samples anywhere", [](auto& c) {
    for (StreamCase& stream : c.streams) stream.samples = 0;
    c.order = QueryOrder::kRandom;
  });
  add("a few samples", [](auto& c) {
    for (size_t n = 0; n < c.streams.size(); ++n) c.streams[n].samples = static_cast<int64_t>(n);
    c.order = QueryOrder::kAtSamples;
  });
  add("shared times and queries", [](auto& c) {
    for (StreamCase& stream : c.streams) stream.shared_times = true;
    c.shared_queries = true;
  });
  add("unbatched", [](auto& c) { c.batched = false, c.batch = 1; });
  add("unbatched, strided", [](auto& c) {
    c.batched = false;
    c.batch = 1;
    c.everyLayout(Layout::kStrided);
  });

  // Layouts, for all tensors and only for the outputs.
  for (const Layout layout : kLayouts) {
    add(std::string("layout ") + nameOf(layout), [&](auto& c) { c.everyLayout(layout); });
    if (layout == Layout::kBroadcast) continue;
    add(std::string("out ") + nameOf(layout), [&](auto& c) { c.out_layout = layout; });
    add(std::string("valid ") + nameOf(layout), [&](auto& c) {
      c.mask_layout = layout;
      c.mask_dtype = kU8;
    });
  }
  for (size_t strided = 0; strided < 4; ++strided) {
    add("one stream strided", [&](auto& c) {
      c.streams[strided].values_layout = Layout::kPermuted;
      c.streams[strided].times_layout = Layout::kReversed;
    });
  }

  // Streams without channels still have a column of the mask.
  for (size_t empty = 0; empty < 4; ++empty) {
    add("a stream without channels", [&](auto& c) {
      c.streams[empty].groups.clear();
      c.streams[empty].channels = 0;
      c.streams[empty].tolerance = kNone;
      c.streams[empty].method = RBC_METHOD_LINEAR;
      c.streams[empty].values = kF32;
    });
  }
  add("no channels at all", [](auto& c) {
    c.streams.assign(3, {});
    for (StreamCase& stream : c.streams) stream.channels = 0;
  });
  add("no valid", [](auto& c) { c.mask = false; });
  add("empty batch", [](auto& c) { c.batch = 0; });
  add("no queries", [](auto& c) { c.queries = 0; });
  add("specials", [](auto& c) {
    c.specials = true;
    c.times = kF64;
    c.order = QueryOrder::kOutside;
  });

  // Rows of single channels, by methods of every kind.
  for (const rbcDType out : {kF32, kBF16}) {
    for (const Layout layout : {Layout::kContiguous, Layout::kPaddedRows, Layout::kMisaligned}) {
      add(std::string("methods of one, two and four rows, odd widths ") + nameOf(layout),
          [&](auto& c) {
            c.out = out;
            c.order = QueryOrder::kRandom;
            c.batch = 5;
            c.queries = 150;
            c.streams.assign(5, {});
            const int32_t methods[] = {RBC_METHOD_CUBIC, RBC_METHOD_ANGLE, RBC_METHOD_LINEAR,
                                       RBC_METHOD_PCHIP, RBC_METHOD_NEAREST};
            for (int n = 0; n < 5; ++n) {
              c.streams[static_cast<size_t>(n)].method = methods[n];
              c.streams[static_cast<size_t>(n)].channels = 2 * n + 1;
            }
            c.streams[2].shift = c.streams[2].scale = true;
            c.streams[2].outside = RBC_OUTSIDE_EXTRAPOLATE;
            c.streams[3].lengths = true;
            c.streams[4].packed = true;
            c.everyLayout(layout);
          });
    }
  }
  // Angles of all periods in streams that CUDA has kernels for.
  for (const int streams : {1, 3, 9, 20}) {
    for (const int64_t channels : {3, 64}) {
      for (const rbcDType out : {kF32, kBF16, kF16}) {
        for (const bool four : {false, true}) {
          add("streams of angles with a period", [&](auto& c) {
            c.queries = 70;
            c.out = out;
            c.streams.assign(static_cast<size_t>(streams), {});
            for (int n = 0; n < streams; ++n) {
              StreamCase& stream = c.streams[static_cast<size_t>(n)];
              stream.channels = channels;
              if (!four || n != 1) stream.setAngles(channels, (n + 1) % kPeriods);
              if (four && n == 1) stream.method = RBC_METHOD_CUBIC;
              if (n == 2) stream.method = RBC_METHOD_LINEAR, stream.groups.clear();
              stream.shift = n % 4 == 3;
              stream.values = out;
            }
          });
        }
      }
    }
  }
  for (const int32_t method : {RBC_METHOD_CUBIC, RBC_METHOD_ANGLE, RBC_METHOD_LINEAR}) {
    for (const int streams : {2, 8, 9}) {
      add("odd streams of a formula", [&](auto& c) {
        c.queries = 200;
        c.streams.assign(static_cast<size_t>(streams), {});
        for (StreamCase& stream : c.streams) {
          stream.method = method;
          stream.channels = 7;
          stream.shift = true;
        }
      });
      add("wide streams of a formula", [&](auto& c) {
        c.queries = 40;
        c.streams.assign(static_cast<size_t>(streams), {});
        for (StreamCase& stream : c.streams) {
          stream.method = method;
          stream.channels = 16;
          stream.no_rotations = 0.05;
        }
      });
    }
  }
  add("slerp with odd lines", [](auto& c) {
    c.streams.assign(2, {});
    c.streams[0].method = RBC_METHOD_SLERP;
    c.streams[0].channels = 4;
    c.streams[1].channels = 3;
  });

  detail::addManyStreams(add);

  // Groups: the maximum number, in few streams and in many.
  for (const int streams : {1, 4, 64}) {
    add("256 groups in all", [&](auto& c) {
      c.streams.assign(static_cast<size_t>(streams), {});
      int next = 0;
      for (StreamCase& stream : c.streams) {
        std::vector<std::pair<int64_t, int32_t>> sizes;
        for (int i = 0; i < RBC_FUSE_MAX_CHANNEL_GROUPS / streams; ++i) {
          const int32_t method = kAllMethods[next++ % 8];
          sizes.push_back({method == RBC_METHOD_SLERP ? 4 : 1, method});
        }
        stream.setGroups(sizes);
        stream.samples = 15;
        stream.no_rotations = 0.05;
      }
      c.queries = 7;
      c.order = QueryOrder::kRandom;
    });
  }
  add("extrapolate in groups", [](auto& c) {
    c.streams[0].outside = RBC_OUTSIDE_EXTRAPOLATE;
    c.streams[0].tolerance = kNone;
    c.streams[2].outside = RBC_OUTSIDE_EXTRAPOLATE;
    c.order = QueryOrder::kOutside;
  });

  // Wide ones, aligned to vectors or not, and large enough to be divided among threads.
  for (const int64_t off : {0, 1}) {
    add("wide", [&](auto& c) {
      c.out = kBF16;
      c.streams.assign(3, {});
      for (size_t n = 0; n < 3; ++n) {
        c.streams[n].values = n == 1 ? kF32 : kBF16;
        c.streams[n].channels = (int64_t{256} >> n) + off;
      }
    });
  }
  add("for threads", [](auto& c) {
    c.batch = 5;
    c.queries = 200;
    c.times = kF64;
    for (StreamCase& stream : c.streams) stream.samples *= 3;
  });
  return std::move(add.cases);
}

FuseCase randomFuseCase(uint64_t seed) {
  Random random(seed + 2000003);
  FuseCase c;
  static_cast<SharedCase&>(c) = randomShared(random, seed);
  const int64_t n = 1 + random.below(random.chance(0.9) ? 5 : RBC_FUSE_MAX_STREAMS);
  size_t groups = 0;
  for (int64_t i = 0; i < n; ++i) {
    StreamCase stream = randomStream(random, c, random.chance(0.2));
    if (random.chance(0.3)) {
      if (same(c.times, kI64)) {
        stream.clock_offset_ticks = random.below(200000000) - 100000000;
      } else {
        stream.clock_offset = random.uniform(-0.1, 0.1);
      }
    }
    groups += stream.segments().size();
    if (groups > RBC_FUSE_MAX_CHANNEL_GROUPS) break;
    c.streams.push_back(std::move(stream));
  }
  return c;
}

// ---- inputs -------------------------------------------------------------------------------------

Array FuseInputs::makeOut() const {
  return detail::makeOutput(c, c.out, {c.batch, c.queries, c.channels()}, c.out_layout);
}

Array FuseInputs::makeMask() const {
  return detail::makeOutput(
      c, c.mask_dtype, {c.batch, c.queries, static_cast<int64_t>(c.streams.size())}, c.mask_layout);
}

FuseInputs makeFuseInputs(const FuseCase& c) {
  Random random(c.seed);
  FuseInputs in;
  in.c = c;
  detail::StreamRows rows(c.streams.size());
  std::vector<const StreamCase*> streams;
  for (size_t n = 0; n < c.streams.size(); ++n) {
    in.streams.push_back(detail::makeStream(c.streams[n], c, random, &rows[n]));
    streams.push_back(&c.streams[n]);
  }
  detail::makeQueries(c, streams, rows, random, &in);
  return in;
}

}  // namespace support
