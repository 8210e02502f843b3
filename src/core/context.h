// The context: a backend, its state, the allocator and the workspace.
#pragma once

#include <atomic>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include "backend.h"

namespace rbc {

// Room for the objects of a call: callers may have small stacks.
struct CallMemory {
  alignas(64) std::byte bytes[160 << 10];  // only the part that a call needs is touched

  // Replaces the object that the previous call made here.
  template <class T, class... Arguments>
  T& make(Arguments&&... arguments) {
    static_assert(sizeof(T) <= sizeof bytes && std::is_trivially_destructible_v<T>);
    return *new (bytes) T(std::forward<Arguments>(arguments)...);
  }
};

// An object that belongs to a context; calls use it one at a time.
struct InUse {
  std::atomic<bool> busy{false};
  InUse* next = nullptr;  // next of the objects that the context's call uses
};

}  // namespace rbc

struct rbcContext {
  const rbc::Backend* backend = nullptr;
  rbc::BackendState* state = nullptr;
  rbcAllocator allocator = {};  // functions null: the backend's own
  rbc::Scratch workspace = {};
  uint64_t fork_generation = 0;        // forks of this process before the context was made
  std::atomic<int64_t> references{1};  // the caller's, and one for every owned tensor
  std::atomic<bool> busy{false};       // a call uses it
  rbc::InUse* in_use = nullptr;        // other objects that this call uses
  char cuda_unavailable[256] = {};
  rbc::CallMemory call_memory;
};

namespace rbc {

// A call's use of its context, from beginning to end. Fails if the context is null, cannot be used
// (a CUDA context in a forked child), or is in use: calls share its workspace and its threads.
class ContextUse {
 public:
  explicit ContextUse(rbcContext_t context);
  ~ContextUse();
  ContextUse(const ContextUse&) = delete;
  ContextUse& operator=(const ContextUse&) = delete;

  rbcContext& operator*() const { return *context_; }
  rbcContext* operator->() const { return context_; }

 private:
  rbcContext* context_;
};

// Uses an object of the context until the call ends; any number of times. Returns false if it is in
// use elsewhere, which only a function that takes no context can cause.
bool useUntilCallEnds(rbcContext& context, InUse& item) noexcept;

// Fails with DEVICE_MISMATCH unless the context's device can use the tensor's memory.
void requireReachable(const rbcContext& context, const View& view, const char* argument);

// The workspace, grown to `bytes` if necessary. While a stream is captured it cannot grow.
Scratch workspace(rbcContext& context, size_t bytes);

// Allocates memory of the context's device with the caller's allocator or the backend's; fails with
// OUT_OF_MEMORY.
void* allocate(rbcContext& context, size_t bytes);
void release(rbcContext& context, void* pointer, size_t bytes, void* stream) noexcept;

void retain(rbcContext& context) noexcept;
void drop(rbcContext* context) noexcept;

}  // namespace rbc
