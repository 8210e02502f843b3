// rbcWindows: edge cases, the wrapper, and allocations.
#include <cstdint>
#include <tuple>
#include <vector>

#include "abi/malloc_counter.h"
#include "abi/windows_call.h"
#include "robocache/robocache.hpp"
#include "support/random_windows.h"
#include "support/sanitizers.h"

namespace {

using robocache::Tensor;
using support::Context;
using windows_call::Call;

}  // namespace

TEST_CASE("windows: without windows, offsets or channels") {
  const Context& context = support::refusingContext();
  for (const auto& extents :
       {std::tuple<int64_t, int64_t, int64_t>{0, 3, 3}, {2, 0, 3}, {2, 3, 0}, {0, 0, 0}}) {
    const int64_t windows = std::get<0>(extents);  // no bindings: Clang captures none
    const int64_t offsets = std::get<1>(extents);
    const int64_t channels = std::get<2>(extents);
    CAPTURE(windows);
    CAPTURE(offsets);
    CAPTURE(channels);
    Call call;
    call.num_streams = 1;
    rbcWindowsStream& s = call.streams[0];
    s.transforms = nullptr;
    s.num_transforms = 0;
    s.shift = s.scale = s.bias = s.clip_min = s.clip_max = s.neutral = s.neutral_channels = nullptr;
    call.actions.values.reshape({6, channels});
    call.actions.offsets.reshape({offsets});
    call.actions.out.reshape({windows, offsets, channels});
    call.actions.valid.reshape({windows, offsets});
    call.episodes.reshape({windows});
    call.anchors.reshape({windows});
    CHECK_SUCCEEDS(call.run(context.get()));
    CHECK_SUCCEEDS(call.workspace());
    CHECK(call.actions.out.array.untouched());
    const bool has_elements = windows > 0 && offsets > 0;
    CHECK(call.actions.valid.array.untouched() != has_elements);
  }
}

TEST_CASE("windows: no rows, and a stream that only others refer to") {
  Call call;
  for (rbcWindowsOutputs& o : call.outputs) o.valid = nullptr;
  call.outputs[1].out = call.outputs[2].out = nullptr;
  CHECK_SUCCEEDS(call.run());
  CHECK(call.poses.out.array.untouched());
  // Every episode is empty: all elements are invalid, and the values' memory may be null.
  call.actions.values.reshape({0, 3});
  call.actions.values.raw.data = nullptr;
  call.actions.times.reshape({0});
  call.actions.times.raw.data = nullptr;
  call.actions.sample_mask.reshape({0});
  call.actions.episode_offsets.fill<int32_t>({0, 0, 0});
  call.stream_params[0].fill_value = -4;
  call.outputs[0].valid = &call.actions.valid.raw;
  CHECK_SUCCEEDS(call.run());
  for (const uint64_t bits : call.actions.out.array.elements()) {
    CHECK(support::decodeFloat(support::kF32, bits) == -4);
  }
  for (const uint64_t valid : call.actions.valid.array.elements()) CHECK(valid == 0);
}

TEST_CASE("windows: a call allocates nothing after its own reserve") {
  for (uint64_t seed = 0; seed < (support::kThreadSanitizer ? 10u : 40u); ++seed) {
    CAPTURE(seed);
    const Context context = support::cpuContext(3);
    const support::WindowCall windows =
        support::RandomWindows(seed).make(support::varietyOf(seed), true);
    support::PlacedWindows placed(context, windows);
    CHECK_SUCCEEDS(rbcContextReserve(context.get(), placed.workspaceSize(context)));
    const uint64_t reserved = support::infoOf(context).workspace_bytes;
    CHECK_SUCCEEDS(placed.call(context));
    CHECK(support::infoOf(context).workspace_bytes == reserved);
    CHECK_ALLOCATES_NOTHING(placed.call(context));
  }
}

TEST_CASE("windows: the wrapper") {
  using robocache::WindowsStream;
  const auto context = robocache::Context::cpu(1);
  const std::vector<float> values = {0, 1, 2, 3, 10, 11};
  const std::vector<double> times = {0, 0.5, 1, 1.5, 0, 0.5};
  const std::vector<int64_t> ends = {0, 4, 6};
  const std::vector<int32_t> rows = {-1, 0, 1};
  const std::vector<double> seconds = {-0.25, 0.25};
  const std::vector<int64_t> episodes = {0, 1};
  const std::vector<int64_t> anchors = {3, 0};
  const std::vector<float> twice = {2};
  std::vector<float> relative(6);
  std::vector<float> between(4);
  std::vector<uint8_t> valid(6);
  auto accumulator = robocache::Accumulator::create(context, 1);

  WindowsStream actions(Tensor(values, {6, 1}), ends, rows);
  actions.times = times;
  actions.transforms = {robocache::subtract(0, 1, {0, 1})};
  actions.scale = twice;
  actions.outside = robocache::Outside::kFill;
  actions.fill_value = 7;
  actions.accumulator = &accumulator;
  actions.accumulate = robocache::Accumulate::kValid;
  actions.out = Tensor(relative, {2, 3, 1});
  actions.valid = Tensor(valid, {2, 3});
  WindowsStream sensors(Tensor(values, {6, 1}), ends, seconds);
  sensors.times = times;
  sensors.interpolate = true;
  sensors.out = Tensor(between, {2, 2, 1});
  robocache::windows(context, {actions, sensors}, episodes, anchors);
  CHECK(relative == std::vector<float>{-2, 0, 7, 7, 0, 2});
  CHECK(valid == std::vector<uint8_t>{1, 1, 0, 0, 1, 1});
  CHECK(between == std::vector<float>{2.5f, 3, 10, 10.5f});
  std::vector<int64_t> count(1);
  robocache::StatisticsOutputs result;
  result.count = count;
  accumulator.result(result);
  CHECK(count[0] == 4);

  robocache::WindowsOptions options;
  options.anchor_times = true;
  const std::vector<double> at = {1.5, 0};
  robocache::windows(context, {actions, sensors}, episodes, at, options);
  CHECK(between == std::vector<float>{2.5f, 3, 10, 10.5f});

  actions.scale_divides = true;
  robocache::windows(context, {actions, sensors}, episodes, anchors);
  CHECK(relative == std::vector<float>{-0.5f, 0, 7, 7, 0, 0.5f});

  actions.out = Tensor(static_cast<const float*>(relative.data()), {2, 3, 1});
  const auto read_only =
      robocache::windows<robocache::Expect>(context, {sensors, actions}, episodes, anchors);
  REQUIRE(!read_only);
  CHECK(support::tells(read_only.error().what(), {"streams[1].out: is read-only"}));
}
