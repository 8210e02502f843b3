// Fusion cases of narrow streams that differ in dtype or in method, with enough recordings to fill
// a GPU: a CUDA kernel that copies whole recordings processes them.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/fuse_cases.h"
#include "support/fuse_table.h"

namespace support {
namespace {

// Enough that blocks, with one recording and one stream each, fill a GPU with 160 multiprocessors.
int64_t enoughRecordings(const FuseCase& c) {
  constexpr int64_t kBlocks = 160;
  const auto streams = static_cast<int64_t>(c.streams.size());
  return (kBlocks + streams - 1) / streams;
}

// The recording of a robot, without a camera.
std::vector<StreamCase> narrowRobot() {
  std::vector<StreamCase> streams = detail::robotStreams();
  streams.erase(streams.begin() + 2);
  streams.push_back({});
  streams.back().method = RBC_METHOD_ANGLE;
  streams.back().channels = 7;
  return streams;
}

// Streams that differ in everything that the kernel distinguishes.
std::vector<StreamCase> mixedStreams(int count) {
  constexpr int32_t kMethods[] = {RBC_METHOD_LINEAR, RBC_METHOD_PREVIOUS, RBC_METHOD_ANGLE,
                                  RBC_METHOD_CUBIC,  RBC_METHOD_NEAREST,  RBC_METHOD_SLERP,
                                  RBC_METHOD_PCHIP,  RBC_METHOD_NEXT};
  constexpr rbcDType kNumbers[] = {kF32, kBF16, kF16};
  constexpr rbcDType kCounts[] = {kBool, kI8, kI16, kU8, kU16, kF32};
  std::vector<StreamCase> streams(static_cast<size_t>(count));
  for (int n = 0; n < count; ++n) {
    StreamCase& s = streams[static_cast<size_t>(n)];
    s.method = kMethods[n % 8];
    const bool step = isStep(s.method);
    s.values = step ? kCounts[n % 6] : kNumbers[n % 3];
    s.channels = s.method == RBC_METHOD_SLERP ? 4 + n % 2 * 4 : 1 + n % 9;
    s.samples = 5 + 7 * n % 60;
    s.no_rotations = 0.1;
    s.outside = n % 4 == 1 ? RBC_OUTSIDE_FILL : RBC_OUTSIDE_HOLD;
    if (n % 16 == 0) s.outside = RBC_OUTSIDE_EXTRAPOLATE;
    s.fill_value = step ? n % 2 : n - 4;
    s.lengths = n % 6 == 3;
    s.absent = n % 12 == 9;
    s.shared_times = n % 6 == 5;
    s.clock_offset = n % 3 == 1 ? 0.004 : 0;
    s.pattern = kTimePatterns[n % 5];
    s.shift = n % 3 == 0;
    s.scale = n % 4 == 0;
    s.affine = n % 2 == 0 ? kF32 : kF64;
    if (n % 5 == 4) s.max_gap = 1.5;
    if (step && n % 3 == 1) s.tolerance = 0.5;
    s.values_layout = n % 8 == 6 ? Layout::kMisaligned : Layout::kContiguous;
    s.times_layout = n % 8 == 4 ? Layout::kPaddedRows : Layout::kContiguous;
  }
  return streams;
}

}  // namespace

std::vector<FuseCase> mixedFuseCases() {
  detail::NarrowTable table = {"mixed narrow streams", 11001, enoughRecordings};
  const auto add = [&](const std::string& name, auto&& edit) {
    table.add(name, narrowRobot(), edit);
  };
  for (const rbcDType out : {kF32, kF16, kBF16}) {
    for (const rbcDType times : kTimeDTypes) {
      add("a robot", [&](auto& c) {
        c.out = out;
        c.times = times;
        c.query_lengths = table.cases.size() % 2 == 1;
      });
      for (const int streams : {5, 16}) {
        add("every dtype and method", [&](auto& c) {
          c.streams = mixedStreams(streams);
          c.out = out;
          c.times = times;
          c.mask = table.cases.size() % 3 != 0;
          c.specials = table.cases.size() % 2 == 0;
        });
      }
    }
  }
  for (const int64_t queries : {1, 7, 32, 33, 64, 511, 512, 513, 1100}) {
    add("a number of queries", [&](auto& c) {
      c.streams = mixedStreams(9);
      c.queries = queries;
      c.query_lengths = queries % 2 == 1;
    });
  }
  // The numbers of samples at which the search takes another step.
  for (const rbcDType times : {kF32, kI64}) {
    for (const int first : {0, 7, 14}) {
      add("few samples and more", [&](auto& c) {
        constexpr int64_t kSamples[] = {0,  1,  2,  3,   4,   5,   8,   9,   16,  17, 32,
                                        33, 63, 64, 126, 127, 128, 251, 252, 502, 503};
        c.streams = mixedStreams(7);
        for (int n = 0; n < 7; ++n) c.streams[static_cast<size_t>(n)].samples = kSamples[first + n];
        c.times = times;
        c.order = QueryOrder::kAtSamples;
        c.queries = 80;
      });
    }
  }
  for (const Layout layout : {Layout::kPaddedRows, Layout::kColumns, Layout::kMisaligned,
                              Layout::kStrided, Layout::kReversed}) {
    add(std::string("out ") + nameOf(layout), [&](auto& c) { c.out_layout = layout; });
    add(std::string("valid ") + nameOf(layout), [&](auto& c) { c.mask_layout = layout; });
    add(std::string("queries ") + nameOf(layout), [&](auto& c) { c.queries_layout = layout; });
    add(std::string("affine ") + nameOf(layout), [&](auto& c) {
      c.streams = mixedStreams(9);
      for (StreamCase& s : c.streams) s.affine_layout = layout;
    });
    add(std::string("values ") + nameOf(layout), [&](auto& c) {
      for (StreamCase& s : c.streams) s.values_layout = layout;
    });
  }
  add("values of a broadcast row, shared queries", [](auto& c) {
    for (StreamCase& s : c.streams) s.values_layout = Layout::kBroadcast;
    c.shared_queries = true;
  });
  for (const rbcDType index : {kI32, kI64}) {
    add("packed", [&](auto& c) {
      c.streams = mixedStreams(12);
      for (size_t n = 0; n < c.streams.size(); n += 3) {
        StreamCase& s = c.streams[n];
        s.packed = true;
        s.shared_times = s.lengths = s.absent = false;
        s.samples = 12;
        s.index_dtype = index;
      }
      c.query_lengths = true;
    });
  }
  for (const int64_t batch : {1, 3, 1200}) {
    add("a batch with another size", [&](auto& c) {
      c.streams = mixedStreams(6);
      c.queries = batch == 1200 ? 40 : 700;
      c.batch = batch;
    });
  }
  add("one tick of a control loop", [](auto& c) { c.batch = c.queries = 1; });
  add("one without channels", [](auto& c) {
    c.streams = mixedStreams(9);
    c.streams[0].channels = 0;
  });
  // Their times still affect the mask.
  for (const Layout layout : {Layout::kReversed, Layout::kStrided}) {
    add(std::string("one without channels, times ") + nameOf(layout), [&](auto& c) {
      c.streams = mixedStreams(9);
      c.streams[0].channels = 0;
      c.streams[0].times_layout = layout;
    });
  }
  add("many channels in groups", [](auto& c) {
    StreamCase& s = c.streams[0];
    s.setGroups({{1, RBC_METHOD_PCHIP},
                 {8, RBC_METHOD_SLERP},
                 {3, RBC_METHOD_CUBIC},
                 {9, RBC_METHOD_LINEAR},
                 {4, RBC_METHOD_SLERP},
                 {2, RBC_METHOD_ANGLE},
                 {3, angleBy(RBC_PERIOD_DEGREES)},
                 {2, angleBy(RBC_PERIOD_TURNS_POSITIVE)},
                 {5, RBC_METHOD_NEXT}});
    s.shift = s.scale = true;
  });
  // Some that another kernel processes.
  add("17 of them, one too many", [](auto& c) { c.streams = mixedStreams(17); });
  add("one of doubles", [](auto& c) { c.streams[1].values = kF64; });
  add("out of doubles", [](auto& c) { c.out = kF64; });
  add("one with missing samples", [](auto& c) { c.streams[1].missing = 0.3; });
  add("too few queries, one of many samples", [](auto& c) {
    c.streams[1].samples = 4000;
    c.streams[1].shared_times = true;
  });
  return std::move(table.cases);
}

}  // namespace support
