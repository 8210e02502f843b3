// RoboCache for C++17: RAII on the C headers. It has no other dependency.
//
//   robocache::Context context;
//   std::vector<float> out(queries.size() * channels);
//   robocache::resample(context, {values, {samples, channels}}, times, queries,
//                       {out, {queries.size(), channels}});
//
//   robocache::Stream pose({poses, {samples, 7}}, times);
//   pose.groups = {robocache::channels(0, 3, robocache::Method::kPchip),
//                  robocache::channels(3, 4, robocache::Method::kSlerp)};
//   robocache::fuse(context, {pose, joints}, queries, fused);
//
//   const rbcVoxelGrid grid = {{-50, -50, -3}, {0.5, 0.5, 0.5}, {200, 200, 16}};
//   robocache::voxelize(context, {points, {point_count, 4}}, grid, {occupied, {200, 200, 16}});
//
// A tensor is memory and a shape. The memory is an array or any object with data() and size(),
// whose size is then checked, or a pointer: {points.data(), {point_count, 4}}. On a GPU:
// {pointer, {point_count, 4}, {}, robocache::cuda()}. Without a shape the tensor has one dimension,
// as `times`.
//
// A call that fails throws an exception of type Error, with the status and the library's message. A
// call can return a Result instead; with -fno-exceptions every call does:
//
//   const auto done = robocache::resample<robocache::Expect>(context, values, times, queries, out);
//   if (!done) std::puts(done.error().what());
//
// The C headers describe what each operation computes, its dtypes and its errors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clouds.hpp"
#include "context.hpp"
#include "error.hpp"
#include "fuse.hpp"
#include "images.hpp"
#include "live.hpp"
#include "resample.hpp"
#include "robocache.h"
#include "rotations.hpp"
#include "statistics.hpp"
#include "store.hpp"
#include "tensor.hpp"
#include "tsdf.hpp"
#include "voxelize.hpp"
#include "windows.hpp"
