#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "fuzz/conditions.h"

namespace fuzz {
namespace {

constexpr size_t kStack = 64 << 10;
constexpr size_t kPromised = 32 << 10;  // in docs/abi.md
constexpr size_t kPage = 4096;
constexpr uint8_t kUntouched = 0xA5;

}  // namespace

// The thread with the small stack. It makes all calls, including rbcGetLastError(), because each
// thread has its own message.
struct SmallStack::Worker {
  uint8_t* mapped = nullptr;
  uint8_t* stack = nullptr;
  pthread_t thread = {};
  sem_t given = {};
  sem_t made = {};
  const Prepared* prepared = nullptr;  // null ends the thread
  size_t used = 0;
  std::array<size_t, kNumEntries> deepest = {};

  static void* work(void* self) {
    auto& worker = *static_cast<Worker*>(self);
    for (;;) {
      while (sem_wait(&worker.given) != 0) {
      }
      if (worker.prepared == nullptr) return nullptr;
      worker.measure();
      sem_post(&worker.made);
    }
  }

  void measure() {
    auto* const top = static_cast<uint8_t*>(__builtin_frame_address(0));
    constexpr size_t kOwnFrames = 512;  // room for this function and memset()
    uint8_t* const free_until = top - kOwnFrames;
    std::memset(stack, kUntouched, static_cast<size_t>(free_until - stack));
    (*prepared)();
    const auto* const lowest =
        std::find_if(stack, free_until, [](uint8_t b) { return b != kUntouched; });
    used = lowest == free_until ? 0 : static_cast<size_t>(top - lowest);
  }
};

SmallStack::SmallStack() : worker_(new Worker) {
  constexpr size_t kBytes = kStack + 2 * kPage;  // with an inaccessible page at each end
  void* mapped = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw Defect("mmap() failed for a stack");
  worker_->mapped = static_cast<uint8_t*>(mapped);
  worker_->stack = worker_->mapped + kPage;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  sem_init(&worker_->given, 0, 0);
  sem_init(&worker_->made, 0, 0);
  if (mprotect(worker_->stack, kStack, PROT_READ | PROT_WRITE) != 0 ||
      pthread_attr_setstack(&attributes, worker_->stack, kStack) != 0 ||
      pthread_create(&worker_->thread, &attributes, Worker::work, worker_.get()) != 0) {
    throw Defect("a thread with a stack of 64 KiB does not start");
  }
  pthread_attr_destroy(&attributes);
}

SmallStack::~SmallStack() {
  worker_->prepared = nullptr;
  sem_post(&worker_->given);
  pthread_join(worker_->thread, nullptr);
  munmap(worker_->mapped, kStack + 2 * kPage);
}

void SmallStack::surround(int entry, const Prepared& prepared) {
  if (pthread_equal(pthread_self(), worker_->thread) != 0) return prepared();  // a callback
  worker_->prepared = &prepared;
  sem_post(&worker_->given);
  while (sem_wait(&worker_->made) != 0) {
  }
  size_t& deepest = worker_->deepest[static_cast<size_t>(entry)];
  deepest = std::max(deepest, worker_->used);
  if (worker_->used > kPromised) {
    blame(entry, "takes " + std::to_string(worker_->used) + " bytes of stack");
  }
}

int SmallStack::deepestEntry() const {
  const auto& all = worker_->deepest;
  return static_cast<int>(std::max_element(all.begin(), all.end()) - all.begin());
}

size_t SmallStack::deepest() const { return worker_->deepest[static_cast<size_t>(deepestEntry())]; }

}  // namespace fuzz
