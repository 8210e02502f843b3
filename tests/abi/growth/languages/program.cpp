// A program of release 0.1.0 in C++, by the wrapper of that release.
//
//   program LIBRARY    where LIBRARY is the file that must be loaded
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <robocache/robocache.hpp>

static_assert(RBC_VERSION_MAJOR == 0 && RBC_VERSION_MINOR == 1 && sizeof(rbcResampleParams) == 128,
              "the headers of 0.1.0");

namespace {

void require(bool condition, const std::string& text) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s (last error: %s)\n", text.c_str(), rbcGetLastError());
  std::exit(EXIT_FAILURE);
}

// The same refusal as an exception and as a result.
template <class Throws, class Tells>
void refused(rbcStatus_t status, const std::string& message, Throws throws, Tells tells) {
  try {
    throws();
    require(false, "no exception: " + message);
  } catch (const robocache::Error& error) {
    require(error.status() == status, "the status of: " + message);
    require(std::string(error.what()).rfind(message, 0) == 0, message);
  }
  const auto result = tells();
  require(!result && result.error().status() == status, "a result: " + message);
}

void resample(const robocache::Context& context) {
  const std::vector<float> values = {0, 10, 2, 20, 6, 30};
  std::vector<double> times = {0, 1, 3};
  const std::vector<double> queries = {0.5, 2, 5};
  const std::vector<float> mean = {1, 0};
  const std::vector<float> inv_std = {2, 1};
  std::vector<float> out(6, 9);
  std::vector<uint8_t> mask(3, 9);
  robocache::ResampleOptions options;
  options.check_times = true;
  options.bounds = robocache::Bounds::kFill;
  options.fill_value = -1;
  options.max_gap = 2;
  options.tolerance = 1.5;
  options.mean = mean;
  options.inv_std = inv_std;
  options.groups = {robocache::channels(1, 1, robocache::Method::kPrevious),
                    robocache::channels(0, 1, robocache::Method::kLinear)};
  options.mask = mask;
  const robocache::Tensor result(out, {3, 2});
  robocache::resample(context, {values, {3, 2}}, times, queries, result, options);
  require(out == std::vector<float>{0, 10, 6, 20, -1, -1}, "resample");
  require(mask == std::vector<uint8_t>{1, 1, 0}, "the mask of resample");

  times[2] = 0.5;
  refused(
      RBC_STATUS_INVALID_ARGUMENT, "times: row 0 decreases at index 2 (1 -> 0.5)",
      [&] { robocache::resample(context, {values, {3, 2}}, times, queries, result, options); },
      [&] {
        return robocache::resample<robocache::Expect>(context, {values, {3, 2}}, times, queries,
                                                      result, options);
      });
}

void fuse(const robocache::Context& context) {
  const std::vector<float> rising = {0, 4};
  const std::vector<double> stepping = {10, 20};
  const std::vector<float> late = {100, 200};
  const std::vector<double> times = {0, 2};
  const std::vector<double> queries = {1, 1.5, 1};
  const std::vector<int64_t> lengths = {2};
  std::vector<float> out(9, 9);
  std::vector<uint8_t> mask(9, 9);
  robocache::Stream first({rising, {1, 2, 1}}, times);
  robocache::Stream second({stepping, {1, 2, 1}}, times);
  second.method = robocache::Method::kNearest;
  robocache::Stream third({late, {1, 2, 1}}, times);
  third.clock_offset = 1;
  robocache::FuseOptions options;
  options.query_lengths = lengths;
  options.mask = robocache::Tensor(mask, {1, 3, 3});
  const robocache::Tensor result(out, {1, 3, 3});
  robocache::fuse(context, {first, second, third}, queries, result, options);
  require(out == std::vector<float>{2, 10, 100, 3, 20, 125, 0, 0, 0}, "fuse");
  require(mask == std::vector<uint8_t>{1, 1, 1, 1, 1, 1, 0, 0, 0}, "the mask of fuse");

  third.max_gap = -1;
  refused(
      RBC_STATUS_INVALID_ARGUMENT, "streams[2].max_gap: is -1, expected ",
      [&] { robocache::fuse(context, {first, second, third}, queries, result, options); },
      [&] {
        return robocache::fuse<robocache::Expect>(context, {first, second, third}, queries, result,
                                                  options);
      });
}

void voxelize(const robocache::Context& context) {
  const std::vector<float> points = {1.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.25f, 9, 9, 9};
  const std::vector<int64_t> offsets = {0, 4};
  const rbcVoxelGrid grid = {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}};
  std::vector<int32_t> counted(8, 9);
  std::vector<int64_t> outside(1, 9);
  robocache::VoxelizeOptions options;
  options.mode = robocache::VoxelMode::kCount;
  options.empty_value = -7;
  options.offsets = offsets;
  options.dropped = outside;
  const robocache::Tensor result(counted, {1, 2, 2, 2});
  robocache::voxelize(context, {points, {4, 3}}, grid, result, options);
  require(counted == std::vector<int32_t>{2, -7, -7, -7, 1, -7, -7, -7}, "voxelize");
  require(outside[0] == 1, "the points outside");

  refused(
      RBC_STATUS_SHAPE_MISMATCH, "points: ",
      [&] { robocache::voxelize(context, points, grid, result, options); },
      [&] {
        return robocache::voxelize<robocache::Expect>(context, points, grid, result, options);
      });
}

}  // namespace

int main(int argc, char** argv) {
  require(argc == 2, "usage: program LIBRARY");
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = 2;
  const robocache::Context context(params);
  std::ifstream maps("/proc/self/maps");
  const std::string mapped{std::istreambuf_iterator<char>(maps), {}};
  require(mapped.find(std::string(" ") + argv[1] + "\n") != std::string::npos,
          "the library that was to be tested is loaded");
  resample(context);
  fuse(context);
  voxelize(context);
  params.backend = 77;
  refused(
      RBC_STATUS_INVALID_ARGUMENT, "params: backend is 77, expected ",
      [&] { robocache::Context{params}; },
      [&] { return robocache::Context::create<robocache::Expect>(params); });
  return EXIT_SUCCESS;
}
