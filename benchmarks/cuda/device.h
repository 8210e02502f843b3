// The CUDA runtime for the benchmarks: memory, streams, graphs, time by events.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "call_set.h"
#include "measure.h"

namespace bench {

inline void checkCuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

// Memory of the device that is current when it is created.
class DeviceMemory {
 public:
  explicit DeviceMemory(size_t bytes) : bytes_(bytes) {
    checkCuda(cudaGetDevice(&device_), "cudaGetDevice");
    checkCuda(cudaMalloc(&data_, std::max<size_t>(bytes, 1)), "cudaMalloc");
  }
  DeviceMemory(const DeviceMemory&) = delete;
  ~DeviceMemory() { cudaFree(data_); }

  char* data() const { return static_cast<char*>(data_); }
  size_t bytes() const { return bytes_; }
  rbcDevice device() const { return {RBC_DEVICE_CUDA, device_}; }

  // Repeats `part` bytes of host memory to fill all of it.
  void fill(const void* source, size_t part) {
    if (bytes_ == 0) return;
    part = std::min(part, bytes_);
    checkCuda(cudaMemcpy(data_, source, part, cudaMemcpyHostToDevice), "cudaMemcpy");
    for (size_t done = part; done < bytes_; done *= 2) {
      const size_t more = std::min(done, bytes_ - done);
      checkCuda(cudaMemcpy(data() + done, data_, more, cudaMemcpyDeviceToDevice), "cudaMemcpy");
    }
    checkCuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  void poison() { set(0xA5); }
  void clear() { set(0); }
  bool holds(const support::GuardedMemory& block) const {
    std::vector<char> host(block.bytes());
    for (size_t done = 0; done < bytes_; done += host.size()) {
      const size_t bytes = std::min(host.size(), bytes_ - done);
      checkCuda(cudaMemcpy(host.data(), data() + done, bytes, cudaMemcpyDeviceToHost),
                "cudaMemcpy");
      if (std::memcmp(host.data(), block.data(), bytes) != 0) return false;
    }
    return true;
  }

 private:
  void set(int byte) {
    checkCuda(cudaMemset(data_, byte, bytes_), "cudaMemset");
    checkCuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  void* data_ = nullptr;
  size_t bytes_;
  int device_ = 0;
};
using DeviceSet = CallSet<DeviceMemory>;

class Stream {
 public:
  Stream() {
    checkCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  Stream(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(stream_); }
  cudaStream_t get() const { return stream_; }
  void synchronize() const { checkCuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

// The work that enqueue(i) puts on the stream for i = 0 .. nodes - 1, as one graph.
class Graph {
 public:
  template <class Enqueue>
  Graph(const Stream& stream, int64_t nodes, Enqueue&& enqueue) {
    checkCuda(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal),
              "cudaStreamBeginCapture");
    cudaGraph_t graph = nullptr;
    try {
      for (int64_t i = 0; i < nodes; ++i) enqueue(i);
    } catch (...) {
      cudaStreamEndCapture(stream.get(), &graph);
      cudaGraphDestroy(graph);
      throw;
    }
    checkCuda(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
    const cudaError_t error = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    checkCuda(error, "cudaGraphInstantiate");
    checkCuda(cudaGraphUpload(executable_, stream.get()), "cudaGraphUpload");
  }
  Graph(const Graph&) = delete;
  ~Graph() { cudaGraphExecDestroy(executable_); }

  void launch(const Stream& stream) const {
    checkCuda(cudaGraphLaunch(executable_, stream.get()), "cudaGraphLaunch");
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

class Event {
 public:
  Event() { checkCuda(cudaEventCreate(&event_), "cudaEventCreate"); }
  Event(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }
  void record(const Stream& stream) {
    checkCuda(cudaEventRecord(event_, stream.get()), "cudaEventRecord");
  }
  double secondsSince(const Event& start) const {
    checkCuda(cudaEventSynchronize(event_), "cudaEventSynchronize");
    float milliseconds = 0;
    checkCuda(cudaEventElapsedTime(&milliseconds, start.event_, event_), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Device seconds per enqueue(), over `times` of them. An additional one goes first, untimed: it
// keeps the device busy until the others are queued, so that the time includes no wait for the
// host.
template <class Enqueue>
double deviceSeconds(const Stream& stream, int64_t times, Enqueue&& enqueue) {
  Event start, stop;
  enqueue();
  start.record(stream);
  for (int64_t i = 0; i < times; ++i) enqueue();
  stop.record(stream);
  return stop.secondsSince(start) / static_cast<double>(times);
}

// Samples of enqueue(), after a warm-up of the clocks.
template <class Enqueue>
Samples collectDevice(const Stream& stream, Enqueue&& enqueue) {
  constexpr double kWarmUp = 30e-3;
  constexpr double kSample = 300e-6;
  double seconds = deviceSeconds(stream, 1, enqueue);
  seconds = deviceSeconds(
      stream, std::clamp<int64_t>(static_cast<int64_t>(kWarmUp / seconds), 1, 1000), enqueue);
  const int64_t times = std::clamp<int64_t>(static_cast<int64_t>(kSample / seconds), 1, 64);
  return collect([&] { return deviceSeconds(stream, times, enqueue); });
}

// The same for each node of a graph with `nodes` launches.
inline Samples collectGraph(const Stream& stream, const Graph& graph, int64_t nodes) {
  return collectDevice(stream, [&] { graph.launch(stream); }) / static_cast<double>(nodes);
}

inline robocache::Context contextOn(const Stream& stream, int device = 0) {
  robocache::Context context = robocache::Context::cuda(device, stream.get());
  context.warmUp();
  return context;
}

// A case on the current device, prepared for calls; checked by one call.
struct Worker {
  explicit Worker(const Data& data, int device = 0)
      : context(contextOn(stream, device)), set(data) {
    set.call().reserve(context);
    call();
    stream.synchronize();
    set.check();
  }
  void call() const { set.call()(context); }

  Stream stream;
  robocache::Context context;
  DeviceSet set;
};

// Functions of other files for the benchmarks of cuda.cpp.
double copyBandwidth();  // bytes read plus bytes written per second, for a copy of 2 GiB
void addCopyBenchmarks(int64_t l2_bytes);  // cuda/copy and cuda/copy/<bytes read plus written>/...
void addScaleBenchmarks();                 // cuda/scale/<case>/gpus:N

}  // namespace bench
