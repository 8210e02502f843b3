// Fusion cases of many narrow streams, with enough recordings to fill a GPU: a CUDA kernel that
// copies whole recordings processes them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/fuse_cases.h"
#include "support/fuse_table.h"
#include "support/random.h"

namespace support {
namespace {

// Recordings for two blocks on each of 160 multiprocessors, where a block writes at most 48 bytes
// per query, and about a hundred queries if there are few recordings.
int64_t enoughRecordings(const FuseCase& c) {
  constexpr int64_t kBlocks = 320;
  constexpr int64_t kQueries = 128;
  const int64_t groups = std::max<int64_t>(c.channels() * sizeOf(c.out) / 48, 1);
  const int64_t parts = std::max<int64_t>(c.queries / kQueries, 1);
  return (kBlocks + groups * parts - 1) / (groups * parts);
}

// Streams of one or two channels that differ in everything that the kernel distinguishes.
std::vector<StreamCase> narrowStreams(int count, rbcDType dtype) {
  constexpr int32_t kLines[] = {RBC_METHOD_LINEAR, RBC_METHOD_PREVIOUS, RBC_METHOD_LINEAR,
                                RBC_METHOD_NEAREST, RBC_METHOD_NEXT};
  std::vector<StreamCase> streams(static_cast<size_t>(count));
  for (int n = 0; n < count; ++n) {
    StreamCase& s = streams[static_cast<size_t>(n)];
    s.values = dtype;
    s.method = kLines[n % 5];
    s.channels = 1 + n % 2;
    s.samples = 5 + 7 * n % 60;
    s.outside = n % 4 == 1 ? RBC_OUTSIDE_FILL : RBC_OUTSIDE_HOLD;
    if (n % 7 == 2 && s.method == RBC_METHOD_LINEAR) s.outside = RBC_OUTSIDE_EXTRAPOLATE;
    s.fill_value = n - 4;
    s.lengths = n % 6 == 3;
    s.absent = n % 24 == 9;
    s.shared_times = n % 6 == 5;
    s.clock_offset = n % 3 == 1 ? 0.004 : 0;
    s.pattern = kTimePatterns[n % 5];
    if (n % 5 == 4 || n % 10 == 2) s.max_gap = 1.5;
    if (isStep(s.method) && n % 3 == 0) s.tolerance = 0.5;
    s.values_layout = n % 8 == 6 ? Layout::kMisaligned : Layout::kContiguous;
    s.times_layout = n % 8 == 4 ? Layout::kPaddedRows : Layout::kContiguous;
  }
  return streams;
}

}  // namespace

std::vector<FuseCase> narrowFuseCases() {
  detail::NarrowTable table = {"many narrow streams", 9001, enoughRecordings};
  const auto add = [&](const std::string& name, int streams, auto&& edit) {
    table.add(name, narrowStreams(streams, kF32), edit);
  };
  constexpr rbcDType kPairs[][2] = {
      {kF16, kF16}, {kBF16, kBF16}, {kF32, kF32}, {kF32, kF16}, {kF32, kBF16}};
  constexpr int kCounts[] = {16, 33, 9, 64};
  for (const auto& [values, out] : kPairs) {
    for (const rbcDType times : kTimeDTypes) {
      add("every dtype", kCounts[table.cases.size() % 4], [&, from = values, to = out](auto& c) {
        for (StreamCase& s : c.streams) s.values = from;
        c.out = to;
        c.times = times;
        c.mask = table.cases.size() % 3 != 0;
        c.specials = table.cases.size() % 2 == 0;
      });
    }
  }
  for (const int streams : kCounts) {
    for (const int64_t channels : {1, 2, 3, 4}) {
      add("all of a width", streams, [&](auto& c) {
        for (StreamCase& s : c.streams) s.channels = channels;
        c.out = channels % 2 == 0 ? kF32 : kBF16;
        c.mask_dtype = kU8;
      });
    }
  }
  for (const int64_t queries : {31, 32, 33, 64, 96, 97, 128, 129, 160, 257, 1000}) {
    add("a number of queries", 33, [&](auto& c) {
      c.queries = queries;
      c.query_lengths = queries % 2 == 1;
      c.order = queries % 3 == 0 ? QueryOrder::kSorted : QueryOrder::kRandom;
    });
  }
  // The numbers of samples at which the search takes another step.
  for (const rbcDType times : {kF32, kI64}) {
    add("few samples and more", 33, [&](auto& c) {
      constexpr int64_t kSamples[] = {0,  1,  2,  3,   4,   5,   8,   9,   16,  17, 32,
                                      33, 63, 64, 126, 127, 128, 251, 252, 502, 503};
      for (size_t n = 0; n < c.streams.size(); ++n) c.streams[n].samples = kSamples[n % 21];
      c.times = times;
      c.order = QueryOrder::kAtSamples;
      c.queries = 80;
    });
  }
  // One stream with the maximum number of samples, and more.
  for (const int64_t samples : {1003, 1004, 2006, 2007, 4011, 4012, 8022, 8023}) {
    add("a long stream", 9, [&](auto& c) {
      for (StreamCase& s : c.streams) s.channels = 2, s.lengths = s.absent = false;
      c.streams[8].samples = samples;
      c.streams[8].channels = 1;
      c.streams[8].shared_times = true;
      c.order = QueryOrder::kRandom;
      c.queries = 200;
    });
  }
  for (const Layout layout : {Layout::kPaddedRows, Layout::kColumns, Layout::kMisaligned,
                              Layout::kStrided, Layout::kReversed}) {
    add(std::string("out ") + nameOf(layout), 16, [&](auto& c) {
      c.out_layout = layout;
      for (StreamCase& s : c.streams) s.channels = 2;
    });
    add(std::string("valid ") + nameOf(layout), 16, [&](auto& c) { c.mask_layout = layout; });
    add(std::string("queries ") + nameOf(layout), 16, [&](auto& c) { c.queries_layout = layout; });
    add(std::string("times ") + nameOf(layout), 16, [&](auto& c) {
      for (StreamCase& s : c.streams) s.times_layout = layout;
    });
  }
  add("values of a broadcast row, shared queries", 33, [](auto& c) {
    for (StreamCase& s : c.streams) s.values_layout = Layout::kBroadcast;
    c.shared_queries = true;
  });
  for (const rbcDType index : {kI32, kI64}) {
    add("packed", 64, [&](auto& c) {
      for (size_t n = 0; n < c.streams.size(); ++n) {
        StreamCase& s = c.streams[n];
        s.packed = n % 3 == 0;
        if (s.packed) s.shared_times = s.lengths = s.absent = false;
        s.samples = s.packed ? 12 : s.samples;
        s.index_dtype = index;
      }
      c.query_lengths = true;
    });
  }
  // Some that another kernel processes.
  for (const int64_t channels : {0, 3, 5, 8}) {
    add("one of another width", 17, [&](auto& c) { c.streams[7].channels = channels; });
  }
  add("one of a formula", 17, [](auto& c) { c.streams[7].method = RBC_METHOD_ANGLE; });
  add("one with missing samples", 17, [](auto& c) { c.streams[7].missing = 0.3; });
  return std::move(table.cases);
}

}  // namespace support
