// The fusion cases of many streams.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/fuse_table.h"

namespace support {
namespace detail {

void addManyStreams(FuseTable& add) {
  // More than a few streams, similar enough for one kernel: rows of whole vectors, and of single
  // channels.
  constexpr rbcDType kPairs[][2] = {{kF32, kBF16}, {kBF16, kBF16}, {kBF16, kF32},
                                    {kF32, kF32},  {kF16, kF32},   {kF64, kF64}};
  int pairs = 0;
  for (const auto& [values, out] : kPairs) {
    // 33 streams and 64 of one pair each.
    const int most = pairs++ == 0 ? 33 : pairs == 2 ? 64 : 9;
    for (const int streams : {16, most}) {
      for (const bool odd : {false, true}) {
        for (const auto kind : {ManyKind::kLines, ManyKind::kFormulas}) {
          add("many alike", [&, from = values, to = out](auto& c) {
            c.out = to;
            c.streams = manyStreams(streams, from, kind, odd);
            for (StreamCase& stream : c.streams) stream.no_rotations = 0.1;
            c.query_lengths = streams == 16;
            c.mask = streams != 9;
            c.mask_layout = odd ? Layout::kStrided : Layout::kContiguous;
            c.order = QueryOrder::kRandom;
            c.batch = 5;
            c.queries = streams > 16 ? 5 : 11;
          });
        }
      }
    }
  }
  // One of them is not accepted by such a kernel.
  for (const int other : {0, 11}) {
    const auto addOther = [&](const char* name, auto&& edit) {
      add(std::string("many similar streams except one ") + name, [&](auto& c) {
        c.queries = 7;
        c.streams = manyStreams(12, kF32, ManyKind::kLines, false);
        edit(c.streams[static_cast<size_t>(other)]);
      });
    };
    addOther("of a cubic", [](auto& stream) { stream.method = RBC_METHOD_CUBIC; });
    addOther("of doubles", [](auto& stream) { stream.values = kF64; });
    addOther("of integers", [](auto& stream) {
      stream.values = kI16;
      stream.method = RBC_METHOD_NEAREST;
    });
    addOther("in groups", [](auto& stream) {
      stream.setGroups({{4, RBC_METHOD_LINEAR}, {4, RBC_METHOD_PREVIOUS}});
    });
    addOther("that is strided", [](auto& stream) { stream.values_layout = Layout::kStrided; });
    addOther("that is misaligned",
             [](auto& stream) { stream.values_layout = Layout::kMisaligned; });
    addOther("normalized by doubles", [](auto& stream) {
      stream.shift = stream.scale = true;
      stream.affine = kF64;
    });
    addOther("without channels", [](auto& stream) { stream.channels = 0; });
    addOther("without samples", [](auto& stream) { stream.samples = 0; });
  }
  for (const Layout layout : {Layout::kPaddedRows, Layout::kMisaligned, Layout::kPermuted}) {
    add(std::string("many alike, out ") + nameOf(layout), [&](auto& c) {
      c.streams = manyStreams(17, kBF16, ManyKind::kLines, false);
      c.out = kBF16;
      c.out_layout = layout;
      c.queries = 11;
    });
  }
  // A row of these is divided among blocks.
  for (const rbcDType out : {kF32, kBF16}) {
    add("one query of many wide streams", [&](auto& c) {
      c.batch = c.queries = 1;
      c.out = out;
      c.streams.assign(9, {});
      int64_t channels = 1024;
      for (StreamCase& stream : c.streams) {
        stream.samples = 3;
        stream.channels = channels -= 8;
      }
    });
  }

  // The same if a quaternion in one block's part affects a mask that another block writes.
  for (const int streams : {3, 9}) {
    for (const rbcDType out : {kF32, kBF16}) {
      add("one query of wide streams of quaternions", [&](auto& c) {
        c.batch = 2;
        c.queries = 1;
        c.out = out;
        c.streams.assign(static_cast<size_t>(streams), {});
        int64_t channels = 1024;
        for (StreamCase& stream : c.streams) {
          stream.method = RBC_METHOD_SLERP;
          stream.samples = 3;
          stream.channels = channels -= 8;
          stream.no_rotations = 0.001;
        }
      });
    }
  }
}

}  // namespace detail
}  // namespace support
