// rbcWindows compared with its rules: random calls with all options, and the same bits from every
// SIMD level, number of threads and backend.
#include <string>
#include <vector>

#include "robocache/windows.h"

#include "support/interrupted_call.h"
#include "support/operation_tests.h"
#include "support/random.h"
#include "support/random_windows.h"
#include "unit/window_reference.h"

namespace support {

// The ingredients of a random call.
struct WindowCase {
  uint64_t seed = 0;
  Variety variety = Variety::kAny;
  Flush flush = Flush::kEnd;
};

std::string describe(const WindowCase& c) {
  constexpr const char* kNames[] = {"windows", "windows of narrow floats", "windows of rows",
                                    "causal windows"};
  return std::string(kNames[static_cast<int>(c.variety)]) + ", seed " + std::to_string(c.seed);
}

struct WindowInputs {
  WindowCase c;
  WindowCall call;
};

WindowInputs inputsOf(const WindowCase& c) {
  return {c, RandomWindows(c.seed, c.flush).make(c.variety)};
}

class PlacedInputs : public PlacedWindows {
 public:
  PlacedInputs(const Context& context, const WindowInputs& in) : PlacedWindows(context, in.call) {}

  WindowResult fetch(const Context& context, bool* stray_writes) {
    const WindowResult result = PlacedWindows::fetch(context);
    *stray_writes = result.stray;
    return result;
  }
};

PlacedInputs placedOf(const Context& context, const WindowInputs& in) { return {context, in}; }

std::string firstError(const WindowInputs& in, const WindowResult& result) {
  return firstError(in.call, result);
}

}  // namespace support

namespace {

using support::varietyOf;
using support::WindowCase;

struct Windows {
  static constexpr uint64_t kRandomCases = 600;
  static constexpr uint64_t kSameBits = 100;

  static std::vector<WindowCase> table() {
    std::vector<WindowCase> all;
    for (uint64_t seed = 0; seed < 60; ++seed) all.push_back({20'000 + seed, varietyOf(seed)});
    return all;
  }
  static WindowCase random(uint64_t seed) { return {seed, varietyOf(seed)}; }
  static WindowCase any(uint64_t seed) { return random(seed); }
};

struct CausalWindows : Windows {
  static std::vector<WindowCase> table() {
    std::vector<WindowCase> all;
    for (uint64_t seed = 0; seed < 60; ++seed) all.push_back(random(60'000 + seed));
    return all;
  }
  static WindowCase random(uint64_t seed) { return {seed + 500'000, support::Variety::kCausal}; }
  static WindowCase any(uint64_t seed) { return random(seed); }
};

// Many windows of poses and a very long one, for the sum of its steps.
class Cutting : public support::LongCall {
 public:
  Cutting(int64_t windows, int64_t offsets, int32_t kind) : kind_(kind) {
    support::Random random(5);
    for (int64_t i = 0; i < 7 * kRows; ++i) values_.as<float>()[i] = static_cast<float>(i % 17);
    ends_.as<int64_t>()[1] = kRows;
    at_ = support::CallMemory(support::kI32, {offsets});
    for (int64_t o = 0; o < offsets; ++o) {
      at_.as<int32_t>()[o] = static_cast<int32_t>(random.below(kRows));
    }
    episodes_ = support::CallMemory(support::kI32, {windows});
    anchors_ = support::CallMemory(support::kI64, {windows});
    outputs_.emplace_back(support::kF32, std::vector<int64_t>{windows, offsets, 9});
  }

 private:
  static constexpr int64_t kRows = 1000;

  rbcStatus_t call(rbcContext_t context) override {
    const rbcTensor tensors[] = {values_.tensor(),   ends_.tensor(),    at_.tensor(),
                                 episodes_.tensor(), anchors_.tensor(), outputs_[0].tensor()};
    const rbcWindowsTransform transform = {0,
                                           7,
                                           kind_,
                                           0,
                                           0,
                                           0,
                                           0,
                                           RBC_ROTATION_QUAT_XYZW,
                                           RBC_ROTATION_QUAT_XYZW,
                                           RBC_ROTATION_ROT6D_ROWS,
                                           0};
    rbcWindowsStream stream = rbcWindowsStreamInit();
    stream.values = &tensors[0];
    stream.episode_offsets = &tensors[1];
    stream.offsets = &tensors[2];
    stream.transforms = &transform;
    stream.num_transforms = 1;
    rbcWindowsOutputs outputs = rbcWindowsOutputsInit();
    outputs.out = &tensors[5];
    return rbcWindows(context, &stream, 1, &tensors[3], &tensors[4], &outputs, nullptr);
  }

  int32_t kind_;
  support::CallMemory values_{support::kF32, {kRows, 7}};
  support::CallMemory ends_{support::kI64, {2}};
  support::CallMemory at_{support::kI32, {0}};
  support::CallMemory episodes_{support::kI32, {0}};
  support::CallMemory anchors_{support::kI64, {0}};
};

}  // namespace

OPERATION_TESTS("windows", Windows)
OPERATION_TESTS("causal windows", CausalWindows)

TEST_CASE("interrupt: windows") {
  support::checkInterrupts(Cutting(3000, 10, RBC_WINDOWS_TRANSFORM_SE3_RELATIVE));
}
TEST_CASE("interrupt: a long window") {
  support::checkInterrupts(Cutting(1, 20'000, RBC_WINDOWS_TRANSFORM_SE3_STEP));
}
