#include "windows/window_run.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "windows/panel_steps.h"

namespace rbc::cpu {
namespace {

bool copiesAll(const WindowProblem& p, const WindowStream& s) {
  const WindowSegment* segments = p.segments + s.first_segment;
  return std::all_of(segments, segments + s.num_segments, [](const WindowSegment& segment) {
    return segment.kind == WindowKind::kCopy;
  });
}

bool hasSlerp(const WindowProblem& p, const WindowStream& s) {
  const ChannelSegment* methods = p.methods + s.first_method;
  return std::any_of(methods, methods + s.num_methods,
                     [](const ChannelSegment& m) { return m.method == Method::kSlerp; });
}

}  // namespace

bool canBeCut(const WindowProblem& p, const WindowStream& s) {
  if (s.counted != nullptr && s.rule == WindowRule::kWhole) return false;
  const WindowSegment* segments = p.segments + s.first_segment;
  return std::none_of(segments, segments + s.num_segments, [](const WindowSegment& segment) {
    return segment.kind == WindowKind::kStep;
  });
}

template <class Time, class Number>
WindowRun<Time, Number>::WindowRun(const WindowPlan& plan, int32_t stream, ThreadMemory& memory)
    : plan_(plan),
      p_(plan.problem),
      s_(plan.problem.streams[stream]),
      number_(stream),
      in_size_(sizeOf(s_.values_dtype)),
      out_size_(sizeOf(s_.out.dtype)),
      memory_(*new (memory.as<Memory>()) Memory) {
  const bool copies = copiesAll(p_, s_);
  const bool neutral = s_.outside == Outside::kNeutral;
  needs_values_ = s_.out.data != nullptr || !copies || hasSlerp(p_, s_) ||
                  (s_.interpolates && s_.counted != nullptr);
  // Without an output, values that affect validity need memory.
  const bool has_room = s_.out.data != nullptr || !needs_values_;
  direct_ = copies && !s_.normalizes() && !s_.clips() &&
            (!s_.interpolates || (has_room && !neutral && s_.counted == nullptr));
  const int64_t widest = std::min(std::max(s_.channels, s_.out_channels), kPanelChannels) +
                         6;  // of quaternions that are split
  tile_rows_ = static_cast<int>(std::min<int64_t>(kTileElements / widest, kTileRows));
}

template <class Time, class Number>
bool WindowRun<Time, Number>::run(int64_t window, int64_t o_begin, int64_t o_end) {
  window_ = window;
  anchor_ = anchorOf<Time>(p_, window);
  stand_ = standOf<Clock>(p_, number_, window, anchor_);
  all_valid_ = true;
  if (needs_values_) beginPoses();
  const int64_t rows = direct_ ? kTileRows : tile_rows_;
  constexpr int kTilesBetweenPolls = 64;
  int tiles = 0;
  for (int64_t o = o_begin; o < o_end; o += rows) {
    if (++tiles % kTilesBetweenPolls == 0 && plan_.interrupt.stopped()) return false;
    runTile({o, static_cast<int>(std::min(rows, o_end - o))});
  }
  if (s_.counted != nullptr && s_.rule == WindowRule::kWhole && !all_valid_) {
    std::fill_n(s_.counted + window * s_.num_offsets, s_.num_offsets, uint8_t{0});
  }
  return true;
}

template <class Time, class Number>
void WindowRun<Time, Number>::runTile(const Tile& tile) {
  any_after_ = false;
  if (!s_.interpolates) findRows(tile);
  if (s_.values == nullptr) {
    if (s_.out.data != nullptr) writeNumbers(tile);
  } else if (direct_) {
    writeDirectly(tile);
  } else {
    writePanels(tile);
  }
  writeMasks(tile);
}

template <class Time, class Number>
void WindowRun<Time, Number>::findRows(const Tile& tile) {
  const auto* values = static_cast<const std::byte*>(s_.values);
  const int64_t step = s_.values_stride[0] * in_size_;
  for (int i = 0; i < tile.count; ++i) {
    const GatheredRow at = gatheredRow(s_, stand_, tile.first + i);
    valid_[i] = at.valid;
    after_[i] = at.after;
    any_after_ |= at.after;
    has_value_[i] = at.row >= 0;
    memory_.sources[i] = at.row >= 0 && values != nullptr ? values + at.row * step : nullptr;
  }
}

template <class Time, class Number>
void WindowRun<Time, Number>::writeNumbers(const Tile& tile) {
  for (int i = 0; i < tile.count; ++i) {
    const GatheredRow at = gatheredRow(s_, stand_, tile.first + i);
    const int64_t number = at.row >= 0 ? at.row : static_cast<int64_t>(s_.fill_bits);
    std::memcpy(outAt(tile.first + i, 0), &number, sizeof number);
  }
}

template <class Time, class Number>
void WindowRun<Time, Number>::writeMasks(const Tile& tile) {
  for (int i = 0; i < tile.count; ++i) {
    const int64_t o = tile.first + i;
    const bool valid = valid_[i] && has_value_[i];
    all_valid_ &= valid;
    if (s_.valid != nullptr) {
      s_.valid[window_ * s_.valid_stride[0] + o * s_.valid_stride[1]] = valid;
    }
    if (s_.counted != nullptr) {
      s_.counted[window_ * s_.num_offsets + o] =
          s_.rule == WindowRule::kValid ? valid : has_value_[i];
    }
  }
}

template <class Time, class Number>
void WindowRun<Time, Number>::writeDirectly(const Tile& tile) {
  if (s_.interpolates) {
    Output<3> out = s_.out;
    out.data = s_.out.data != nullptr ? outAt(tile.first, 0) : nullptr;
    interpolate(tile, {0, needs_values_ ? s_.channels : 0}, out, s_.fill_bits);
    return;
  }
  if (s_.out.data == nullptr || s_.channels == 0) return;
  for (int i = 0; i < tile.count; ++i) {
    memory_.tasks[i] = {memory_.sources[i], memory_.sources[i], outAt(tile.first + i, 0), 0};
  }
  copyRows(tile, s_.channels, s_.out.dtype, s_.out.stride[2], s_.fill_bits);
  if (s_.outside != Outside::kNeutral || !any_after_) return;
  any_invalid_ = false;
  memory_.panel.out_begin = 0;
  memory_.panel.out_count = s_.out_channels;
  writeNeutral(tile);
}

template <class Time, class Number>
void WindowRun<Time, Number>::writePanels(const Tile& tile) {
  if (s_.interpolates && (s_.channels == 0 || !needs_values_)) interpolate(tile, {0, 0}, {}, 0);
  if (!needs_values_) return;
  constexpr int kPanelsBetweenPolls = 64;
  int panels = 0;
  PanelCursor cursor;
  while (nextPanel(p_, s_, &cursor, &memory_.panel)) {
    if (++panels % kPanelsBetweenPolls == 0 && plan_.interrupt.stopped()) return;
    const Panel& panel = memory_.panel;
    any_invalid_ = has_reference_ = false;
    rows_ = nullptr;
    if (s_.interpolates) {
      fetchInterpolated(tile);
    } else if (!inPlace(panel)) {
      fetchGathered(tile);
    }
    takeReferences(tile);
    if (panel.has_poses) transform(tile);
    if (s_.out.data == nullptr) continue;
    finish(tile);
    if (s_.outside == Outside::kNeutral && any_after_) writeNeutral(tile);
    if (any_invalid_) fillInvalid(tile);
  }
}

template class WindowRun<float, float>;
template class WindowRun<float, double>;
template class WindowRun<double, float>;
template class WindowRun<double, double>;
template class WindowRun<int64_t, float>;
template class WindowRun<int64_t, double>;

}  // namespace rbc::cpu
