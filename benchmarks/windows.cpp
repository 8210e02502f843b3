// Cases of rbcWindows. Their names: the number of windows, the number of rows, and the streams:
// offsets x channels, dtype, and steps, such as
//   1024 windows from 10M rows: 50x64 bf16 affine; 2x14 f32 to_bf16
//   affine     shift and scale of each channel; clip: low and high as well
//   minus      subtracts the row at the first offset
//   pose       channels 0 to 6, a position and a quaternion, relative to it; rotations as 6-D
//   linear, slerp  at 1 kHz, interpolated at times around the anchor; the others are at 31 Hz then

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases.h"
#include "robocache/windows.h"
#include "support/random.h"

namespace bench {
namespace {

constexpr int64_t kRowsOfFrame = 32;  // per interpolated stream
constexpr int64_t kMinRows = 200;     // per episode
constexpr int64_t kMaxRows = 800;

struct WindowStream {
  int64_t offsets = 0;
  int64_t channels = 0;
  rbcDType dtype = support::kF32;
  rbcDType out_dtype = support::kF32;
  bool affine = false, clip = false, minus = false, pose = false, linear = false, slerp = false;

  bool interpolates() const { return linear || slerp; }
  int64_t outChannels() const { return pose ? channels + 2 : channels; }
};

struct WindowsCase : Case {
  int64_t batch = 0;
  int64_t frames = 0;
  std::vector<WindowStream> streams;

  bool timed() const {
    return std::any_of(streams.begin(), streams.end(),
                       [](const WindowStream& s) { return s.interpolates(); });
  }
  int64_t rowsOf(const WindowStream& s) const {
    return s.interpolates() ? kRowsOfFrame * frames : frames;
  }
  int64_t roughBytes() const override {
    int64_t bytes = batch * 16;
    for (const WindowStream& s : streams) {
      const int64_t read = s.interpolates() ? 2 * (s.channels * support::sizeOf(s.dtype) + 4)
                                            : s.channels * support::sizeOf(s.dtype);
      bytes += batch * s.offsets * (read + s.outChannels() * support::sizeOf(s.out_dtype));
    }
    return bytes;
  }
  std::unique_ptr<const Data> load() const override;
  std::string facts() const override {
    return "\"batch\": " + std::to_string(batch) + ", \"frames\": " + std::to_string(frames) +
           ", \"streams\": " + std::to_string(streams.size());
  }
};

// The tensors of a stream are in the order of WindowsData.
class WindowsCall : public Call {
 public:
  WindowsCall(const WindowsCase& c, const Tensors& tensors)
      : streams_(c.streams.size()),
        params_(c.streams.size()),
        transforms_(c.streams.size()),
        outputs_(c.streams.size()) {
    auto next = tensors.inputs.begin();
    episodes_ = (next++)->get();
    anchors_ = (next++)->get();
    for (size_t n = 0; n < streams_.size(); ++n) {
      const WindowStream& from = c.streams[n];
      rbcWindowsStream& s = streams_[n] = rbcWindowsStreamInit();
      s.values = (next++)->get();
      s.episode_offsets = (next++)->get();
      s.offsets = (next++)->get();
      if (c.timed()) s.times = (next++)->get();
      if (from.affine) {
        s.shift = (next++)->get();
        s.scale = (next++)->get();
      }
      if (from.clip) {
        s.clip_min = (next++)->get();
        s.clip_max = (next++)->get();
      }
      params_[n] = rbcResampleParamsInit();
      s.params = &params_[n];
      if (from.interpolates()) {
        s.mode = RBC_WINDOWS_MODE_INTERPOLATE;
        params_[n].method = from.slerp ? RBC_METHOD_SLERP : RBC_METHOD_LINEAR;
      }
      if (from.minus || from.pose) {
        rbcWindowsTransform& t = transforms_[n] = {};
        t.count = from.pose ? 7 : from.channels;
        t.kind = from.pose ? RBC_WINDOWS_TRANSFORM_SE3_RELATIVE : RBC_WINDOWS_TRANSFORM_SUBTRACT;
        t.reference_stream_index = static_cast<int32_t>(n);
        t.rotation = t.reference_rotation = from.pose ? RBC_ROTATION_QUAT_XYZW : 0;
        t.out_rotation = from.pose ? RBC_ROTATION_ROT6D_ROWS : 0;
        s.transforms = &t;
        s.num_transforms = 1;
      }
      outputs_[n] = rbcWindowsOutputsInit();
      outputs_[n].out = tensors.outputs[2 * n].get();
      outputs_[n].valid = tensors.outputs[2 * n + 1].get();
    }
  }

