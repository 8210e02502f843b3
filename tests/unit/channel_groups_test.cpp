// Converts groups of channels to segments: sorted, with neighbours of one method merged.
#include "fuse/channel_groups.h"

#include <string>
#include <utility>
#include <vector>

#include "guard.h"
#include "robocache/fuse.h"
#include "support/expect.h"
#include "support/random.h"

namespace {

using rbc::ChannelSegment;
using rbc::Method;
using rbc::MethodSet;

constexpr int32_t kLinear = RBC_METHOD_LINEAR;
constexpr int32_t kSlerp = RBC_METHOD_SLERP;
constexpr int32_t kNext = RBC_METHOD_NEXT;

struct Cut {
  std::vector<ChannelSegment> segments;
  MethodSet methods;
};

Cut cut(const std::vector<rbcChannelGroup>& groups, int64_t channels, int32_t method = kLinear,
        int room = rbc::kMaxSegments) {
  rbcResampleParams params = rbcResampleParamsInit();
  params.method = method;
  params.groups = groups.empty() ? nullptr : groups.data();
  params.num_groups = static_cast<int32_t>(groups.size());
  Cut result;
  ChannelSegment segments[rbc::kMaxSegments];
  rbc::SegmentAge ages[rbc::kMaxSegments];
  const int count =
      rbc::segmentsOf(params, channels, rbc::DType::F64, {segments, ages, room}, &result.methods);
  result.segments.assign(segments, segments + count);
  return result;
}

bool are(const Cut& got, const std::vector<ChannelSegment>& expected) {
  if (got.segments.size() != expected.size()) return false;
  for (size_t i = 0; i < expected.size(); ++i) {
    const ChannelSegment& a = got.segments[i];
    const ChannelSegment& b = expected[i];
    if (a.begin != b.begin || a.count != b.count || a.method != b.method) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("groups: without groups, one segment has all channels, even 0") {
  CHECK(are(cut({}, 9), {{0, 9, Method::kLinear}}));
  CHECK(are(cut({}, 8, kSlerp), {{0, 8, Method::kSlerp}}));
  CHECK(are(cut({}, 0, kNext), {{0, 0, Method::kNext}}));
}

TEST_CASE("groups: are sorted, and neighbours with one method are merged") {
  CHECK(are(
      cut({{7, 1, kNext, 0, 0, 0, 0}, {0, 3, kLinear, 0, 0, 0, 0}, {3, 4, kSlerp, 0, 0, 0, 0}}, 8),
      {{0, 3, Method::kLinear}, {3, 4, Method::kSlerp}, {7, 1, Method::kNext}}));
  CHECK(are(
      cut({{4, 4, kSlerp, 0, 0, 0, 0}, {0, 4, kSlerp, 0, 0, 0, 0}, {8, 8, kSlerp, 0, 0, 0, 0}}, 16),
      {{0, 16, Method::kSlerp}}));
  CHECK(are(cut({{0, 1, kLinear, 0, 0, 0, 0},
                 {1, 1, kNext, 0, 0, 0, 0},
                 {2, 1, kNext, 0, 0, 0, 0},
                 {3, 1, kLinear, 0, 0, 0, 0}},
                4),
            {{0, 1, Method::kLinear}, {1, 2, Method::kNext}, {3, 1, Method::kLinear}}));
}

TEST_CASE("groups: report the methods in use") {
  const Cut pose =
      cut({{0, 3, kLinear, 0, 0, 0, 0}, {3, 4, kSlerp, 0, 0, 0, 0}, {7, 1, kNext, 0, 0, 0, 0}}, 8,
          RBC_METHOD_ANGLE);
  CHECK(pose.methods.has(Method::kLinear));
  CHECK(pose.methods.has(Method::kSlerp));
  CHECK(pose.methods.hasStep());
  CHECK_FALSE(pose.methods.has(Method::kAngle));  // groups replace the method
  CHECK(pose.methods.interpolating() == std::string("linear"));
  CHECK(cut({{0, 2, kNext, 0, 0, 0, 0}}, 2).methods.interpolating() == nullptr);
}

TEST_CASE("groups: only merged groups take up room") {
  std::vector<rbcChannelGroup> groups;
  for (int i = 0; i < rbc::kMaxSegments; ++i) groups.push_back({i, 1, kLinear, 0, 0, 0, 0});
  CHECK(are(cut(groups, 256, kLinear, 1), {{0, 256, Method::kLinear}}));
  for (int i = 0; i < rbc::kMaxSegments; i += 2) groups[static_cast<size_t>(i)].method = kNext;
  CHECK(cut(groups, 256).segments.size() == 256);
  CHECK_FAILS(rbc::guard([&] { cut(groups, 256, kLinear, 255); }), RBC_STATUS_INVALID_ARGUMENT,
              "groups:", "256");
}

TEST_CASE("groups: any division in any order gives the same methods to the same channels") {
  support::Random random(41);
  for (int round = 0; round < 300; ++round) {
    std::vector<rbcChannelGroup> groups;
    std::vector<int32_t> expected;
    const int64_t count = 1 + random.below(30);
    for (int64_t i = 0; i < count; ++i) {
      const auto method = static_cast<int32_t>(random.below(rbc::kMethods));
      const int64_t size = method == kSlerp ? 4 * (1 + random.below(3)) : 1 + random.below(5);
      groups.push_back({static_cast<int64_t>(expected.size()), size, method, 0, 0, 0, 0});
      expected.insert(expected.end(), static_cast<size_t>(size), method);
    }
    for (size_t i = groups.size(); i > 1; --i)
      std::swap(groups[i - 1], groups[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    std::vector<int32_t> got;
    const Cut result = cut(groups, static_cast<int64_t>(expected.size()));
    for (size_t i = 0; i < result.segments.size(); ++i) {
      const ChannelSegment& s = result.segments[i];
      CHECK(s.begin == static_cast<int64_t>(got.size()));
      CHECK_FALSE((i > 0 && result.segments[i - 1].method == s.method));
      got.insert(got.end(), static_cast<size_t>(s.count), static_cast<int32_t>(s.method));
    }
    CHECK(got == expected);
  }
}
