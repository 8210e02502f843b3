// Wraps each function that the library exports, so that tests can make every call under a
// condition, such as another locale, and count the calls. CMake generates entry_points.h from
// tests/abi/layouts: it numbers the functions, and defines each name as a macro for
// Entry<...>::call.
#pragma once

#include <atomic>

#include "robocache/robocache.h"

namespace fuzz {

// A call of the library with its arguments.
struct Prepared {
  void (*make)(void*);
  void* arguments;

  void operator()() const { make(arguments); }
};

// Makes the calls of the library, under the condition that the derived class sets up.
class Condition {
 public:
  virtual ~Condition() = default;
  // Makes the call of kEntryNames[entry].
  virtual void call(int entry, const Prepared& prepared) = 0;
};

// The condition for the calls of all threads. If it is null, calls go directly to the library.
inline std::atomic<Condition*> condition{nullptr};

template <auto* kFunction>
inline constexpr int kEntry = -1;

template <auto kFunction>
struct Entry;

template <class Result, class... Arguments, Result (*kFunction)(Arguments...)>
struct Entry<kFunction> {
  static Result call(Arguments... arguments) {
    Condition* const surrounding = condition.load(std::memory_order_acquire);
    if (surrounding == nullptr) return kFunction(arguments...);
    Result result{};
    auto make = [&] { result = kFunction(arguments...); };
    const auto run = [](void* self) { (*static_cast<decltype(make)*>(self))(); };
    surrounding->call(kEntry<kFunction>, {run, &make});
    return result;
  }
};

}  // namespace fuzz

#include "entry_points.h"  // generated; must come last
