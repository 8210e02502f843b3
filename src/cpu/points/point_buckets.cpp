#include "points/point_buckets.h"

#include <algorithm>
#include <limits>

#include "number.h"

namespace rbc::cpu {
namespace {

template <class Number>
struct Box {
  Number low[3];
  Number high[3];
  double sum[3];
};

template <class Number>
Box<Number> boxOf(const CloudPoint<Number>* points, int64_t count) {
  Box<Number> box;
  for (int i = 0; i < 3; ++i) {
    box.low[i] = box.high[i] = points[0].position[i];
    box.sum[i] = 0;
  }
  for (int64_t k = 0; k < count; ++k) {
    for (int i = 0; i < 3; ++i) {
      const Number x = points[k].position[i];
      box.low[i] = x < box.low[i] ? x : box.low[i];
      box.high[i] = x > box.high[i] ? x : box.high[i];
      box.sum[i] += static_cast<double>(x);
    }
  }
  return box;
}

// Moves the points below the mean along the longest side of the box to the front; both parts stay
// in order. Returns their number, or 0 if they cannot be split.
template <class Number>
int64_t part(const Box<Number>& box, CloudPoint<Number>* points, CloudPoint<Number>* spare,
             int64_t count) {
  int axis = 0;
  for (int i = 1; i < 3; ++i) {
    if (box.high[i] - box.low[i] > box.high[axis] - box.low[axis]) axis = i;
  }
  const auto mean = static_cast<Number>(box.sum[axis] / static_cast<double>(count));
  if (!(mean > box.low[axis] && mean <= box.high[axis])) return 0;
  int64_t below = 0;
  int64_t above = 0;
  for (int64_t k = 0; k < count; ++k) {
    const CloudPoint<Number> point = points[k];
    const bool front = point.position[axis] < mean;
    points[below] = point;
    spare[above] = point;
    below += front ? 1 : 0;
    above += front ? 0 : 1;
  }
  std::copy_n(spare, above, points + below);
  return below;
}

}  // namespace

template <class Number>
void PointBuckets<Number>::build(int64_t points_count) {
  // Divides each box while it is too large; the upper part goes to the end of the list. During this
  // step begin and end are points, not groups.
  const int64_t most = mostBuckets(points_count);
  count = 1;
  begin[0] = 0;
  end[0] = static_cast<int32_t>(points_count);
  for (int64_t b = 0; b < count; ++b) {
    while (true) {
      const int64_t size = end[b] - begin[b];
      const Box<Number> box = boxOf(points + begin[b], size);
      const int64_t below =
          size > kBucketPoints && count < most ? part(box, points + begin[b], spare, size) : 0;
      if (below == 0) {
        for (int i = 0; i < 3; ++i) low[i][b] = box.low[i], high[i][b] = box.high[i];
        break;
      }
      begin[count] = static_cast<int32_t>(begin[b] + below);
      end[count] = end[b];
      end[b] = begin[count++];
    }
  }
  int64_t place = 0;
  constexpr Number kFar = std::numeric_limits<Number>::infinity();
  for (int64_t b = 0; b < count; ++b) {
    const int64_t first = begin[b];
    const int64_t size = end[b] - first;
    begin[b] = static_cast<int32_t>(place / kGroup);
    for (int64_t k = 0; k < size || place % kGroup != 0; ++k, ++place) {
      const bool real = k < size;
      const CloudPoint<Number>& point = points[first + (real ? k : 0)];
      for (int i = 0; i < 3; ++i) position[i][place] = point.position[i];
      distance[place] = real ? kFar : Number(-1);
      index[place] = point.index;
    }
    end[b] = static_cast<int32_t>(place / kGroup);
    farthest[b] = bitCast<Bits>(kFar);
  }
  // Padding of the last group: its buckets are never the farthest.
  for (int64_t b = count; b % kGroup != 0; ++b) {
    for (int i = 0; i < 3; ++i) low[i][b] = high[i][b] = 0;
    farthest[b] = -1;
    begin[b] = end[b] = 0;
  }
}

template <class Number>
int64_t PointBuckets<Number>::farthestPlace() const {
  Bits most = -1;
  for (int64_t b = 0; b < count; ++b) most = std::max(most, farthest[b]);
  int64_t best = -1;
  for (int64_t b = 0; b < count; ++b) {
    if (farthest[b] != most) continue;
    int64_t place = beginPlace(b);
    while (bitCast<Bits>(distance[place]) != most) ++place;
    if (best < 0 || index[place] < index[best]) best = place;
  }
  return best;
}

template struct PointBuckets<float>;
template struct PointBuckets<double>;

}  // namespace rbc::cpu
