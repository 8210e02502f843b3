// Live fusion in the C++ wrapper, as a program uses it.
#include <utility>
#include <vector>

#include "robocache/robocache.hpp"
#include "support/expect.h"

using robocache::Context;
using robocache::Live;
using robocache::LiveStream;

TEST_CASE("wrapper: live, with every option") {
  const Context context = Context::cpu(1);
  const std::vector<float> shift = {10};
  const std::vector<double> scale = {0.5};
  LiveStream joints(2);
  joints.groups = {robocache::channels(0, 1, robocache::Method::kPrevious),
                   robocache::channels(1, 1, robocache::Method::kLinear)};
  joints.late_bound = 1;
  joints.capacity = 4;
  joints.max_ahead = 10;
  LiveStream gripper(1, robocache::dtypeOf<int32_t>());
  gripper.method = robocache::Method::kPrevious;
  gripper.fill_value = -1;
  gripper.causal = true;
  gripper.max_age = 5;
  gripper.outside = robocache::Outside::kFill;
  gripper.clock_offset = 0.25;
  LiveStream force(1, robocache::kFloat16);
  force.shift = robocache::Tensor(shift);
  force.scale = robocache::Tensor(scale);
  Live made = Live::create(context, {joints, gripper, force});
  Live live = std::move(made);
  CHECK(made.get() == nullptr);

  const std::vector<double> times = {0, 2, 1};
  const std::vector<float> rows = {0, 10, 20, 30, 5, 5};
  live.push(0, {rows, {3, 2}}, times);
  const int32_t grip[] = {7};
  const double at[] = {1};
  live.push(1, {grip, {1, 1}}, at);
  const uint16_t halves[] = {0x4900};  // 10
  live.push(2, {static_cast<const void*>(halves), robocache::kFloat16, {1, 1}}, at);

  const std::vector<double> queries = {0.5, 1.5};
  std::vector<float> out(8);
  std::vector<uint8_t> mask(6);
  std::vector<double> ages(3);
  live.fuse(queries, {out, {2, 4}}, {{mask, {2, 3}}}, {{ages, {3}}});
  CHECK(out == std::vector<float>{0, 7.5, -1, 0, 5, 17.5, 7, 0});
  CHECK(mask == std::vector<uint8_t>{1, 0, 0, 1, 1, 0});
  CHECK(ages == std::vector<double>{0.5, 0.25, 0.5});
  const std::vector<double> later = {9};
  live.fuse(later, {out.data(), {1, 4}}, {{mask.data(), {1, 3}}});
  CHECK(out[2] == -1);  // older than max_age

  CHECK(live.counters(0).kept == 3);
  CHECK(live.counters(0).late == 1);
  CHECK(live.counters(1).kept == 1);

  const std::vector<double> wild = {1e9};
  live.push(0, {rows.data(), {1, 2}}, wild);
  CHECK(live.counters(0).ahead == 1);
  live.reset(0);
  CHECK(live.counters(0).forgotten == 3);
  live.push(0, {rows.data(), {1, 2}}, wild);
  CHECK(live.counters(0).kept == 4);
}

TEST_CASE("wrapper: live, with ticks and with results instead of exceptions") {
  using robocache::Expect;
  const Context context = Context::cpu(1);
  LiveStream stream(1, robocache::dtypeOf<double>());
  stream.clock_offset_ticks = 3;
  const auto live = Live::create<Expect>(context, {stream}, robocache::dtypeOf<int64_t>());
  REQUIRE(live);
  Live own = Live::create(context, {stream}, robocache::dtypeOf<int64_t>());
  const std::vector<int64_t> times = {0, 10};
  const std::vector<double> rows = {0, 20};
  CHECK(own.push<Expect>(0, {rows, {2, 1}}, times));
  const std::vector<int64_t> query = {8};
  std::vector<double> out(1);
  std::vector<int64_t> ages(1);
  CHECK(own.fuse<Expect>(query, {out, {1, 1}}, {}, {ages}));
  CHECK(out[0] == 10);
  CHECK(ages[0] == 5);

  LiveStream none(0);
  const auto refused = Live::create<Expect>(context, {stream, none});
  REQUIRE_FALSE(refused);
  CHECK(support::tells(refused.error().what(), {"streams[0]", "clock_offset_ticks"}));
  const auto wrong = own.push<Expect>(1, {rows, {2, 1}}, times);
  REQUIRE_FALSE(wrong);
  CHECK(support::tells(wrong.error().what(), {"stream_index: is 1"}));
  const std::vector<double> fixed(1);
  const auto constant = own.fuse<Expect>(query, {fixed, {1, 1}});
  REQUIRE_FALSE(constant);
  CHECK(support::tells(constant.error().what(), {"out: is read-only"}));
  const auto no_stream = own.reset<Expect>(7);
  REQUIRE_FALSE(no_stream);
  CHECK(support::tells(no_stream.error().what(), {"stream_index: is 7"}));
  const auto unknown = own.counters<Expect>(2);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().status() == RBC_STATUS_INVALID_ARGUMENT);
}
