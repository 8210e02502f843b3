// Converts the arguments of rbcWindows to a WindowProblem.
#pragma once

#include "params.h"
#include "robocache/windows.h"
#include "runtime/call.h"
#include "statistics/accumulator.h"
#include "window_problem.h"

namespace rbc {

// ---- A stream's transforms as segments, which together contain each of its channels once.

// A copy of a stream's transforms, which the caller may change after they were read.
struct WindowTransforms {
  const rbcWindowsTransform* list;
  int32_t count;
};

// Writes the segments of `channels` channels in their order, and returns their number. The segment
// of a transform has its index. Fails unless every transform is within the channels and no two
// overlap.
int32_t windowSegmentsOf(const WindowTransforms& transforms, int64_t channels,
                         WindowSegment* segments);

// The number of channels of the output, summed over all segments.
int64_t outChannelsOf(const WindowSegment* segments, int32_t count);

// Whether all channels are copied.
bool copiesAll(const WindowSegment* segments, int32_t count);

// Fails unless the references of the transforms are in the streams. Called once all streams are
// read.
void requireReferences(const WindowTransforms& transforms, const WindowStream* streams,
                       int32_t num_streams);

// ---- Windows into accumulators, computed block by block.

// The accumulator that a stream's windows are added to.
struct WindowAccumulation {
  int32_t stream;
  rbcAccumulator* accumulator;
  AccumulatorState state;
  DType dtype;      // of the values that are added
  bool per_step;    // each offset has its own channels
  int64_t samples;  // per channel
};

// The workspace of accumulateWindows().
size_t accumulateBytes(const rbcContext& context, const WindowProblem& problem,
                       const WindowAccumulation& accumulation);

void accumulateWindows(rbcContext& context, const WindowProblem& problem,
                       const WindowAccumulation& accumulation, Scratch scratch);

template <>
inline constexpr KnownFlags kKnownFlags<rbcWindowsStream> = {RBC_WINDOWS_FLAG_SCALE_DIVIDES,
                                                             "RBC_WINDOWS_FLAG_SCALE_DIVIDES or 0"};
template <>
inline constexpr KnownFlags kKnownFlags<rbcWindowsParams> = {
    RBC_FLAG_CHECK_TIMES | RBC_WINDOWS_FLAG_ANCHOR_TIMES,
    "RBC_FLAG_CHECK_TIMES, RBC_WINDOWS_FLAG_ANCHOR_TIMES or 0"};

struct WindowArguments {
  const rbcWindowsStream* streams;
  int32_t num_streams;
  const rbcTensor* episodes;
  const rbcTensor* anchors;
  const rbcWindowsOutputs* outputs;
  const rbcWindowsParams* params;
};

// Everything except the data is verified. The problem points into this object.
class WindowBuilder : public CallBase {
 public:
  const WindowProblem& problem() const { return problem_; }

 protected:
  WindowBuilder(const rbcContext& context, const WindowArguments& call);

  bool checksTimes() const { return (params_.flags & RBC_FLAG_CHECK_TIMES) != 0; }
  // The number of streams with an accumulator.
  int32_t numAccumulations() const { return num_accumulations_; }
  const WindowAccumulation& accumulation(int32_t i) const { return accumulations_[i]; }

  WindowProblem problem_ = {};
  WindowStream streams_[kMaxWindowStreams];

 private:
  // The arguments of a stream that later steps need.
  struct StreamArguments {
    WindowTransforms transforms;
    rbcAccumulator_t accumulator;
    double fill_value;
    bool has_out;
  };

  void readShared(const WindowArguments& call);
  void addStream(const rbcWindowsStream& stream);
  void readRows(const rbcWindowsStream& stream, WindowStream* s);
  void readOffsets(const rbcWindowsStream& stream, WindowStream* s);
  void readParameters(const rbcWindowsStream& stream, WindowStream* s);
  void readArrivals(const rbcTensor* tensor, const WindowStream& s);
  void readTransforms(const rbcWindowsStream& stream, WindowStream* s);
  void readGrids(const rbcWindowsStream& stream, WindowStream* s);
  void readOutputs(const rbcWindowsOutputs& outputs, int32_t n);
  RealGrid readGrid(const rbcTensor* tensor, const char* name, const WindowStream& s);

  void finishAnchors();
  void finishStream(int32_t n);
  void finishOutput(int32_t n);
  void finishFill(int32_t n);
  template <class Body>
  void inElement(const char* array, int32_t n, Body&& body);
  bool copies(const WindowStream& s) const;
  void addAccumulation(int32_t n);

  const rbcContext& context_;
  const rbcWindowsParams params_;
  const View& episodes_;
  const View& anchors_;
  bool has_times_ = false;  // any stream has times; their dtype is problem_.time_dtype
  int32_t num_transforms_ = 0;
  int32_t num_accumulations_ = 0;
  StreamArguments arguments_[kMaxWindowStreams];
  WindowAccumulation accumulations_[kMaxWindowStreams];
  WindowSegment segments_[kMaxWindowSegments];
  ChannelSegment methods_[kMaxSegments];
  SegmentAge ages_[kMaxSegments];
  Arrivals arrivals_[kMaxWindowStreams];
  CausalWindows causal_ = {};
  rbcWindowsTransform transforms_[kMaxWindowTransforms];
};

}  // namespace rbc
