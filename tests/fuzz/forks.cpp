// One thread steps through a call, instruction by instruction, and stops inside the function under
// test. Meanwhile another thread forks.
#if defined(__x86_64__)

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "fuzz/conditions.h"

extern "C" const char __executable_start;  // NOLINT: the linker's names
extern "C" const char etext;

namespace fuzz {
namespace {

constexpr uint64_t kTrap = 0x100;  // the trap flag: SIGTRAP after every instruction
constexpr int64_t kMostSteps = 20000;
constexpr int64_t kWaitUs =
    20000;  // then the call continues: fork() may wait for a lock that it holds

void sleepUs(int64_t us) {
  const timespec time = {0, static_cast<long>(us * 1000)};
  nanosleep(&time, nullptr);
}

// Whether this thread steps through calls.
thread_local bool is_stepped = false;

enum State { kIdle, kWanted, kStopped, kForked };
std::atomic<int> state{kIdle};
std::atomic<int64_t> steps{0};
std::atomic<int64_t> stop_at{0};

void setTrap(bool on) {
  const uint64_t flags = __builtin_ia32_readeflags_u64();
  __builtin_ia32_writeeflags_u64(on ? flags | kTrap : flags & ~kTrap);
}

void onStep(int, siginfo_t*, void* interrupted) {
  greg_t* const registers = static_cast<ucontext_t*>(interrupted)->uc_mcontext.gregs;
  const auto address = static_cast<uintptr_t>(registers[REG_RIP]);
  if (!is_stepped) {  // a thread that the library has started
    registers[REG_EFL] &= ~static_cast<greg_t>(kTrap);
    return;
  }
  // The begin of a call and its callbacks are code of this program, not of the library.
  const bool in_program = address >= reinterpret_cast<uintptr_t>(&__executable_start) &&
                          address < reinterpret_cast<uintptr_t>(&etext);
  if (++steps < stop_at || in_program) return;
  registers[REG_EFL] &= ~static_cast<greg_t>(kTrap);
  const int error = errno;
  state = kStopped;
  for (int64_t us = 0; us < kWaitUs && state == kStopped; us += 50) sleepUs(50);
  errno = error;
}

// Steps through calls of one function.
class Stepping : public Condition {
 public:
  explicit Stepping(int entry) : wanted_(entry) {}

  void call(int entry, const Prepared& prepared) override {
    if (!is_stepped || entry != wanted_ || state != kWanted || random_.below(3) == 0) {
      return prepared();
    }
    const int64_t bound = std::min(longest_, int64_t{1} << random_.below(15));
    stop_at = 1 + random_.below(bound);
    steps = 0;
    setTrap(true);
    prepared();
    setTrap(false);
    if (state == kWanted) longest_ = std::max<int64_t>(1, steps);
  }

 private:
  int wanted_;
  Choices random_{1};
  int64_t longest_ = kMostSteps;
};

// A thread that repeats a play until it is destroyed.
class Player {
 public:
  explicit Player(const Expected& expected)
      : thread_([this, &expected] {
          is_stepped = true;
          const auto memory = hostMemory();
          try {
            while (!stop_ && defect_.empty()) {
              if (transcriptOf(expected.play, *memory) != expected.transcript) {
                defect_ = "the thread in the parent gets other results";
              }
            }
          } catch (const Defect& defect) {
            defect_ = defect.what();
          }
          ended_ = true;
        }) {}
  ~Player() { join(); }
  Player(const Player&) = delete;