  void operator()(const robocache::Context& context) const override {
    robocache::check(rbcWindows(context.get(), streams_.data(), count(), episodes_, anchors_,
                                outputs_.data(), nullptr));
  }

  void reserve(robocache::Context& context) const override {
    size_t bytes = 0;
    robocache::check(rbcWindowsWorkspaceSize(context.get(), streams_.data(), count(), episodes_,
                                             anchors_, outputs_.data(), nullptr, &bytes));
    context.reserve(bytes);
  }

 private:
  int32_t count() const { return static_cast<int32_t>(streams_.size()); }

  const rbcTensor* episodes_ = nullptr;
  const rbcTensor* anchors_ = nullptr;
  std::vector<rbcWindowsStream> streams_;
  std::vector<rbcResampleParams> params_;
  std::vector<rbcWindowsTransform> transforms_;
  std::vector<rbcWindowsOutputs> outputs_;
};

template <class T>
void put(const support::Array& array, const std::vector<T>& numbers) {
  std::memcpy(array.memory().data(), numbers.data(), numbers.size() * sizeof(T));
}

class WindowsData : public Data {
 public:
  explicit WindowsData(const WindowsCase& c) : c_(c) {
    support::Random random(1);
    std::vector<int64_t> begins = {0};  // in frames
    while (begins.back() < c.frames) {
      begins.push_back(
          std::min(c.frames, begins.back() + kMinRows + random.below(kMaxRows - kMinRows + 1)));
    }
    const auto episodes = static_cast<int64_t>(begins.size()) - 1;
    std::vector<int64_t> episode;
    std::vector<int64_t> anchor;
    for (int64_t b = 0; b < c.batch; ++b) {
      const int64_t e = random.below(episodes);
      episode.push_back(e);
      const int64_t rows = begins[static_cast<size_t>(e) + 1] - begins[static_cast<size_t>(e)];
      anchor.push_back(random.below(rows) * (c.streams[0].interpolates() ? kRowsOfFrame : 1));
    }
    put(addInput("episodes", support::kI64, {c.batch}), episode);
    put(addInput("anchors", support::kI64, {c.batch}), anchor);
    for (const WindowStream& s : c.streams) addStream(s, begins, &random);
    answer();
    bytes = c.roughBytes();
    rows = c.batch;
    in_range = 1;
  }

  std::unique_ptr<Call> callOn(const Tensors& tensors) const override {
    return std::make_unique<WindowsCall>(c_, tensors);
  }

 private:
  void addStream(const WindowStream& s, const std::vector<int64_t>& begins,
                 support::Random* random) {
    const int64_t step = s.interpolates() ? kRowsOfFrame : 1;
    fillValues(addInput("values", s.dtype, {c_.rowsOf(s), s.channels}), random);
    std::vector<int64_t> own;
    for (const int64_t begin : begins) own.push_back(begin * step);
    put(addInput("episode_offsets", support::kI64, {static_cast<int64_t>(own.size())}), own);
    if (s.interpolates()) {
      std::vector<float> offsets;
      for (int64_t o = 0; o < s.offsets; ++o) {
        offsets.push_back(0.0025f * static_cast<float>(o - s.offsets / 2));
      }
      put(addInput("offsets", support::kF32, {s.offsets}), offsets);
    } else {
      std::vector<int64_t> offsets;
      for (int64_t o = 0; o < s.offsets; ++o) offsets.push_back(o);
      put(addInput("offsets", support::kI64, {s.offsets}), offsets);
    }
    if (c_.timed()) {
      std::vector<float> times;
      const double interval = s.interpolates() ? 1e-3 : 1e-3 * kRowsOfFrame;
      for (size_t e = 0; e + 1 < own.size(); ++e) {
        for (int64_t i = 0; i < own[e + 1] - own[e]; ++i) {
          const double jitter = random->uniform(-0.3, 0.3);
          times.push_back(static_cast<float>((static_cast<double>(i) + jitter) * interval));
        }
      }
      put(addInput("times", support::kF32, {c_.rowsOf(s)}), times);
    }
    const auto channels = static_cast<size_t>(s.outChannels());
    const auto addFactor = [&](const char* name, float value) {
      put(addInput(name, support::kF32, {s.outChannels()}), std::vector<float>(channels, value));
    };
    if (s.affine) {
      addFactor("shift", 0.25f);
      addFactor("scale", 1.5f);
    }
    if (s.clip) {
      addFactor("low", -1.0f);
      addFactor("high", 1.0f);
    }
    addOutput(s.out_dtype, {c_.batch, s.offsets, s.outChannels()});
    addOutput(support::kBool, {c_.batch, s.offsets});
  }

