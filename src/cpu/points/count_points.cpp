#include "points/count_points.h"

#include <algorithm>

#include "element_of.h"

namespace rbc::cpu {

// Before its use: Clang 14 forgets to instantiate what a generic lambda names ahead of its body.
template <class Out>
void PointCounter::write(const PointCounter& counter, const VoxelLine& line,
                         const uint32_t* counts) {
  const auto empty = elementOf<Out>(counter.empty_bits_);
  const auto valueOf = [empty, most = counter.most_](uint32_t count) {
    return count != 0 ? countAs<Out>(std::min(count, most)) : empty;
  };
  const int64_t count = line.count;  // bytes to write might be any object's
  if (line.stride == sizeof(Out)) {
    auto* out = reinterpret_cast<Out*>(line.data);
    for (int64_t i = 0; i < count; ++i) out[i] = valueOf(counts[i]);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    *reinterpret_cast<Out*>(line.data + i * line.stride) = valueOf(counts[i]);
  }
}

PointCounter::PointCounter(const ThreadPool& pool, const VoxelizeProblem& p,
                           const DenseVoxels& voxels, const PointSort& sort)
    : pool_(pool),
      voxels_(voxels),
      sort_(sort),
      empty_bits_(p.empty_bits),
      most_(p.mode == VoxelMode::kOccupancy ? 1 : UINT32_MAX) {
  const auto writeOf = [](auto tag) -> Write { return write<typename decltype(tag)::type>; };
  write_ = visitDType(p.out.dtype, writeOf);
}

void PointCounter::count(int64_t bucket, Counters* counters) const {
  const int64_t end = sort_.firstKey(bucket + 1);
  sort_.visit(bucket, [&](const auto* entry, const std::byte*) {
    const auto* last = entry + sort_.count(bucket);
    for (int64_t first = sort_.firstKey(bucket); first < end; first += kCounters) {
      const int64_t past = std::min(first + kCounters, end);
      if (entry == last || static_cast<int64_t>(entry->key) >= past) {
        voxels_.clear(first, past);
        continue;
      }
      uint32_t* counts = counters->counts;
      std::fill_n(counts, past - first, 0u);
      const auto* const begin = entry;
      const bool whole = pool_.inPieces(last - begin, [&](int64_t, int64_t piece_end) {
        const auto* const piece_last = begin + piece_end;
        for (; entry != piece_last && static_cast<int64_t>(entry->key) < past; ++entry) {
          ++counts[static_cast<int64_t>(entry->key) - first];
        }
      });
      if (!whole) return;  // the next keys' counts would begin with what is left of these
      for (int64_t key = first; key < past;) {
        const VoxelLine line = voxels_.lineAt(key, past);
        write_(*this, line, counts + (key - first));
        key += line.count;
      }
    }
  });
}

}  // namespace rbc::cpu
