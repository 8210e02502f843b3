// The common part of CUDA tests: streams, a way to keep a stream busy, and graphs.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/expect.h"
#include "support/run.h"

#define REQUIRE_CUDA()                                       \
  std::string why_;                                          \
  const support::Context cuda = support::cudaContext(&why_); \
  if (cuda == nullptr) SKIP_BECAUSE(why_)

namespace cuda_support {

inline void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// Puts a context on a stream for a while.
class OnStream {
 public:
  OnStream(const support::Context& context, const Stream& stream) : context_(context) {
    support::require(rbcContextSetCudaStream(context.get(), stream.get()));
  }
  ~OnStream() { rbcContextSetCudaStream(context_.get(), nullptr); }
  OnStream(const OnStream&) = delete;

 private:
  const support::Context& context_;
};

// Keeps a stream busy until it is told to go on.
class Blocker {
 public:
  explicit Blocker(cudaStream_t stream) {
    check(cudaLaunchHostFunc(
        stream,
        [](void* user) {
          auto* blocker = static_cast<Blocker*>(user);
          const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
          while (!blocker->open_ && std::chrono::steady_clock::now() < end)
            std::this_thread::yield();
          if (!blocker->open_) blocker->timed_out_ = true;
        },
        this));
  }
  void open() { open_ = true; }
  bool timedOut() const { return timed_out_; }

 private:
  std::atomic<bool> open_{false};
  std::atomic<bool> timed_out_{false};
};

inline void beginCapture(const Stream& stream) {
  check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
}

// The result of a capture.
class Graph {
 public:
  explicit Graph(const Stream& stream) {
    check(cudaStreamEndCapture(stream.get(), &graph_));
    size_t count = 0;
    check(cudaGraphGetNodes(graph_, nullptr, &count));
    std::vector<cudaGraphNode_t> nodes(count);
    types_.resize(count);
    if (count > 0) check(cudaGraphGetNodes(graph_, nodes.data(), &count));
    for (size_t i = 0; i < count; ++i) check(cudaGraphNodeGetType(nodes[i], &types_[i]));
  }
  ~Graph() {
    if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;

  size_t nodes() const { return types_.size(); }
  size_t roots() const {
    size_t count = 0;
    check(cudaGraphGetRootNodes(graph_, nullptr, &count));
    return count;
  }
  bool isOneKernel() const { return nodes() == 1 && types_[0] == cudaGraphNodeTypeKernel; }
  // Whether all of it is the device's own work, or a wait for what used the workspace before.
  bool waitsForNoHost() const {
    for (const cudaGraphNodeType type : types_) {
      if (type != cudaGraphNodeTypeKernel && type != cudaGraphNodeTypeMemset &&
          type != cudaGraphNodeTypeMemcpy && type != cudaGraphNodeTypeWaitEvent) {
        return false;
      }
    }
    return true;
  }
  void launch(const Stream& stream) {
    if (exec_ == nullptr) check(cudaGraphInstantiateWithFlags(&exec_, graph_, 0));
    check(cudaGraphLaunch(exec_, stream.get()));
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  std::vector<cudaGraphNodeType> types_;
};

// Puts an array's elements where others of its shape are, as the stream gets there.
inline void upload(const support::Array& array, const rbcTensor* to, const Stream& stream) {
  check(cudaMemcpyAsync(to->data, array.memory().data(), array.memory().bytes(),
                        cudaMemcpyHostToDevice, stream.get()));
}

}  // namespace cuda_support