  // A block of random numbers, repeated.
  static void fillValues(const support::Array& values, support::Random* random) {
    const auto size = static_cast<size_t>(support::sizeOf(values.dtype()));
    std::vector<std::byte> block(100'003 * size);
    for (size_t at = 0; at < block.size(); at += size) {
      const uint64_t bits = support::encodeFloat(values.dtype(), random->uniform(-1, 1));
      std::memcpy(&block[at], &bits, size);
    }
    std::byte* to = values.memory().data();
    const std::byte* end = to + values.memory().bytes();
    for (; to < end; to += block.size()) {
      std::memcpy(to, block.data(), std::min(block.size(), static_cast<size_t>(end - to)));
    }
  }

  const WindowsCase c_;
};

std::unique_ptr<const Data> WindowsCase::load() const {
  return std::make_unique<WindowsData>(*this);
}

rbcDType floatDType(const std::string& name) {
  const auto* found =
      std::find_if(std::begin(support::kFloatDTypes), std::end(support::kFloatDTypes),
                   [&](const rbcDType& known) { return support::nameOf(known) == name; });
  if (found == std::end(support::kFloatDTypes)) throw std::runtime_error("no windows: " + name);
  return *found;
}

WindowStream parseStream(const std::string& text) {
  WindowStream s;
  long long offsets = 0, channels = 0;
  char dtype[32] = {};
  int read = 0;
  if (std::sscanf(text.c_str(), " %lldx%lld %31s%n", &offsets, &channels, dtype, &read) != 3) {
    throw std::runtime_error("'" + text + "' is not of the form '50x64 bf16 affine'");
  }
  s.offsets = offsets;
  s.channels = channels;
  s.dtype = s.out_dtype = floatDType(dtype);
  std::istringstream words(text.substr(static_cast<size_t>(read)));
  for (std::string word; words >> word;) {
    if (word == "affine") {
      s.affine = true;
    } else if (word == "clip") {
      s.clip = true;
    } else if (word == "minus") {
      s.minus = true;
    } else if (word == "pose") {
      s.pose = true;
    } else if (word == "linear") {
      s.linear = true;
    } else if (word == "slerp") {
      s.slerp = true;
    } else if (word.rfind("to_", 0) == 0) {
      s.out_dtype = floatDType(word.substr(3));
    } else {
      throw std::runtime_error("no windows: " + word);
    }
  }
  return s;
}

std::shared_ptr<Case> parseWindows(const std::string& name) {
  auto c = std::make_shared<WindowsCase>();
  long long batch = 0, rows = 0;
  char unit = 0;
  int read = 0;
  if (std::sscanf(name.c_str(), "%lld windows from %lld%c rows:%n", &batch, &rows, &unit, &read) !=
          3 ||
      read == 0 || (unit != 'M' && unit != 'k')) {
    throw std::runtime_error(
        "'" + name + "' is not of the form '1024 windows from 10M rows: 50x64 bf16 affine'");
  }
  c->batch = batch;
  c->frames = rows * (unit == 'M' ? 1'000'000 : 1000);
  std::istringstream streams(name.substr(static_cast<size_t>(read)));
  for (std::string text; std::getline(streams, text, ';');) c->streams.push_back(parseStream(text));
  c->kernels = 1;
  return c;
}

const CaseKind kWindows(" windows from ", parseWindows);

}  // namespace
}  // namespace bench
