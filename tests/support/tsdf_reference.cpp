// Compares every voxel with every ray, and the output of a call with the result.
#include "support/tsdf_reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>

namespace support {
namespace {

double roundedTo(rbcDType dtype, double x) {
  return static_cast<double>(decodeFloat(dtype, encodeFloat(dtype, static_cast<long double>(x))));
}

// Whether the points place + s * direction, with s from begin to end, meet the box.
bool meets(const Vector3& low, const Vector3& high, const Vector3& place, const Vector3& direction,
           double begin, double end) {
  for (size_t k = 0; k < 3; ++k) {
    if (direction[k] == 0) {
      if (place[k] < low[k] || place[k] > high[k]) return false;
      continue;
    }
    const double a = (low[k] - place[k]) / direction[k];
    const double b = (high[k] - place[k]) / direction[k];
    begin = std::max(begin, std::min(a, b));
    end = std::min(end, std::max(a, b));
  }
  return begin <= end;
}

}  // namespace

double TsdfReference::certainShare() const {
  const auto certain = [](const TsdfObserved& v) { return v.certain(); };
  return static_cast<double>(std::count_if(voxels.begin(), voxels.end(), certain)) /
         static_cast<double>(voxels.size());
}

TsdfReference tsdfReference(const TsdfScene& scene) {
  const rbcDType number = same(scene.points_dtype, kF64) ? kF64 : kF32;
  // Bound on the error of numbers of one size after a few operations.
  const double unit = same(number, kF64) ? 0x1p-48 : 0x1p-19;
  const auto rounded = [&](double x) { return roundedTo(number, x); };
  const double truncation = rounded(scene.truncation);
  Vector3 origin, size;
  for (size_t k = 0; k < 3; ++k) {
    origin[k] = rounded(scene.grid.origin[k]);
    size[k] = rounded(scene.grid.voxel_size[k]);
  }

  TsdfReference result;
  result.voxels.resize(static_cast<size_t>(scene.voxels()));
  for (size_t b = 0; b < scene.clouds.size(); ++b) {
    int64_t least = 0;
    int64_t most = 0;
    for (Vector3 p : scene.clouds[b]) {
      Vector3 sensor = scene.sensors[scene.sensors.size() == 1 ? 0 : b];
      double square = 0;
      double scale = truncation;
      for (size_t k = 0; k < 3; ++k) {
        p[k] = roundedTo(scene.points_dtype, p[k]);
        sensor[k] = rounded(roundedTo(scene.sensors_dtype, sensor[k]));
        square += (p[k] - sensor[k]) * (p[k] - sensor[k]);
        scale = std::max({scale, std::fabs(p[k]), std::fabs(sensor[k]), std::fabs(origin[k])});
      }
      if (!(square > 0) || !std::isfinite(square)) {
        ++least;
        ++most;
        continue;
      }
      const double r = std::sqrt(square);
      const double error = unit * (scale + r);
      const double w = scene.weighting == RBC_VOXELIZE_TSDF_WEIGHTING_CONSTANT
                           ? 1
                           : std::clamp(1 / square, 0x1p-32, 1.0);
      const double begin = scene.carve ? -r : std::max(-r, -truncation);
      Vector3 u;
      for (size_t k = 0; k < 3; ++k) u[k] = (p[k] - sensor[k]) / r;

      bool surely = false;
      bool perhaps = false;
      size_t i = 0;
      for (int64_t x = 0; x < scene.grid.shape[0]; ++x) {
        for (int64_t y = 0; y < scene.grid.shape[1]; ++y) {
          for (int64_t z = 0; z < scene.grid.shape[2]; ++z, ++i) {
            const double index[] = {double(x), double(y), double(z)};
            Vector3 low, high, in_low, in_high;
            double d = 0;
            for (size_t k = 0; k < 3; ++k) {
              low[k] = origin[k] + index[k] * size[k];
              high[k] = low[k] + size[k];
              d += (p[k] - (low[k] + size[k] / 2)) * u[k];
              in_low[k] = low[k] + error;
              in_high[k] = high[k] - error;
              low[k] -= error;
              high[k] += error;
            }
            if (!meets(low, high, p, u, begin - error, truncation + error)) continue;
            TsdfObserved& voxel = result.voxels[i];
            perhaps = true;
            voxel.most_weight += w;
            if (!meets(in_low, in_high, p, u, begin + error, truncation - error)) continue;
            surely = true;
            voxel.weight += w;
            voxel.distance += w * std::clamp(d, -truncation, truncation);
            voxel.error = std::max(voxel.error, error);
          }
        }
      }
      if (!surely) ++most;
      if (!perhaps) ++least;
    }
    result.least_dropped.push_back(least);
    result.most_dropped.push_back(most);
  }
  return result;
}

std::string firstError(const TsdfScene& scene, const TsdfReference& reference,
                       const TsdfVolume& before, const TsdfOutput& run) {
  std::ostringstream message;
  for (size_t b = 0; b < run.dropped.size(); ++b) {
    if (run.dropped[b] < reference.least_dropped[b] || run.dropped[b] > reference.most_dropped[b]) {
      message << "dropped " << run.dropped[b] << " of cloud " << b << ", expected "
              << reference.least_dropped[b] << " to " << reference.most_dropped[b];
      return message.str();
    }
  }
  for (size_t i = 0; i < reference.voxels.size(); ++i) {
    const TsdfObserved& v = reference.voxels[i];
    const auto weight = static_cast<double>(run.volume.weight[i]);
    const auto old_weight = static_cast<double>(before.weight[i]);
    const auto limited = [&](double w) { return std::min(w, scene.max_weight); };
    const double slack = 1e-5 * (v.most_weight + old_weight);
    message << "voxel " << i << ": ";
    if (v.most_weight == 0) {
      if (std::memcmp(&run.volume.tsdf[i], &before.tsdf[i], sizeof(float)) != 0 ||
          std::memcmp(&run.volume.weight[i], &before.weight[i], sizeof(float)) != 0) {
        message << "changed, without an observation";
        return message.str();
      }
    } else if (weight < limited(old_weight + v.weight) - slack ||
               weight > (v.weight > 0 ? limited(old_weight + v.most_weight)
                                      : std::max(old_weight, limited(old_weight + v.most_weight))) +
                            slack) {
      message << "weight " << weight << ", expected " << old_weight << " and " << v.weight << " to "
              << v.most_weight;
      return message.str();
    } else if (v.certain()) {
      const double old_part = old_weight > 0 ? old_weight * static_cast<double>(before.tsdf[i]) : 0;
      const double expected = (old_part + v.distance) / (old_weight + v.weight);
      const double error = v.error + 0x1p-22 * scene.truncation;
      const auto got = static_cast<double>(run.volume.tsdf[i]);
      if (!(std::fabs(got - expected) <= error)) {
        message << "tsdf " << got << ", expected " << expected << " +- " << error;
        return message.str();
      }
    }
    message.str("");
  }
  return {};
}

std::string firstError(const TsdfScene& scene, const TsdfReference& reference,
                       const TsdfVolume& before, const TsdfRun& run) {
  if (run.status != RBC_STATUS_SUCCESS) return run.message;
  if (run.stray_writes) return "wrote outside its elements";
  return firstError(scene, reference, before, TsdfOutput{run.volume, run.dropped});
}

}  // namespace support
