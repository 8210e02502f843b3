// Workspace sizes in the C++ wrapper: each equals the workspace of the operation with the same
// arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "robocache/robocache.hpp"
#include "support/expect.h"

namespace support {

// Points on a diagonal, and a grid around them.
struct WrapperCloud {
  static constexpr int64_t kPoints = 20000;
  std::vector<float> ramp = std::vector<float>(3 * kPoints);
  robocache::Tensor points{ramp, {kPoints, 3}};
  rbcVoxelGrid grid = {{0, 0, 0}, {5000, 5000, 5000}, {20, 20, 20}};
  std::vector<float> volume = std::vector<float>(8000);

  WrapperCloud() { std::iota(ramp.begin(), ramp.end(), 0.0f); }
  WrapperCloud(const WrapperCloud&) = delete;
};

// Reserves the size on a new context, and checks that the run needs no more. Returns the size.
template <class Size, class Run>
size_t checkedWrapperSize(const Size& size, const Run& run) {
  robocache::Context context = robocache::Context::cpu(2);
  const size_t bytes = size(context);
  context.reserve(bytes);
  const int64_t reserved = context.info().workspace_bytes;
  CHECK(reserved >= static_cast<int64_t>(bytes));
  run(context);
  CHECK(context.info().workspace_bytes == reserved);
  return bytes;
}

}  // namespace support

// The size that robocache::<operation>WorkspaceSize gives for these arguments, after the checks.
#define CHECKED_WRAPPER_SIZE(operation, ...)                              \
  ::support::checkedWrapperSize(                                          \
      [&](const ::robocache::Context& context) {                          \
        return robocache::operation##WorkspaceSize(context, __VA_ARGS__); \
      },                                                                  \
      [&](const ::robocache::Context& context) { robocache::operation(context, __VA_ARGS__); })