  bool hasEnded() const { return ended_; }
  std::string join() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return defect_;
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<bool> ended_{false};
  std::string defect_;
  std::thread thread_;
};

// Repeats the play in the child. Returns its exit code, 0 if the results are right.
int inChild(const Expected& expected, Memory& memory, std::unique_ptr<Machine>& of_parent) {
  alarm(30);  // kills a child that hangs
  try {
    if (transcriptOf(expected.play, memory) != expected.transcript) return 1;
    // The context starts its threads again, which allocates: not during calls that are made only
    // once.
    if (isProgram(expected.play)) rbcContextWarmUp(of_parent->context());
    if (transcriptOf(expected.play, *of_parent) != expected.transcript) return 2;
    of_parent.reset();  // the context's threads are in the parent
    return 0;
  } catch (const std::exception& error) {
    // Without stdio: another thread of the parent may have held its lock.
    const std::string_view text = error.what();
    return write(STDERR_FILENO, text.data(), text.size()) < 0 ? 4 : 3;
  }
}

void forkOnce(const Expected& expected, Memory& memory, std::unique_ptr<Machine>& of_parent) {
  const std::unique_lock<std::mutex> lock(Machine::ledger());
  const pid_t child = fork();
  if (child == 0) {
    Machine::ledger().unlock();
    condition = nullptr;
    _exit(inChild(expected, memory, of_parent));
  }
  state = kForked;
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) throw Defect("fork() or waitpid() failed");
  if (WIFSIGNALED(status)) {
    throw Defect("the child ends by signal " + std::to_string(WTERMSIG(status)) +
                 (WTERMSIG(status) == SIGALRM ? ": it hangs" : ""));
  }
  if (WEXITSTATUS(status) != 0) {
    throw Defect("the child ends with code " + std::to_string(WEXITSTATUS(status)));
  }
}

// Forks while a thread is inside a call of the function. Returns false if it never stopped there.
bool forkIn(int entry, const Expected& expected, Memory& memory,
            std::unique_ptr<Machine>& of_parent) {
  Stepping stepping(entry);
  const Under under(stepping);
  std::string defect;
  bool stopped = false;
  {
    Player player(expected);
    state = kWanted;
    for (int ms = 0; state != kStopped && ms < 5000 && !player.hasEnded(); ++ms) sleepUs(1000);
    stopped = state == kStopped;
    try {
      if (stopped) forkOnce(expected, memory, of_parent);
    } catch (const Defect& found) {
      defect = found.what();
    }
    state = kIdle;
    const std::string other = player.join();
    if (defect.empty()) defect = other;
  }
  if (!defect.empty()) {
    throw Defect(std::string(kEntryNames[entry]) + ", " + nameOf(expected.play) + ": " + defect);
  }
  return stopped;
}

}  // namespace

std::array<int64_t, kNumEntries> forkInCalls(const std::vector<Expected>& plays, int forks_each) {
  struct sigaction step = {};
  struct sigaction before = {};
  step.sa_sigaction = onStep;
  step.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGTRAP, &step, &before);
  const auto memory = hostMemory();
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = 2;
  auto of_parent = std::make_unique<Machine>("of the parent", params, *memory);
  std::array<int64_t, kNumEntries> forks = {};
  for (size_t entry = 0; entry < forks.size(); ++entry) {
    std::vector<const Expected*> with;
    for (const Expected& expected : plays) {
      if (expected.counts[entry] > 0 && !isUnspecified(expected.play, *memory)) {
        with.push_back(&expected);
      }
    }
    for (size_t n = 0; n < static_cast<size_t>(forks_each) && !with.empty(); ++n) {
      const Expected& expected = *with[(7 * n + entry) % with.size()];
      forks[entry] += forkIn(static_cast<int>(entry), expected, *memory, of_parent) ? 1 : 0;
    }
  }
  sigaction(SIGTRAP, &before, nullptr);
  return forks;
}

}  // namespace fuzz

// A blocked SIGTRAP would end the process. So the library cannot block it, and pthread_create(),
// which blocks all signals, runs without steps.
extern "C" __attribute__((visibility("default"))) int pthread_sigmask(int how, const sigset_t* set,
                                                                      sigset_t* old) {
  static const auto real =
      reinterpret_cast<decltype(&pthread_sigmask)>(dlsym(RTLD_NEXT, "pthread_sigmask"));
  if (set == nullptr || how == SIG_UNBLOCK) return real(how, set, old);
  sigset_t others = *set;
  sigdelset(&others, SIGTRAP);
  return real(how, &others, old);
}

extern "C" __attribute__((visibility("default"))) int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  static const auto real =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  const bool stepped = (__builtin_ia32_readeflags_u64() & fuzz::kTrap) != 0;
  if (stepped) fuzz::setTrap(false);
  const int result = real(thread, attributes, body, argument);
  if (stepped) fuzz::setTrap(true);
  return result;
}

#endif
