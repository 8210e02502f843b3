#include "thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "float_environment.h"
#include "fork.h"

namespace rbc {
namespace {

// Waits about 20 us for something that another thread will do soon: cheaper than sleeping and being
// woken. Yields in between, since the other thread may need this very CPU.
template <class Condition>
bool spinUntil(Condition&& condition) noexcept {
  constexpr int kTurns = 32;
  constexpr int kPauses = 32;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int i = 0; i < kPauses; ++i) {
      if (condition()) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    sched_yield();
  }
  return false;
}

// Signals of the process must go to the application's own threads.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

struct ThreadPool::Workers {
  static constexpr int64_t kPatience = 20000000;  // how often a waiting thread calls its function

  Interrupt& interrupt;
  std::mutex mutex;
  std::condition_variable work_posted;
  std::condition_variable work_done;
  std::atomic<uint64_t> posted{0};  // jobs so far; written under the mutex
  std::atomic<int> working{0};      // workers in the job; written under the mutex
  std::atomic<int64_t> next{0};     // next chunk of the job
  Job job{};                        // under the mutex, as are the next two
  int seats = 0;                    // workers that may still join the job
  bool stopping = false;
  std::unique_ptr<ThreadMemory[]> memories;  // of the workers
  std::vector<std::thread> workers;
  void* next_abandoned = nullptr;

  explicit Workers(Interrupt& the_interrupt) : interrupt(the_interrupt) {}

  void takeChunks(const Job& from, ThreadMemory& memory) noexcept {
    for (bool first = true;; first = false) {
      const int64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= from.chunks || (!first && interrupt.stopped())) return;
      from.call(from.context, i, memory);
    }
  }

  // Runs on the thread that posted the job: waits until no worker is in it.
  void waitUntilDone() noexcept {
    const auto isDone = [&] { return working.load(std::memory_order_acquire) == 0; };
    if (spinUntil(isDone)) return;
    std::unique_lock<std::mutex> lock(mutex);
    if (!interrupt.isSet()) {
      work_done.wait(lock, isDone);
      return;
    }
    while (!work_done.wait_for(lock, std::chrono::nanoseconds(kPatience), isDone)) {
      lock.unlock();
      interrupt.stopped();
      lock.lock();
    }
  }

  void serve(int number, ThreadMemory& memory) noexcept {
    char name[16];  // the length that Linux allows
    std::snprintf(name, sizeof name, "robocache-%u", static_cast<unsigned>(number) % 100000);
    pthread_setname_np(pthread_self(), name);
    const DefaultFloats floats;  // a thread inherits its creator's
    uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      const auto isPosted = [&] { return posted.load(std::memory_order_relaxed) != seen; };
      if (!isPosted()) {
        lock.unlock();
        spinUntil(isPosted);
        lock.lock();
      }
      work_posted.wait(lock, isPosted);  // stopping counts as posted
      if (stopping) return;
      seen = posted.load(std::memory_order_relaxed);
      if (seats == 0) continue;
      --seats;
      working.fetch_add(1, std::memory_order_relaxed);
      const Job mine = job;
      lock.unlock();
      takeChunks(mine, memory);
      lock.lock();
      if (working.fetch_sub(1, std::memory_order_release) == 1) work_done.notify_one();
    }
  }
};

namespace {

// Workers of a parent process. Their mutexes may be locked forever, so they are never destroyed;
// the list keeps them reachable.
std::atomic<void*> abandoned{nullptr};

}  // namespace

ThreadPool::ThreadPool(int threads, Interrupt& interrupt)
    : threads_(threads),
      interrupt_(interrupt),
      memory_(new ThreadMemory),
      fork_generation_(forkGeneration()) {}

void ThreadPool::leaveParentsWorkers() noexcept {
  if (fork_generation_ == forkGeneration()) return;
  if (workers_ != nullptr) workers_->next_abandoned = abandoned.exchange(workers_);
  workers_ = nullptr;
  fork_generation_ = forkGeneration();
}

ThreadPool::~ThreadPool() {
  leaveParentsWorkers();
  if (workers_ == nullptr) return;
  {
    const std::lock_guard<std::mutex> lock(workers_->mutex);
    workers_->stopping = true;
    workers_->posted.fetch_add(1, std::memory_order_relaxed);
  }
  workers_->work_posted.notify_all();
  for (std::thread& worker : workers_->workers) worker.join();
  delete workers_;
}

int ThreadPool::start() noexcept {
  leaveParentsWorkers();
  if (threads_ <= 1) return 0;
  if (workers_ == nullptr) workers_ = new (std::nothrow) Workers(interrupt_);
  if (workers_ == nullptr) return 0;
  const SignalsBlocked blocked;
  try {
    const auto workers = static_cast<size_t>(threads_ - 1);
    if (workers_->memories == nullptr) workers_->memories.reset(new ThreadMemory[workers]);
    workers_->workers.reserve(workers);
    while (workers_->workers.size() < workers) {
      workers_->workers.emplace_back([own = workers_, i = workers_->workers.size()] {
        own->serve(static_cast<int>(i) + 1, own->memories[i]);
      });
    }
  } catch (const std::exception&) {
    // The system has no more threads or memory: the existing workers do the work.
  }
  return static_cast<int>(workers_->workers.size());
}

void ThreadPool::run(const Job& job, int threads) noexcept {
  leaveParentsWorkers();
  if (workers_ == nullptr)
    start();  // only once: trying again would cost each call more than a thread saves
  if (workers_ == nullptr) {
    runHere(job);
    return;
  }
  Workers& own = *workers_;
  const auto workers = static_cast<int>(own.workers.size());
  const auto useful = static_cast<int>(std::min<int64_t>({threads - 1, job.chunks - 1, workers}));
  {
    const std::lock_guard<std::mutex> lock(own.mutex);
    own.job = job;
    own.seats = useful;
    own.next.store(0, std::memory_order_relaxed);
    own.posted.fetch_add(1, std::memory_order_relaxed);
  }
  if (useful == workers) {
    own.work_posted.notify_all();
  } else {
    for (int i = 0; i < useful; ++i) own.work_posted.notify_one();
  }
  own.takeChunks(job, *memory_);
  {
    const std::lock_guard<std::mutex> lock(own.mutex);
    own.seats = 0;  // a worker that wakes up late finds nothing to do
  }
  own.waitUntilDone();
}

}  // namespace rbc
