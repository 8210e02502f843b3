#include "fuzz/calls.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "fuzz/spoil.h"

namespace fuzz {

namespace {

using Make = std::unique_ptr<Call> (*)(Choices&);

// By number. Makers add themselves before main().
std::vector<Make>& makers() {
  static std::vector<Make> all;
  return all;
}

[[noreturn]] void refuse(int number, const char* problem) {
  std::fprintf(stderr, "tests/fuzz: operation number %d %s\n", number, problem);
  std::abort();
}

}  // namespace

Maker::Maker(int number, Make make) {
  const auto index = static_cast<size_t>(number);
  if (index >= makers().size()) makers().resize(index + 1);
  if (makers()[index] != nullptr) refuse(number, "has two makers; take the next free number");
  makers()[index] = make;
}

int numOperations() { return static_cast<int>(makers().size()); }

std::unique_ptr<Call> makeCallOf(int index, Choices& choices) {
  const Make make = makers()[static_cast<size_t>(index)];
  if (make == nullptr) refuse(index, "has no maker; numbers have no gaps");
  return make(choices);
}

std::unique_ptr<Call> makeCall(Choices& choices) {
  auto call = makeCallOf(static_cast<int>(choices.below(numOperations())), choices);
  for (int64_t n = choices.chance(50) ? 0 : choices.between(1, 3); n > 0; --n)
    spoil(*call, choices);
  if (choices.chance(10)) mismatch(*call, choices);
  return call;
}

std::unique_ptr<Call> makeLargeCall(Choices& choices) {
  choices.enlarge(choices.between(1, 4));
  return makeCallOf(static_cast<int>(choices.below(numOperations())), choices);
}

int64_t anyExtent(Choices& choices, int64_t usual) {
  if (choices.isLargeNow()) {
    constexpr int64_t kMaxLarge = 1 << 19;
    const int64_t extent = usual << choices.between(5, choices.chance(10) ? 13 : 9);
    return std::min(extent, kMaxLarge) + choices.below(usual);
  }
  // If one extent is large, all others are small: together they would take gigabytes.
  const int64_t most = choices.hasLarge() ? 3 : INT64_MAX;
  const int64_t kind = choices.below(64);
  if (kind < 2) return 0;
  if (kind < 8) return 1;
  if (kind == 63) return std::min(choices.between(usual, 8 * usual), most);
  return std::min(choices.between(1, usual), most);
}

}  // namespace fuzz
