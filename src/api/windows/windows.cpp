// rbcWindows: training samples cut out of episodes.

#include <algorithm>
#include <cinttypes>

#include "fuse/times_check.h"
#include "fuse_problem.h"
#include "status.h"
#include "windows/window_builder.h"

namespace rbc {
namespace {

class WindowCall : public WindowBuilder {
 public:
  static constexpr const char* kOperation = "windows";

  WindowCall(const rbcContext& context, const WindowArguments& call)
      : WindowBuilder(context, call) {}

  bool empty() const;
  void keepIndexes(ScratchLayout& layout);
  void verifyIndexes() const;

  size_t checkBytes(const rbcContext& context) const {
    return checksTimes() ? checkTimesBytes(context) : 0;
  }
  void requireCheckable(const rbcContext& context) const {
    if (checksTimes()) rbc::requireCheckable(context);
  }
  void check(rbcContext& context, Scratch scratch) const;
  size_t afterBytes(const rbcContext& context) const;
  void after(rbcContext& context, Scratch scratch) const;

 private:
  // Copies only the episodes that windows use, which are few: where each one's rows begin and end.
  void keepEpisodes(int64_t* episodes, int64_t* const* ends);
  void verifyEpisode(int64_t window, int64_t episode) const;
  void verifyRows(int32_t stream, int64_t episode, int64_t begin, int64_t end) const;

  bool kept_ = false;
};

bool WindowCall::empty() const {
  if (problem_.windows == 0) return true;
  for (int32_t n = 0; n < problem_.num_streams; ++n) {
    const WindowStream& s = streams_[n];
    const bool writes = s.out.data != nullptr || s.valid != nullptr;
    if (s.num_offsets > 0 && writes) return false;
  }
  return true;
}

// ---- what the host verifies ---------------------------------------------------------------------

void WindowCall::verifyEpisode(int64_t window, int64_t episode) const {
  if (episode >= 0 && episode < problem_.episodes) return;
  fail(RBC_STATUS_INVALID_ARGUMENT,
       "episodes: index %" PRId64 " is %" PRId64 ", expected 0 to %" PRId64, window, episode,
       problem_.episodes - 1);
}

void WindowCall::verifyRows(int32_t stream, int64_t episode, int64_t begin, int64_t end) const {
  const int64_t rows = streams_[stream].rows;
  if (begin >= 0 && begin <= end && end <= rows) return;
  try {
    if (begin < 0 || begin > rows) {
      failOffset("episode_offsets", episode, 0, begin, rows, "rows");
    }
    failOffset("episode_offsets", episode + 1, begin, end, rows, "rows");
  } catch (const Error&) {
    prefixLastError("streams[%d].", stream);
    throw;
  }
}

void WindowCall::keepIndexes(ScratchLayout& layout) {
  WindowProblem& p = problem_;
  if (checksTimes()) {  // the check reads all of them
    const auto keep = [&](IndexArray& array, int64_t entries) {
      int64_t* copy = layout.take<int64_t>(entries);
      if (copy != nullptr) array = copyOf(array, entries, copy);
    };
    keep(p.episode_of, p.windows);
    for (int32_t n = 0; n < p.num_streams; ++n) keep(streams_[n].episode_offsets, p.episodes + 1);
    return;
  }
  int64_t* const episodes = layout.take<int64_t>(p.windows);
  int64_t* ends[kMaxWindowStreams];
  for (int32_t n = 0; n < p.num_streams; ++n) {
    int64_t entries = 0;
    if (__builtin_mul_overflow(p.windows, 2, &entries)) {
      fail(RBC_STATUS_OUT_OF_MEMORY, "episodes: are too many");
    }
    ends[n] = layout.take<int64_t>(entries);
  }
  if (episodes != nullptr) keepEpisodes(episodes, ends);
}

// The copies describe a smaller recording. Its episodes are the episodes of the windows, one after
// the other, and the ranges between them.
void WindowCall::keepEpisodes(int64_t* episodes, int64_t* const* ends) {
  WindowProblem& p = problem_;
  for (int64_t b = 0; b < p.windows; ++b) {
    const int64_t e = readEntry(p.episode_of, b);
    verifyEpisode(b, e);
    for (int32_t n = 0; n < p.num_streams; ++n) {
      const IndexArray& offsets = streams_[n].episode_offsets;
      const int64_t begin = readEntry(offsets, e);
      const int64_t end = readEntry(offsets, e + 1);
      verifyRows(n, e, begin, end);
      ends[n][2 * b] = begin;
      ends[n][2 * b + 1] = end;
    }
    episodes[b] = 2 * b;
  }
  p.episode_of = {episodes, 1, true};
  p.episodes = 2 * p.windows - 1;
  for (int32_t n = 0; n < p.num_streams; ++n) streams_[n].episode_offsets = {ends[n], 1, true};
  kept_ = true;
}

// Fails for the first NaN of an array that the host can read.
void requireNumbers(const RealGrid& grid, const WindowStream& s, const char* name) {
  if (grid.data == nullptr) return;
  const int64_t offsets = grid.stride[0] != 0 ? s.num_offsets : s.num_offsets > 0 ? 1 : 0;
  for (int64_t o = 0; o < offsets; ++o) {
    for (int64_t d = 0; d < s.out_channels; ++d) {
      const double x = grid.at<double>(o, d);
      if (x == x) continue;
      fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is NaN at channel %" PRId64 " (offset %" PRId64 ")",
           name, d, o);
    }
  }
}

// Fails for the first offset after the anchor, of a stream whose rows arrive.
void requirePast(const WindowProblem& p, const WindowStream& s) {
  for (int64_t o = 0; o < s.num_offsets; ++o) {
    double offset = 0;
    if (!s.interpolates || p.time_dtype == DType::I64) {
      offset = static_cast<double>(s.offsets[o]);
    } else if (p.time_dtype == DType::F64) {
      offset = static_cast<const double*>(s.offsets.data)[o * s.offsets.stride];
    } else {
      offset = static_cast<double>(static_cast<const float*>(s.offsets.data)[o * s.offsets.stride]);
    }
    if (!(offset > 0)) continue;
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "offsets: number %" PRId64
         " is %g, expected 0 or less with params.arrivals: later rows "
         "have not arrived",
         o, offset);
  }
}

