// Rows with any strides: a few channels of a tile's rows at a time are copied to contiguous memory,
// and the results are copied back. Channel by channel, since neighbouring queries may be adjacent
// in memory.

#include <algorithm>
#include <cstddef>

#include "fuse/rows.h"
#include "visit_dtype.h"

namespace rbc::cpu {
namespace {

constexpr int64_t kChannels = 16;  // whole quaternions
constexpr int64_t kRowBytes = kChannels * static_cast<int64_t>(sizeof(double));

struct Move {
  const std::byte* from;
  std::byte* to;
};

template <class Word>
void moveChannels(const Move* moves, int count, int64_t from_stride, int64_t to_stride,
                  int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) {
    for (int i = 0; i < count; ++i) {
      reinterpret_cast<Word*>(moves[i].to)[c * to_stride] =
          reinterpret_cast<const Word*>(moves[i].from)[c * from_stride];
    }
  }
}

auto moveFunction(DType dtype) {
  return visitWord(sizeOf(dtype),
                   [](auto tag) { return &moveChannels<typename decltype(tag)::type>; });
}

// The rows from the one before the sample to the second one after it, as far as they are used.
struct CompactRow {
  alignas(64) std::byte samples[4][kRowBytes];
  alignas(64) std::byte out[kRowBytes];
};

// A contiguous copy of some of a tile's rows.
class Compact {
 public:
  static constexpr int kRows = 16;

  Compact(const RowTile& tile, RowsFunction rows) : tile_(tile), part_(tile), rows_(rows) {
    part_.rows = tasks_;
    part_.nontemporal = false;
    part_.outer = nullptr;
  }

  // Channels first .. first + channels - 1 of rows begin .. begin + count - 1.
  void run(int begin, int count, int64_t first, int64_t channels) {
    const int64_t in_offset = first * tile_.in_stride * sizeOf(tile_.in);
    const int64_t out_offset = first * tile_.out_stride * sizeOf(tile_.out);
    Move reads[4 * kRows];
    Move writes[kRows];
    int num_reads = 0;
    for (int i = 0; i < count; ++i) {
      const RowTask& row = tile_.rows[begin + i];
      CompactRow& compact = compact_[i];
      writes[i] = {compact.out, row.out + out_offset};
      const bool between = row.w != 0;
      tasks_[i] = {row.sample == nullptr ? nullptr : compact.samples[1],
                   compact.samples[between ? 2 : 1], compact.out, row.w};
      if (row.sample == nullptr) continue;
      const auto read = [&](const std::byte* from, int sample) {
        reads[num_reads++] = {from + in_offset, compact.samples[sample]};
      };
      read(row.sample, 1);
      if (!between) continue;
      read(row.right, 2);
      if (!takesFour(tile_.method)) continue;
      const Weights<double>& weights = tile_.weights[begin + i];
      const OuterRows outer = outerRowsOf(tile_, begin + i);
      if (weights.before) read(outer.before, 0);
      if (weights.after) read(outer.after, 3);
    }
    moveFunction(tile_.in)(reads, num_reads, tile_.in_stride, 1, channels);
    part_.weights = tile_.weights != nullptr ? tile_.weights + begin : nullptr;
    part_.invalid = tile_.invalid != nullptr ? tile_.invalid + begin : nullptr;
    part_.count = part_.known = count;
    part_.channels = channels;
    part_.first_channel = tile_.first_channel + first;
    rows_(part_);
    moveFunction(tile_.out)(writes, count, 1, tile_.out_stride, channels);
  }

 private:
  const RowTile& tile_;
  RowTile part_;
  const RowsFunction rows_;
  RowTask tasks_[kRows];
  CompactRow compact_[kRows];
};

}  // namespace

void throughCompactRows(const RowTile& tile, RowsFunction function) {
  Compact compact(tile, function);
  for (int64_t first = 0; first < tile.channels; first += kChannels) {
    for (int begin = 0; begin < tile.count; begin += Compact::kRows) {
      compact.run(begin, std::min(Compact::kRows, tile.count - begin), first,
                  std::min(kChannels, tile.channels - first));
    }
  }
}

}  // namespace rbc::cpu
