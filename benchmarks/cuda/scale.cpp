// All GPUs of the machine, each with a context, a stream, a thread and the same work: the time of a
// round of calls, compared with the same round on only the first GPU.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <thread>

#include "device.h"

namespace bench {
namespace {

constexpr double kRoundSeconds = 20e-3;

// A worker per GPU, and threads that wait for a round and go through it together, including the
// calling one.
class Team {
 public:
  Team(const Data& data, int gpus) : errors_(static_cast<size_t>(gpus)) {
    checkCuda(cudaGetDevice(&before_), "cudaGetDevice");
    for (int device = 0; device < gpus; ++device) {
      checkCuda(cudaSetDevice(device), "cudaSetDevice");
      workers_.push_back(std::make_unique<Worker>(data, device));
    }
    for (int device = 1; device < gpus; ++device) {
      threads_.emplace_back([this, device] {
        for (int seen = 0;;) {
          while (started_.load() == seen) std::this_thread::yield();
          seen = started_.load();
          if (stopping_) return;
          if (device < members_) work(device);
          ++done_;
        }
      });
    }
  }
  ~Team() {
    stopping_ = true;
    ++started_;
    for (std::thread& thread : threads_) thread.join();
    workers_.clear();
    cudaSetDevice(before_);
  }
  Team(const Team&) = delete;

  // Seconds that the first `members` take for a round of `calls` calls.
  double round(int members, int calls) {
    members_ = members;
    calls_ = calls;
    done_ = 0;
    const auto start = std::chrono::steady_clock::now();
    ++started_;
    work(0);
    while (done_.load() < threads_.size()) std::this_thread::yield();
    const auto end = std::chrono::steady_clock::now();
    for (const std::exception_ptr& error : errors_) {
      if (error != nullptr) std::rethrow_exception(error);
    }
    return std::chrono::duration<double>(end - start).count();
  }

 private:
  void work(int device) {
    const Worker& worker = *workers_[static_cast<size_t>(device)];
    try {
      checkCuda(cudaSetDevice(device), "cudaSetDevice");
      for (int i = 0; i < calls_; ++i) worker.call();
      worker.stream.synchronize();
    } catch (...) {
      errors_[static_cast<size_t>(device)] = std::current_exception();
    }
  }

  int before_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::exception_ptr> errors_;
  std::vector<std::thread> threads_;
  std::atomic<int> started_{0};
  std::atomic<size_t> done_{0};
  int members_ = 0;  // these three are set before started_
  int calls_ = 0;
  bool stopping_ = false;
};

// Rounds of one GPU and of all take turns, so that both have the same conditions. The time is that
// of a call on each GPU.
void benchScale(benchmark::State& state, const CasePtr& c, int gpus) {
  Team team(dataOf(c), gpus);
  team.round(gpus, 1);
  int calls = 1;
  while (team.round(gpus, calls) < kRoundSeconds && calls < (1 << 20)) calls *= 2;
  std::vector<double> one;
  const Samples all = collect([&] {
    one.push_back(team.round(1, calls) / calls);
    return team.round(gpus, calls) / calls;
  });
  report(state, all);
  state.counters["x_one"] = gpus * summarize(std::move(one)).median / all.median;
}

}  // namespace

void addScaleBenchmarks() {
  int count = 0;
  checkCuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  std::vector<int> sizes;
  for (int gpus = 1; gpus < count; gpus *= 2) sizes.push_back(gpus);
  sizes.push_back(count);
  for (const CasePtr& c : casesOf("scale")) {
    for (const int gpus : sizes) {
      add("cuda/scale/" + c->table + " " + c->name + "/gpus:" + std::to_string(gpus),
          [=](benchmark::State& state) { benchScale(state, c, gpus); });
    }
  }
}

}  // namespace bench
