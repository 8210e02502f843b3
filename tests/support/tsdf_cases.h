// Scenes for rbcVoxelizeTsdf: simple ones with known distances, and random ones.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "random.h"
#include "tsdf_scene.h"

namespace support {

// One cloud, without a batch, in a grid of unit voxels at the origin.
TsdfScene plainScene(std::array<int64_t, 3> shape, Vector3 sensor, std::vector<Vector3> points);

// The surface of a ball, seen from a place: the first point on each ray from there, for rays whose
// direction along z is at most `most`.
std::vector<Vector3> seenBall(const Vector3& centre, double radius, const Vector3& sensor,
                              int count, double most = 1);

// A ball of radius 1 in a grid of 40^3 over [-2, 2].
TsdfScene ballScene(const Vector3& sensor, int points, double most = 1);

// A volume with earlier observations in some voxels.
TsdfVolume randomVolume(const TsdfScene& scene, Random& random);

// Anything that the interface allows, with numbers of moderate size.
TsdfScene randomScene(uint64_t seed);

// Numbers of every size: random bits.
TsdfScene wildScene(uint64_t seed);

// ---- as cases, for operation_tests.h ------------------------------------------------------------

struct TsdfCase {
  std::string name;
  TsdfScene scene;
  TsdfVolume before;
  bool wild = false;  // not checked against the reference
};
struct TsdfInputs {
  TsdfCase c;
};

inline TsdfInputs inputsOf(const TsdfCase& c) { return {c}; }
inline std::string describe(const TsdfCase& c) { return c.name; }
inline PlacedTsdf placedOf(const Context& context, const TsdfInputs& in) {
  return PlacedTsdf(context, in.c.scene, in.c.before);
}
std::string firstError(const TsdfInputs& in, const TsdfOutput& output);

// At the other inaccessible page.
inline void flushOtherwise(TsdfCase* c) {
  c->scene.flush = c->scene.flush == Flush::kEnd ? Flush::kBegin : Flush::kEnd;
}

TsdfCase randomTsdfCase(uint64_t seed);
TsdfCase wildTsdfCase(uint64_t seed);

// A ball, seen with each kind of ray and weight, in every form and dtype of points.
std::vector<TsdfCase> tsdfCases();

// Thousands of rays, together and apart, short and long, in grids of every shape: too many for the
// reference.
std::vector<TsdfCase> manyRayCases();

}  // namespace support
