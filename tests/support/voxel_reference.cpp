#include "voxel_reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace support {
namespace {

__extension__ typedef __int128 Int128;

// ---- the voxels of points -----------------------------------------------------------------------

using Place = std::array<int64_t, 4>;  // cloud, x, y, z
// The rows of each voxel's points, ascending; the clouds' rows are consecutive.
using Voxels = std::map<Place, std::vector<int64_t>>;

// (p - origin) / voxel_size in the type that points are computed in.
template <class Number>
long double scaledIn(long double p, double origin, double voxel_size) {
  const auto difference = static_cast<Number>(static_cast<Number>(p) - static_cast<Number>(origin));
  return static_cast<Number>(difference / static_cast<Number>(voxel_size));
}

bool placeOf(const CloudCase& c, const CloudInputs& in, int64_t row, Place* place) {
  for (int axis = 0; axis < 3; ++axis) {
    const long double p = decodeFloat(c.dtype, CloudInputs::get(in.points, row, axis));
    const long double x = same(c.dtype, kF64)
                              ? scaledIn<double>(p, c.origin[axis], c.voxel_size[axis])
                              : scaledIn<float>(p, c.origin[axis], c.voxel_size[axis]);
    if (!std::isfinite(x)) return false;
    const long double index = std::floor(x);
    if (index < 0 || index > static_cast<long double>(c.shape[axis] - 1)) return false;
    (*place)[static_cast<size_t>(axis) + 1] = static_cast<int64_t>(index);
  }
  return true;
}

// `dropped` gets a count for each cloud.
Voxels voxelsOf(const CloudCase& c, const CloudInputs& in, std::vector<uint64_t>* dropped) {
  Voxels voxels;
  for (int64_t b = 0; b < c.clouds; ++b) {
    dropped->push_back(0);
    for (int64_t row = in.first(b); row < in.first(b) + in.count(b); ++row) {
      Place place = {b};
      if (placeOf(c, in, row, &place)) {
        voxels[place].push_back(row);
      } else {
        ++dropped->back();
      }
    }
  }
  return voxels;
}

// ---- reductions ---------------------------------------------------------------------------------

// 2^(E + ceil(log2 n) - 62), or - 124 for f64, as an exponent.
int quantumOf(long double largest, size_t n, bool wide) {
  int log2 = 0;
  while ((size_t{1} << log2) < n) ++log2;
  return std::ilogb(largest) + 1 + log2 - (wide ? 124 : 62);
}

// The sum in fixed point, rounded to f64.
double fixedSum(const std::vector<long double>& values, bool wide) {
  long double largest = 0;
  for (const long double v : values) largest = std::max(largest, std::fabs(v));
  if (largest == 0) return 0;
  const int quantum = quantumOf(largest, values.size(), wide);
  Int128 sum = 0;
  for (const long double v : values) {
    // Above 2^63, the remaining bits (at most 53) are an integer already.
    sum += static_cast<Int128>(std::rint(std::scalbn(v, -quantum)));
  }
  // The conversion rounds to nearest even. The scaling does not round again: terms and sum are
  // multiples of the smallest f64.
  return std::scalbn(static_cast<double>(sum), quantum);
}

double sumOf(const std::vector<long double>& values, bool wide) {
  bool positive = false;
  bool negative = false;
  for (const long double v : values) {
    positive = positive || (std::isinf(v) && v > 0);
    negative = negative || (std::isinf(v) && v < 0);
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (positive && negative) return std::numeric_limits<double>::quiet_NaN();
  if (positive || negative) return positive ? kInfinity : -kInfinity;
  return fixedSum(values, wide);
}

// Whether a is less than b, with -0 less than 0.
bool less(long double a, long double b) {
  return a == b ? std::signbit(a) && !std::signbit(b) : a < b;
}

long double reduce(const std::vector<long double>& values, int32_t mode, bool wide) {
  for (const long double v : values) {
    if (std::isnan(v)) return v;
  }
  switch (mode) {
    case RBC_REDUCE_SUM: return sumOf(values, wide);
    case RBC_REDUCE_MEAN: return sumOf(values, wide) / static_cast<double>(values.size());
    case RBC_REDUCE_MAX: return *std::max_element(values.begin(), values.end(), less);
    default: return *std::min_element(values.begin(), values.end(), less);
  }
}

// A column of the features of some rows, reduced and rounded to a dtype.
uint64_t reducedBits(const CloudInputs& in, const std::vector<int64_t>& rows, int64_t column,
                     int32_t mode, rbcDType out) {
  const Array& array = in.values();
  std::vector<long double> values;
  for (const int64_t row : rows)
    values.push_back(decodeFloat(array.dtype(), CloudInputs::get(array, row, column)));
  return encodeFloat(out, reduce(values, mode, same(array.dtype(), kF64)));
}

// ---- descriptions of errors ---------------------------------------------------------------------

std::string elementText(rbcDType dtype, uint64_t bits) {
  char text[80];
  const auto raw = static_cast<unsigned long long>(bits);
  if (isFloat(dtype)) {
    std::snprintf(text, sizeof text, "0x%llx (%.9Lg)", raw, decodeFloat(dtype, bits));
  } else {
    std::snprintf(text, sizeof text, "0x%llx", raw);
  }
  return text;
}

std::string firstDifference(const std::vector<OutputSpec>& specs, const VoxelOutput& expected,
                            const VoxelOutput& actual) {
  if (actual.size() != specs.size()) return "some output is missing, or one too many";
  for (const OutputSpec& spec : specs) {
    const std::vector<uint64_t>& want = expected.at(spec.name);
    if (actual.count(spec.name) == 0) return spec.name + " is missing";
    const std::vector<uint64_t>& got = actual.at(spec.name);
    if (got.size() != want.size()) return spec.name + ": wrong size";
    for (size_t i = 0; i < want.size(); ++i) {
      if (got[i] == want[i]) continue;
      return spec.name + ": element " + std::to_string(i) + " is " +
             elementText(spec.dtype, got[i]) + ", expected " + elementText(spec.dtype, want[i]);
    }
  }
  return "";
}

}  // namespace

int64_t countVoxels(const CloudCase& c, const CloudInputs& in) {
  std::vector<uint64_t> dropped;
  return static_cast<int64_t>(voxelsOf(c, in, &dropped).size());
}

VoxelOutput expectedOf(const VoxelizeInputs& in) {
  const VoxelizeCase& c = in.c;
  VoxelOutput output;
  std::vector<uint64_t> dropped;
  const Voxels voxels = voxelsOf(c, in, &dropped);
  const int64_t channels = reducesFeatures(c.mode) ? c.reduced() : 1;
  std::vector<uint64_t>& out = output["out"];
  out.assign(static_cast<size_t>(c.clouds * c.shape[0] * c.shape[1] * c.shape[2] * channels),
             encode(c.out, c.fill_value));
  for (const auto& [place, rows] : voxels) {
    const int64_t voxel =
        ((place[0] * c.shape[0] + place[1]) * c.shape[1] + place[2]) * c.shape[2] + place[3];
    for (int64_t k = 0; k < channels; ++k) {
      out[static_cast<size_t>(voxel * channels + k)] =
          c.mode == RBC_REDUCE_OCCUPANCY ? encode(c.out, 1)
          : c.mode == RBC_REDUCE_COUNT   ? encode(c.out, static_cast<long double>(rows.size()))
                                         : reducedBits(in, rows, k, c.mode, c.out);
    }
  }
  if (c.dropped) output["num_points_outside"] = dropped;
  return output;
}

VoxelOutput expectedOf(const SparseInputs& in) {
  const SparseCase& c = in.c;
  std::vector<uint64_t> dropped;
  const Voxels voxels = voxelsOf(c, in, &dropped);
  std::vector<const Voxels::value_type*> ordered;
  for (const auto& voxel : voxels) ordered.push_back(&voxel);
  if (c.order == RBC_VOXELIZE_SPARSE_ORDER_FIRST_POINT) {
    std::sort(ordered.begin(), ordered.end(),
              [](const auto* a, const auto* b) { return a->second.front() < b->second.front(); });
  }
  const auto capacity = static_cast<size_t>(in.capacity);
  const size_t kept = std::min(ordered.size(), capacity);
  const auto F = static_cast<size_t>(c.reduced());
  const auto P = in.wants("grouped") ? static_cast<size_t>(c.max_points) : 0;

  // The output without any voxel.
  VoxelOutput output;
  output["coords"].assign(capacity * 4, encode(kI32, -1));
  output["num_voxels"] = {kept};
  output["points_per_voxel"].assign(capacity, 0);
  output["features"].assign(capacity * F, 0);
  output["grouped"].assign(capacity * P * F, 0);
  output["point_to_voxel"].assign(static_cast<size_t>(in.rows()), encode(c.rows, -1));
  output["num_points_outside"] = dropped;
  output["num_voxels_over_capacity"] = {ordered.size() - kept};
  output["num_points_over_capacity"] = {0};
  output["num_points_over_group"] = {0};
  for (size_t v = 0; v < ordered.size(); ++v) {
    const auto& [place, rows] = *ordered[v];
    if (v >= kept) {
      output["num_points_over_capacity"][0] += rows.size();
      continue;
    }
    const size_t taken = P > 0 ? std::min(rows.size(), P) : rows.size();
    output["num_points_over_group"][0] += rows.size() - taken;
    output["points_per_voxel"][v] = taken;
    for (size_t i = 0; i < 4; ++i) output["coords"][v * 4 + i] = static_cast<uint64_t>(place[i]);
    for (const int64_t row : rows) output["point_to_voxel"][static_cast<size_t>(row)] = v;
    for (size_t k = 0; k < F; ++k) {
      const auto column = static_cast<int64_t>(k);
      output["features"][v * F + k] = reducedBits(in, rows, column, c.reduce, c.out);
      for (size_t i = 0; i < std::min(taken, P); ++i) {
        const uint64_t bits = CloudInputs::get(in.values(), rows[i], column);
        output["grouped"][(v * P + i) * F + k] =
            encodeFloat(c.out, decodeFloat(in.values().dtype(), bits));
      }
    }
  }
  for (const char* name : kSparseOptions) {
    if (!in.wants(name)) output.erase(name);
  }
  return output;
}

std::string firstError(const VoxelizeInputs& inputs, const VoxelOutput& output) {
  return firstDifference(inputs.outputs(), expectedOf(inputs), output);
}

std::string firstError(const SparseInputs& inputs, const VoxelOutput& output) {
  return firstDifference(inputs.outputs(), expectedOf(inputs), output);
}

}  // namespace support