void WindowCall::verifyIndexes() const {
  const WindowProblem& p = problem_;
  for (int64_t b = 0; b < p.windows && !kept_; ++b) {
    const int64_t e = readEntry(p.episode_of, b);
    verifyEpisode(b, e);
    for (int32_t n = 0; n < p.num_streams; ++n) {
      verifyRows(n, e, streams_[n].episode_offsets[e], streams_[n].episode_offsets[e + 1]);
    }
  }
  for (int32_t n = 0; n < p.num_streams; ++n) {
    const WindowStream& s = streams_[n];
    try {
      if (checksTimes()) {
        const int64_t e = findBadOffset(s.episode_offsets, p.episodes, s.rows);
        if (e >= 0) {
          failOffset("episode_offsets", e, offsetBefore(s.episode_offsets, e), s.episode_offsets[e],
                     s.rows, "rows");
        }
      }
      if (p.causal != nullptr && p.causal->arrivals[n].data != nullptr) requirePast(p, s);
      requireNumbers(s.shift, s, "shift");
      requireNumbers(s.scale, s, "scale");
      requireNumbers(s.bias, s, "bias");
      requireNumbers(s.low, s, "clip_min");
      requireNumbers(s.high, s, "clip_max");
    } catch (const Error&) {
      prefixLastError("streams[%d].", n);
      throw;
    }
  }
}

// ---- what is checked on the device --------------------------------------------------------------

// Verifies episodes as lengths, and rows as a packed batch.
void WindowCall::check(rbcContext& context, Scratch scratch) const {
  if (!checksTimes()) return;
  const WindowProblem& p = problem_;
  const auto& operation = operationFor<TimesProblem>(*context.backend);
  TimesDefect defect = {};
  const auto look = [&](const FuseProblem& problem) {
    operation.run(*context.state, {problem, 0, &defect}, scratch);
    return defect.kind;
  };
  FuseStream rows = {};
  FuseProblem fuse = {};
  fuse.time_dtype = p.time_dtype;
  fuse.num_streams = 1;
  fuse.streams = &rows;
  if (p.windows > 0) {
    fuse.batch = p.windows;
    fuse.query_lengths = p.episode_of;
    fuse.queries = p.episodes - 1;
    if (look(fuse) != TimesDefect::kNone) verifyEpisode(defect.row, defect.integer[1]);
  }
  fuse.batch = p.episodes;
  fuse.query_lengths = {};
  for (int32_t n = 0; n < p.num_streams; ++n) {
    const WindowStream& s = streams_[n];
    rows.samples = s.rows;
    rows.times = s.times;
    rows.times_stride[1] = s.times_stride;
    rows.offsets = s.episode_offsets;
    if (look(fuse) == TimesDefect::kNone) continue;
    try {
      reportDefect(defect, p.time_dtype, s.rows, "episode_offsets", "episode", "rows");
    } catch (const Error&) {
      prefixLastError("streams[%d].", n);
      throw;
    }
  }
}

// ---- accumulators -------------------------------------------------------------------------------

size_t WindowCall::afterBytes(const rbcContext& context) const {
  size_t bytes = 0;
  for (int32_t i = 0; i < numAccumulations(); ++i) {
    bytes = std::max(bytes, accumulateBytes(context, problem_, accumulation(i)));
  }
  return bytes;
}

void WindowCall::after(rbcContext& context, Scratch scratch) const {
  // If the call ends early, no accumulator can be used: it is unknown which of them are complete.
  const auto setHalfAdded = [&](bool half_added) {
    for (int32_t i = 0; i < numAccumulations(); ++i) {
      accumulation(i).accumulator->half_added = half_added;
    }
  };
  setHalfAdded(true);
  for (int32_t i = 0; i < numAccumulations(); ++i) {
    accumulateWindows(context, problem_, accumulation(i), scratch);
  }
  setHalfAdded(false);
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcWindows(rbcContext_t context, const rbcWindowsStream* streams, int32_t num_streams,
                       const rbcTensor* episodes, const rbcTensor* anchors,
                       const rbcWindowsOutputs* outputs, const rbcWindowsParams* params) {
  return rbc::runCall<rbc::WindowCall>(
      context, rbc::WindowArguments{streams, num_streams, episodes, anchors, outputs, params});
}

rbcStatus_t rbcWindowsWorkspaceSize(rbcContext_t context, const rbcWindowsStream* streams,
                                    int32_t num_streams, const rbcTensor* episodes,
                                    const rbcTensor* anchors, const rbcWindowsOutputs* outputs,
                                    const rbcWindowsParams* params, size_t* bytes) {
  return rbc::sizeCall<rbc::WindowCall>(
      context, rbc::WindowArguments{streams, num_streams, episodes, anchors, outputs, params},
      bytes);
}
