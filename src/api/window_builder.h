// Puts the arguments of rbcWindows as a WindowProblem.
#pragma once

#include "call.h"
#include "params.h"
#include "robocache/windows.h"
#include "window_accumulate.h"
#include "window_segments.h"

namespace rbc {

template <>
inline constexpr KnownFlags kKnownFlags<rbcWindowsParams> = {
    RBC_CHECK_TIMES | RBC_WINDOWS_ANCHOR_TIMES, "RBC_CHECK_TIMES, RBC_WINDOWS_ANCHOR_TIMES or 0"};

struct WindowArguments {
  const rbcWindowStream* streams;
  int32_t num_streams;
  const rbcTensor* episodes;
  const rbcTensor* anchors;
  const rbcWindowsParams* params;
};

// Everything is verified but the data. The problem points into this object.
class WindowBuilder : public CallBase {
 public:
  const WindowProblem& problem() const { return problem_; }

 protected:
  WindowBuilder(const rbcContext& context, const WindowArguments& call);

  bool checksTimes() const { return (params_.flags & RBC_CHECK_TIMES) != 0; }
  // Of streams that have one.
  int32_t numAccumulations() const { return num_accumulations_; }
  const WindowAccumulation& accumulation(int32_t i) const { return accumulations_[i]; }

  WindowProblem problem_ = {};
  WindowStream streams_[kMaxWindowStreams];

 private:
  // What later steps need of a stream's arguments.
  struct Given {
    WindowTransforms transforms;
    rbcStatisticsAccumulator_t accumulator;
    double fill_value;
    bool has_out;
  };

  void readShared(const WindowArguments& call);
  void addStream(const rbcWindowStream& given);
  void readRows(const rbcWindowStream& given, WindowStream* s);
  void readOffsets(const rbcWindowStream& given, WindowStream* s);
  void readParameters(const rbcWindowStream& given, WindowStream* s);
  void readTransforms(const rbcWindowStream& given, WindowStream* s);
  void readGrids(const rbcWindowStream& given, WindowStream* s);
  void readOutputs(const rbcWindowStream& given, WindowStream* s);
  RealGrid readGrid(const rbcTensor* tensor, const char* name, const WindowStream& s);

  void finishAnchors();
  void finishStream(int32_t n);
  bool copies(const WindowStream& s) const;
  void addAccumulation(int32_t n);

  const rbcContext& context_;
  const rbcWindowsParams params_;
  const View& episodes_;
  const View& anchors_;
  bool has_times_ = false;  // any stream: problem_.time_dtype is theirs
  int32_t num_transforms_ = 0;
  int32_t num_accumulations_ = 0;
  Given given_[kMaxWindowStreams];
  WindowAccumulation accumulations_[kMaxWindowStreams];
  WindowSegment segments_[kMaxWindowSegments];
  ChannelSegment methods_[kMaxSegments];
  rbcWindowTransform transforms_[kMaxWindowTransforms];
};

}  // namespace rbc
