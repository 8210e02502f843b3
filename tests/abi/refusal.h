// Calls that must be refused: a test takes a good call, spoils one thing, and sees that the status
// and the message are right, that nothing was written, and that the next good call works.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "support/expect.h"
#include "support/run.h"

namespace support {

// A tensor argument whose every field a test may spoil.
struct Argument {
  Array array;
  rbcTensor raw = {};
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;

  Argument(rbcDType dtype, std::vector<int64_t> extents)
      : array(dtype, extents), shape(std::move(extents)) {
    restore();
  }
  Argument(const Argument&) = delete;

  void restore() {
    raw = array.tensor();
    raw.shape = shape.data();
  }
  void reshape(std::vector<int64_t> extents) {
    shape = std::move(extents);
    raw.shape = shape.data();
    raw.ndim = static_cast<int32_t>(shape.size());
  }
  void restride(std::vector<int64_t> by) {
    strides = std::move(by);
    raw.strides = strides.data();
  }
  template <class T>
  void fill(std::initializer_list<T> elements) {
    auto next = elements.begin();
    array.each([&](std::byte* p) { std::memcpy(p, &*next++, sizeof(T)); });
  }
};

// The context of all such calls.
inline const Context& refusingContext() {
  static const Context made = cpuContext(2);
  return made;
}

// What depends on the contents of arrays is not seen by the workspace query, which reads none.
enum class Seen { kByBoth, kByTheCallAlone };

// `Call` has run() and workspace() for the two functions, untouched() and checkGood(). The first of
// the words opens the message.
template <class Call, class Spoil>
void checkRefused(rbcStatus_t status, std::initializer_list<const char*> words, Spoil&& spoil,
                  Seen seen) {
  Call call;
  spoil(call);
  const auto check = [&](rbcStatus_t got, const char* function) {
    const std::string message = rbcGetLastError();
    CHECK_MESSAGE(got == status, std::string(function), " gave ", nameOf(got), ", expected ",
                  nameOf(status), ": ", message);
    if (got != status) return;
    const bool opens = message.rfind(*words.begin(), 0) == 0;
    CHECK_MESSAGE((opens && tells(message, words)), std::string(function), " says \"", message,
                  "\", expected \"", std::string(*words.begin()), "\"");
  };
  check(call.run(), "the call");
  CHECK(call.untouched());
  if (seen == Seen::kByBoth) check(call.workspace(), "the workspace query");
  Call::checkGood();
}

}  // namespace support
