// rbcWindows compared with its rules: random calls with all options, and the same bits from every
// SIMD level, number of threads and backend.
#include <string>
#include <vector>

#include "robocache/windows.h"

#include "support/operation_tests.h"
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
  constexpr const char* kNames[] = {"windows", "windows of narrow floats", "windows of rows"};
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

}  // namespace

OPERATION_TESTS("windows", Windows)
