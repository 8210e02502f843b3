// The kernel that farthest points run, on three devices.
#include "points/select_farthest.h"

#include "select_table.h"

namespace {

using rbc::DType;
using rbc::FarthestProblem;
using select_table::addressOf;

FarthestProblem clouds(int64_t count, int64_t points, DType dtype = DType::F32) {
  FarthestProblem p = {};
  p.points.clouds = count;
  p.points.rows = points;
  p.points.dtype = dtype;
  return p;
}

// Packed clouds with `points` points in total.
FarthestProblem packed(int64_t count, int64_t points) {
  FarthestProblem p = clouds(count, points);
  p.points.offsets.data = addressOf(0);
  return p;
}

constexpr select_table::Row<FarthestProblem> kRows[] = {
    {"1 cloud of 1000 points",
     [] { return clouds(1, 1000); },
     {"farthest_kept (f32, 1024 points per block), grid 1 x 256, shared 21248 bytes"}},
    {"1 cloud of 4096 points",
     [] { return clouds(1, 4096); },
     {"farthest_kept (f32, 4096 points per block), grid 1 x 512, shared 71936 bytes"}},
    {"1 cloud of 8192 points",
     [] { return clouds(1, 8192); },
     {"farthest_kept (f32, 8192 points per block), grid 1 x 512, shared 137472 bytes"}},
    {"1 cloud of 20000 points",
     [] { return clouds(1, 20000); },
     {"farthest_workspace (f32, in the workspace), grid 1 x 512, shared 21520 bytes; not "
      "farthest_kept: points: 20000 in a cloud, more than its blocks keep",
      "farthest_kept (f32, 8192 points per block), grid 4 x 512, shared 137472 bytes",
      "farthest_workspace (f32, in the workspace), grid 1 x 512, shared 21520 bytes; not "
      "farthest_kept: points: 20000 in a cloud, more than its blocks keep"}},
    {"1 cloud of 100000 points",
     [] { return clouds(1, 100000); },
     {"farthest_workspace (f32, in the workspace), grid 1 x 512, shared 21520 bytes; not "
      "farthest_kept: points: 100000 in a cloud, more than its blocks keep",
      "farthest_kept (f32, 8192 points per block), grid 16 x 512, shared 137472 bytes",
      "farthest_workspace (f32, in the workspace), grid 1 x 512, shared 21520 bytes; not "
      "farthest_kept: points: 100000 in a cloud, more than its blocks keep"}},
    {"1 cloud of a million points",
     [] { return clouds(1, 1000000); },
     {"farthest_workspace (f32, in the workspace), grid 1 x 512, shared 21520 bytes; not "
      "farthest_kept: points: 1000000 in a cloud, more than its blocks keep",
      "farthest_workspace (f32, in the workspace), grid 16 x 512, shared 36880 bytes; not "
      "farthest_kept: points: 1000000 in a cloud, more than its blocks keep",
      "farthest_workspace (f32, in the workspace), grid 1 x 512, shared 21520 bytes; not "
      "farthest_kept: points: 1000000 in a cloud, more than its blocks keep"}},
    {"16 clouds of 20000 points",
     [] { return clouds(16, 20000); },
     {"farthest_workspace (f32, in the workspace), grid 16 x 512, shared 21520 bytes; not "
      "farthest_kept: points: 20000 in a cloud, more than its blocks keep",
      "farthest_kept (f32, 8192 points per block), grid 64 x 512, shared 137472 bytes",
      "farthest_workspace (f32, in the workspace), grid 16 x 512, shared 21520 bytes; not "
      "farthest_kept: points: 20000 in a cloud, more than its blocks keep"}},
    {"32 clouds of 2048 points",
     [] { return clouds(32, 2048); },
     {"farthest_kept (f32, 4096 points per block), grid 32 x 512, shared 71936 bytes"}},
    {"256 clouds of 1024 points",
     [] { return clouds(256, 1024); },
     {"farthest_kept (f32, 1024 points per block), grid 256 x 256, shared 21248 bytes"}},
    {"256 clouds of 20000 points",
     [] { return clouds(256, 20000); },
     {"farthest_workspace (f32, in the workspace), grid 256 x 512, shared 21520 bytes; not "
      "farthest_kept: points: 20000 in a cloud, more than its blocks keep",
      "farthest_kept (f32, 8192 points per block), grid 1024 x 512, shared 137472 bytes",
      "farthest_workspace (f32, in the workspace), grid 256 x 512, shared 21520 bytes; not "
      "farthest_kept: points: 20000 in a cloud, more than its blocks keep"}},
    {"256 clouds of 100000 points",
     [] { return clouds(256, 100000); },
     {"farthest_workspace (f32, in the workspace), grid 256 x 512, shared 21520 bytes; not "
      "farthest_kept: points: 100000 in a cloud, more than its blocks keep"}},
    {"32 packed clouds of 2048 points on average",
     [] { return packed(32, 32 * 2048); },
     {"farthest_kept (f32, 4096 points per block), grid 32 x 512, shared 71936 bytes"}},
    {"32 packed clouds of 8192 points on average",
     [] { return packed(32, 32 * 8192); },
     {"farthest_workspace (f32, in the workspace), grid 32 x 512, shared 21520 bytes; not "
      "farthest_kept: points: 16384 in a cloud, more than its blocks keep",
      "farthest_kept (f32, 8192 points per block), grid 64 x 512, shared 137472 bytes",
      "farthest_workspace (f32, in the workspace), grid 32 x 512, shared 21520 bytes; not "
      "farthest_kept: points: 16384 in a cloud, more than its blocks keep"}},
    {"1 cloud of 1000 points, f64",
     [] { return clouds(1, 1000, DType::F64); },
     {"farthest_kept (f64, 1024 points per block), grid 1 x 256, shared 36096 bytes"}},
    {"1 cloud of 8192 points, f64",
     [] { return clouds(1, 8192, DType::F64); },
     {"farthest_workspace (f64, in the workspace), grid 1 x 512, shared 30224 bytes; not "
      "farthest_kept: device: too little shared memory for 8192 points per block",
      "farthest_kept (f64, 8192 points per block), grid 1 x 256, shared 219392 bytes",
      "farthest_workspace (f64, in the workspace), grid 1 x 512, shared 30224 bytes; not "
      "farthest_kept: device: too little shared memory for 8192 points per block"}},
    {"1 cloud of 200000 points, f64",
     [] { return clouds(1, 200000, DType::F64); },
     {"farthest_workspace (f64, in the workspace), grid 1 x 512, shared 30224 bytes; not "
      "farthest_kept: device: too little shared memory for 8192 points per block",
      "farthest_workspace (f64, in the workspace), grid 16 x 512, shared 53264 bytes; not "
      "farthest_kept: points: 200000 in a cloud, more than its blocks keep",
      "farthest_workspace (f64, in the workspace), grid 1 x 512, shared 30224 bytes; not "
      "farthest_kept: device: too little shared memory for 8192 points per block"}},
};

}  // namespace

TEST_CASE("select farthest points: each call runs the kernel of the table, for its reason") {
  select_table::check("farthest_points", kRows,
                      [](const FarthestProblem& p, const rbc::cuda::LaunchDevice& device) {
                        return rbc::cuda::selectFarthest(p, device);
                      });
}
