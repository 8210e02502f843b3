#include "points/reduce_features.h"

#include <algorithm>
#include <cstddef>

#include "real.h"
#include "visit_dtype.h"
#include "voxel_reduce.h"

namespace rbc::cpu {
namespace {

// Number of features that are reduced side by side.
constexpr int64_t kBlock = 64;

}  // namespace

template <class In>
const In* FeatureReducer::rowOf(const Rows& rows, const Block& block, int64_t i) {
  return reinterpret_cast<const In*>(rows.data) + rows.offsets[block.points[i]] +
         block.first_feature * rows.stride;
}

template <class In, class Out>
void FeatureReducer::copyRows(const Rows& rows, const Block& block, const FeatureRow& out,
                              int64_t stride) {
  auto* to = reinterpret_cast<Out*>(out.data);
  for (int64_t i = 0; i < block.count; ++i) {
    const In* row = rowOf<In>(rows, block, i);
    Out* const at = to + i * stride;
    for (int64_t f = 0; f < block.features; ++f) {
      at[f * out.stride] = narrow<Out>(widen(row[f * rows.stride]));
    }
  }
}

template <class In>
bool FeatureReducer::sum(const Rows& rows, const Block& block, Reduction mode, double* results) {
  using Number = Compute<In>;
  if (block.count == 1) {
    const In* row = rowOf<In>(rows, block, 0);
    for (int64_t f = 0; f < block.features; ++f) {
      results[f] = sumOfOne(widen(row[f * rows.stride]));
    }
    return true;
  }
  OrderKey<Number> largest[kBlock];
  Fixed<Number> sums[kBlock];
  std::fill_n(largest, block.features, OrderKey<Number>{0});
  std::fill_n(sums, block.features, Fixed<Number>{});
  for (int64_t i = 0; i < block.count; ++i) {
    if (rows.pool.stopsAt(i)) return false;
    const In* row = rowOf<In>(rows, block, i);
    for (int64_t f = 0; f < block.features; ++f) {
      largest[f] = std::max(largest[f], magnitude(widen(row[f * rows.stride])));
    }
  }
  bool finite = true;
  int shifts[kBlock];
  for (int64_t f = 0; f < block.features; ++f) {
    const FixedSum<Number> sum(largest[f], block.count);
    finite &= sum.finite();
    shifts[f] = sum.shift;
  }
  for (int64_t i = 0; i < block.count; ++i) {
    if (rows.pool.stopsAt(i)) return false;
    const In* row = rowOf<In>(rows, block, i);
    if (finite) {
      for (int64_t f = 0; f < block.features; ++f) {
        sums[f] = sums[f] + toFixed(widen(row[f * rows.stride]), shifts[f]);
      }
    } else {
      for (int64_t f = 0; f < block.features; ++f) {
        const FixedSum<Number> sum(largest[f], block.count);
        sums[f] = sums[f] + sum.term(widen(row[f * rows.stride]));
      }
    }
  }
  for (int64_t f = 0; f < block.features; ++f) {
    const FixedSum<Number> sum(largest[f], block.count);
    results[f] = sum.result(sums[f], mode == Reduction::kMean);
  }
  return true;
}

template <class In>
bool FeatureReducer::extreme(const Rows& rows, const Block& block, Reduction mode,
                             double* results) {
  using Number = Compute<In>;
  const bool minimum = mode == Reduction::kMin;
  OrderKey<Number> most[kBlock];
  std::fill_n(most, block.features, kMinKey<Number>);
  for (int64_t i = 0; i < block.count; ++i) {
    if (rows.pool.stopsAt(i)) return false;
    const In* row = rowOf<In>(rows, block, i);
    for (int64_t f = 0; f < block.features; ++f) {
      most[f] = std::max(most[f], orderKey(widen(row[f * rows.stride]), minimum));
    }
  }
  for (int64_t f = 0; f < block.features; ++f) {
    results[f] = static_cast<double>(fromOrderKey<Number>(most[f], minimum));
  }
  return true;
}

template <class Out>
void FeatureReducer::write(const double* results, int64_t count, std::byte* out, int64_t stride) {
  auto* row = reinterpret_cast<Out*>(out);
  for (int64_t f = 0; f < count; ++f) row[f * stride] = narrow<Out>(results[f]);
}

FeatureReducer::FeatureReducer(const CpuState& state, const PointClouds& points,
                               const Features& features, Reduction mode, DType out)
    : rows_{state.pool,
            static_cast<const std::byte*>(features.data),
            PointRows(points, features.stride[0], features.stride[1]),
            features.stride[2],
            sizeOf(features.dtype),
            std::max<int64_t>(features.count - 1, 0) * features.stride[2] * sizeOf(features.dtype)},
      features_(features.count),
      mode_(mode),
      out_size_(sizeOf(out)) {
  visitFloat(features.dtype, [&](auto tag) {
    using In = typename decltype(tag)::type;
    reduce_ = mode == Reduction::kMax || mode == Reduction::kMin ? extreme<In> : sum<In>;
    copy_ = visitFloat(
        out, [](auto out_tag) -> Copy { return copyRows<In, typename decltype(out_tag)::type>; });
  });
  write_ = visitFloat(out, [](auto tag) -> Write { return write<typename decltype(tag)::type>; });
  const bool sums = mode == Reduction::kSum || mode == Reduction::kMean;
  const bool adjoin = features.stride[2] == 1 || features.count == 1;
  if (sums && adjoin && features.dtype == DType::F32 && out == DType::F32) {
    sum_rows_ = sumRowsFor(state.simd);
  }
}

void FeatureReducer::reduceAny(const int32_t* points, int64_t count, const FeatureRow& out) const {
  double results[kBlock];
  for (int64_t first = 0; first < features_; first += kBlock) {
    const int64_t features = std::min(features_ - first, kBlock);
    if (!reduce_(rows_, {points, count, first, features}, mode_, results)) return;
    write_(results, features, out.data + first * out.stride * out_size_, out.stride);
  }
}

}  // namespace rbc::cpu
