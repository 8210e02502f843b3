// Builds cases of rbcStatistics, and checks results.
#include "support/statistics_case.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/random.h"
#include "support/statistics_reference.h"

namespace support {
namespace {

// One number of a kind, for a dtype that may round it or be unable to represent it.
long double numberFor(const StatisticsCase& c, Random& random, int64_t channel) {
  const bool wide = same(c.dtype, kF64);
  const double normal = random.uniform(-1, 1) + random.uniform(-1, 1) + random.uniform(-1, 1);
  switch (c.numbers) {
    case Numbers::kNormal: return normal;
    case Numbers::kFar: return 1e6 + 5 * normal;
    case Numbers::kSpike: return random.chance(0.01) ? 1e30 : normal;
    case Numbers::kTiny:
      return std::ldexp(std::floor(100 * normal), wide ? -1074 : same(c.dtype, kF32) ? -149 : -24);
    case Numbers::kEqual: return 0.1L + static_cast<double>(channel);
    case Numbers::kTwo: return random.chance(0.3) ? 1.0 : 2.0;
    case Numbers::kZeros: return random.chance(0.7) ? (random.chance(0.5) ? 0.0 : -0.0) : normal;
    case Numbers::kWide: {
      const int most = wide ? 1000 : same(c.dtype, kF32) || same(c.dtype, kBF16) ? 120 : 14;
      return std::ldexp(normal, static_cast<int>(random.below(2 * most)) - most);
    }
    case Numbers::kNotFinite: {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      if (random.chance(0.8)) return normal;
      return random.chance(0.3) ? std::nan("") : random.chance(0.5) ? kInfinity : -kInfinity;
    }
    case Numbers::kHuge: {
      constexpr double kHuge[] = {1e200, -1e200, 1e-170, -1e-170};
      return wide ? kHuge[random.below(4)] : 1e38 * normal / 3;
    }
  }
  return 0;
}

uint64_t elementFor(const StatisticsCase& c, Random& random, int64_t channel) {
  if (isFloat(c.dtype)) return encodeFloat(c.dtype, numberFor(c, random, channel));
  if (same(c.dtype, kBool)) return random.bits() % 2;
  const uint64_t mask = c.dtype.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << c.dtype.bits) - 1;
  return (random.bits() >> (c.numbers == Numbers::kTwo ? 62 : 0)) & mask;
}

}  // namespace

std::string describe(const StatisticsCase& c) {
  std::ostringstream text;
  text << "statistics seed " << c.seed << " " << nameOf(c.dtype) << " numbers "
       << static_cast<int>(c.numbers) << " batch " << static_cast<int>(c.batch) << " " << c.rows
       << "x" << c.samples << "x" << c.channels << " " << nameOf(c.layout)
       << (c.per_row ? " per row" : "") << (c.masked ? " masked" : "") << " ddof " << c.ddof
       << " levels " << c.levels.size();
  return text.str();
}

std::vector<OutputSpec> StatisticsInputs::outputs() const {
  std::vector<int64_t> rows;
  if (c.per_row) rows.push_back(static_cast<int64_t>(groups.size()));
  std::vector<int64_t> levels = rows;
  levels.push_back(static_cast<int64_t>(c.levels.size()));
  rows.push_back(c.channels);
  levels.push_back(c.channels);
  std::vector<OutputSpec> specs;
  const auto add = [&](const char* name, rbcDType dtype, const std::vector<int64_t>& shape) {
    if (c.without.count(name) == 0) specs.push_back({name, dtype, shape, c.out_layout});
  };
  add("count", kI64, rows);
  add("nonfinite", kI64, rows);
  add("min", kF64, rows);
  add("max", kF64, rows);
  add("mean", kF64, rows);
  add("std", kF64, rows);
  if (!c.levels.empty()) add("quantiles", kF64, levels);
  return specs;
}

double valueOf(rbcDType dtype, uint64_t bits) {
  if (isFloat(dtype)) return static_cast<double>(decodeFloat(dtype, bits));
  if (dtype.code != RBC_DTYPE_INT) return static_cast<double>(bits);
  const int unused = 64 - dtype.bits;
  return static_cast<double>(static_cast<int64_t>(bits << unused) >> unused);
}

