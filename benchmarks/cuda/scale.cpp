// As many GPUs as there are, each with a context, a stream, a thread and the same work: the time of
// a round of calls, held against the same round on the first GPU alone.

#include "scale.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../case_data.h"
#include "../last_data.h"
#include "../voxel_data.h"
#include "device_set.h"

namespace bench {
namespace {

constexpr double kRoundSeconds = 20e-3;

// One case on one GPU, which is the current one of the thread that makes it and calls.
template <class Call>
class Worker {
 public:
  Worker(const typename Call::Data& data, int device)
      : device_((checkCuda(cudaSetDevice(device), "cudaSetDevice"), device)),
        context_(contextOn(stream_, device)),
        set_(data, device) {
    set_.call().reserve(context_);
    set_.reset();
    set_.call()(context_);
    stream_.synchronize();
    set_.check();
  }

  void round(int calls) {
    checkCuda(cudaSetDevice(device_), "cudaSetDevice");
    for (int i = 0; i < calls; ++i) set_.call()(context_);
    stream_.synchronize();
  }

 private:
  int device_;
  Stream stream_;
  robocache::Context context_;
  DeviceSet<Call> set_;
};

// Threads that wait for a round and go through it together, the calling one among them.
class Team {
 public:
  explicit Team(std::vector<std::function<void(int)>> rounds) : rounds_(std::move(rounds)) {
    errors_.resize(rounds_.size());
    for (size_t i = 1; i < rounds_.size(); ++i) {
      threads_.emplace_back([this, i] {
        for (int seen = 0;;) {
          while (started_.load() == seen) std::this_thread::yield();
          seen = started_.load();
          if (stopping_) return;
          if (i < members_) work(i);
          ++done_;
        }
      });
    }
  }
  ~Team() {
    stopping_ = true;
    ++started_;
    for (std::thread& thread : threads_) thread.join();
  }
  Team(const Team&) = delete;

  // Seconds that the first `members` take for a round of so many calls.
  double round(size_t members, int calls) {
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
  void work(size_t i) {
    try {
      rounds_[i](calls_);
    } catch (...) {
      errors_[i] = std::current_exception();
    }
  }

  std::vector<std::function<void(int)>> rounds_;
  std::vector<std::exception_ptr> errors_;
  std::vector<std::thread> threads_;
  std::atomic<int> started_{0};
  std::atomic<size_t> done_{0};
  size_t members_ = 0;  // these three are set before started_
  int calls_ = 0;
  bool stopping_ = false;
};

// Rounds of one GPU and of all take turns, so that both meet the same machine. The time is that of
// a call on each GPU.
template <class Call>
void benchScale(benchmark::State& state, const typename Call::Data::Case& c, int gpus) {
  const auto& data = dataOf<typename Call::Data>(c);
  int before = 0;
  checkCuda(cudaGetDevice(&before), "cudaGetDevice");
  std::deque<std::unique_ptr<Worker<Call>>> workers;
  std::vector<std::function<void(int)>> rounds;
  for (int device = 0; device < gpus; ++device) {
    workers.push_back(std::make_unique<Worker<Call>>(data, device));
    rounds.push_back([worker = workers.back().get()](int calls) { worker->round(calls); });
  }
  std::vector<double> one, all;
  {
    Team team(std::move(rounds));
    const size_t members = workers.size();
    team.round(members, 1);
    int calls = 1;
    while (team.round(members, calls) < kRoundSeconds && calls < (1 << 20)) calls *= 2;
    const auto start = std::chrono::steady_clock::now();
    const auto elapsed = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    while (all.size() < 5 || elapsed() < run().seconds) {
      one.push_back(team.round(1, calls) / calls);
      all.push_back(team.round(members, calls) / calls);
    }
  }
  workers.clear();
  checkCuda(cudaSetDevice(before), "cudaSetDevice");
  const Samples together = summarize(std::move(all));
  report(state, together);
  state.counters["x_one"] = gpus * summarize(std::move(one)).median / together.median;
}

}  // namespace

void addScaleBenchmarks() {
  int count = 0;
  checkCuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  std::vector<int> sizes;
  for (int gpus = 1; gpus < count; gpus *= 2) sizes.push_back(gpus);
  sizes.push_back(count);
  const auto addAll = [&](const std::vector<std::string>& names, const auto& cases, auto body) {
    for (const std::string& name : names) {
      const auto found =
          std::find_if(cases.begin(), cases.end(), [&](const auto& c) { return c.name == name; });
      if (found == cases.end()) throw std::runtime_error("no case " + name);
      for (const int gpus : sizes) {
        add("cuda/scale/" + found->op + " " + name + "/gpus:" + std::to_string(gpus),
            [=, c = *found](benchmark::State& state) { body(state, c, gpus); });
      }
    }
  };
  // Bound by memory; by the host; and what shares the workspace with itself.
  addAll({"1024,500,250,256 bf16", "4096,4096,1024,32 f32", "1,500,1,32 f32"}, resampleCases(),
         benchScale<Call>);
  addAll({"B=256: 100x512, 200x128, 300x64 -> 128 bf16"}, fuseCases(), benchScale<Call>);
  addAll({"count/10M 256^3 uniform", "sparse mean/1M 1000x1000x40 uniform"}, voxelCases(),
         benchScale<VoxelCall>);
}

}  // namespace bench
