// Counts allocations of host memory: the test program replaces malloc and operator new.
#pragma once

#include <cstdint>

#include "support/sanitizers.h"

#if defined(__GLIBC__) && !RBC_TEST_SANITIZED
#define RBC_TEST_COUNTS_MALLOC 1
#else
#define RBC_TEST_COUNTS_MALLOC 0
#endif

namespace malloc_counter {

struct Counts {
  int64_t process;  // by any thread
  int64_t library;  // from librobocache's own code, including its CUDA runtime
  int64_t freed;    // by any thread
  int64_t failed;   // failed by failLibraryAt
};

// Always 0 where nothing is counted.
Counts counts() noexcept;

// While one exists, what the C++ library allocates with operator new on its thread counts as the
// library's: strings and streams are code of libstdc++.so, except in packages, which contain it.
class InLibrary {
 public:
  InLibrary() noexcept;
  ~InLibrary();
  InLibrary(const InLibrary&) = delete;
  InLibrary& operator=(const InLibrary&) = delete;
};

// The n-th allocation from now that librobocache's own code asks for gets no memory; 0: all do.
void failLibraryAt(int64_t n) noexcept;

}  // namespace malloc_counter

// Runs a good call some more times.
#define CHECK_ALLOCATES_NOTHING_OF(who, call)                            \
  do {                                                                   \
    int failures_ = 0;                                                   \
    const int64_t before_ = malloc_counter::counts().who;                \
    for (int i_ = 0; i_ < 10; ++i_) failures_ += (call) == 0 ? 0 : 1;    \
    const int64_t allocations_ = malloc_counter::counts().who - before_; \
    CHECK_MESSAGE(allocations_ == 0, #call " allocates in ", #who);      \
    CHECK(failures_ == 0);                                               \
  } while (false)

#define CHECK_ALLOCATES_NOTHING(call) CHECK_ALLOCATES_NOTHING_OF(process, call)
// On CUDA, whose driver may allocate for what it queues.
#define CHECK_ALLOCATES_NOTHING_ITSELF(call) CHECK_ALLOCATES_NOTHING_OF(library, call)
