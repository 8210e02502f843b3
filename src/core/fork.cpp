#include "fork.h"

#include <pthread.h>

#include <atomic>

namespace rbc {
namespace {

std::atomic<uint64_t> generation{0};

void onFork() { generation.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

uint64_t forkGeneration() noexcept {
  static const int registered = pthread_atfork(nullptr, nullptr, onFork);
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace rbc