StatisticsInputs inputsOf(const StatisticsCase& c) {
  Random random(c.seed + 77);
  StatisticsInputs in;
  in.c = c;
  const bool packed = c.batch == Batch::kPacked;
  std::vector<int64_t> shape = {c.samples, c.channels};
  if (packed) shape = {c.rows * c.samples + 3, c.channels};  // some after the last row
  if (c.batch == Batch::kPadded || c.batch == Batch::kLengths) {
    shape = {c.rows, c.samples, c.channels};
  }
  if (c.batch == Batch::kImages) shape = {c.rows, c.samples, 3, 2, c.channels};
  in.values = Array(c.dtype, shape, c.layout, c.flush);
  int64_t next = 0;
  in.values.each([&](std::byte* p) {
    const uint64_t bits = elementFor(c, random, next++ % std::max<int64_t>(c.channels, 1));
    std::memcpy(p, &bits, static_cast<size_t>(sizeOf(c.dtype)));
  });
  shape.pop_back();
  std::vector<uint64_t> mask;
  if (c.masked) {
    in.mask = Array(c.seed % 2 == 0 ? kBool : kU8, shape, Layout::kContiguous, c.flush);
    in.mask.each([&](std::byte* p) {
      const auto on = static_cast<uint8_t>(random.chance(0.7) ? 1 : 0);
      std::memcpy(p, &on, 1);
    });
    mask = in.mask.elements();
  }

  // Rows of the batch as ranges of samples, in row-major order.
  const int64_t rows = c.batch == Batch::kNone ? 1 : c.rows;
  const int64_t per_row = c.batch == Batch::kImages ? c.samples * 6 : c.samples;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  std::vector<uint64_t> lengths;
  std::vector<uint64_t> offsets = {0};
  for (int64_t row = 0; row < rows; ++row) {
    int64_t length = per_row;
    if (c.batch == Batch::kLengths) length = random.below(per_row + 1);
    if (packed) length = random.below(2 * per_row + 1);
    const auto begin = static_cast<int64_t>(offsets.back());
    if (packed) length = std::min(length, c.rows * c.samples - begin);
    ranges.emplace_back(packed ? begin : row * per_row, length);
    lengths.push_back(static_cast<uint64_t>(length));
    offsets.push_back(offsets.back() + static_cast<uint64_t>(length));
  }
  const rbcDType index = c.seed % 3 == 0 ? kI32 : kI64;
  if (c.batch == Batch::kLengths) in.lengths = arrayOf(index, {rows}, lengths);
  if (packed) in.offsets = arrayOf(index, {rows + 1}, offsets);

  const std::vector<uint64_t> elements = in.values.elements();
  const auto channels = static_cast<size_t>(c.channels);
  in.groups.assign(c.per_row ? static_cast<size_t>(rows) : 1, {});
  for (auto& group : in.groups) group.resize(channels);
  for (size_t row = 0; row < ranges.size(); ++row) {
    auto& group = in.groups[c.per_row ? row : 0];
    for (int64_t i = ranges[row].first; i < ranges[row].first + ranges[row].second; ++i) {
      const auto sample = static_cast<size_t>(i);
      if (!mask.empty() && mask[sample] == 0) continue;
      for (size_t k = 0; k < channels; ++k) {
        group[k].push_back(valueOf(c.dtype, elements[sample * channels + k]));
      }
    }
  }
  return in;
}

PlacedStatistics::PlacedStatistics(const Context& context, const StatisticsInputs& in, bool cuda)
    : values_(context, in.values, cuda),
      outputs_(context, in.outputs(), in.c.flush, cuda),
      levels_(in.c.levels),
      extent_(static_cast<int64_t>(in.c.levels.size())) {
  const auto place = [&](std::optional<Placed>& placed, const Array& array) {
    if (array.ndim() != 0) placed.emplace(context, array, cuda);
    return placed ? placed->get() : nullptr;
  };
  params_.flags = in.c.per_row ? RBC_STATISTICS_FLAG_PER_ROW : 0;
  params_.ddof = in.c.ddof;
  params_.sample_mask = place(mask_, in.mask);
  params_.lengths = place(lengths_, in.lengths);
  params_.batch_offsets = place(offsets_, in.offsets);
  levels_tensor_ = {levels_.data(), {RBC_DEVICE_CPU, 0}, 1, kF64, &extent_, nullptr, 0};
  params_.levels = levels_.empty() ? nullptr : &levels_tensor_;
  result_.count = outputs_.get("count");
  result_.nonfinite = outputs_.get("nonfinite");
  result_.min = outputs_.get("min");
  result_.max = outputs_.get("max");
  result_.mean = outputs_.get("mean");
  result_.std = outputs_.get("std");
  result_.quantiles = outputs_.get("quantiles");
}

size_t PlacedStatistics::workspaceSize(const Context& context) const {
  size_t bytes = 0;
  require(rbcStatisticsWorkspaceSize(context.get(), values_.get(), &result_, &params_, &bytes));
  return bytes;
}

std::string firstError(const StatisticsInputs& in, const VoxelOutput& output) {
  const StatisticsCase& c = in.c;
  for (size_t group = 0; group < in.groups.size(); ++group) {
    for (size_t k = 0; k < static_cast<size_t>(c.channels); ++k) {
      const ExactStatistics exact(in.groups[group][k]);
      const auto at = [&](const char* name) {
        return output.at(name)[group * static_cast<size_t>(c.channels) + k];
      };
      const auto wrong = [&](const char* name) {
        return std::string(name) + " of group " + std::to_string(group) + ", channel " +
               std::to_string(k);
      };
      const auto wants = [&](const char* name) { return c.without.count(name) == 0; };
      if (wants("count") && at("count") != static_cast<uint64_t>(exact.count())) {
        return wrong("count");
      }
      if (wants("nonfinite") && at("nonfinite") != static_cast<uint64_t>(exact.nonfinite())) {
        return wrong("nonfinite");
      }
      if (wants("min") && at("min") != exact.min()) return wrong("min");
      if (wants("max") && at("max") != exact.max()) return wrong("max");
      if (wants("mean") && !exact.isMean(at("mean"))) return wrong("mean");
      if (wants("std") && !exact.isStd(at("std"), c.ddof)) return wrong("std");
      for (size_t q = 0; q < c.levels.size() && wants("quantiles"); ++q) {
        const size_t place = (group * c.levels.size() + q) * static_cast<size_t>(c.channels) + k;
        if (output.at("quantiles")[place] != exact.quantile(c.levels[q])) {
          return wrong("quantiles") + ", level " + std::to_string(c.levels[q]);
        }
      }
    }
  }
  return "";
}

}  // namespace support
