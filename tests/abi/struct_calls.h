// Calls for struct_sizes_test.cpp. An operation adds its own in the file of its errors:
//
//   const support::StructCallsOf kTakeRows([](support::StructCalls& calls) {
//     calls.add("rbcTakeRowsParams", rbcTakeRowsParamsInit(), {params}, "params", call);
//   });
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/expect.h"
#include "support/run.h"

namespace support {

using StructBytes = std::vector<std::byte>;

template <class T>
StructBytes structBytesOf(const T& object) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&object);
  return StructBytes(bytes, bytes + sizeof object);
}

// A struct that the library reads, or an array of them.
struct StructInput {
  const char* type;
  const char* argument;  // the name in messages, without the index of an array
  std::vector<StructBytes> elements;
  StructBytes defaults;
  std::function<rbcStatus_t(const void*)> call;

  size_t size() const { return defaults.size(); }
  std::string name(size_t n) const {
    const bool array = elements.size() > 1;
    return argument + (array ? "[" + std::to_string(n) + "]" : std::string()) + ": ";
  }
  // The elements with another size, at the end of their memory.
  GuardedMemory resized(size_t size) const {
    GuardedMemory memory(elements.size() * size, Flush::kEnd);
    std::memset(memory.data(), 0, memory.bytes());
    const auto struct_size = static_cast<uint32_t>(size);
    for (size_t n = 0; n < elements.size(); ++n) {
      std::byte* const element = memory.data() + n * size;
      std::memcpy(element, elements[n].data(), std::min(size, elements[n].size()));
      std::memcpy(element, &struct_size, sizeof struct_size);
    }
    return memory;
  }
  // Returns whether all fields that a struct of this size lacks have their defaults.
  bool defaultsBeyond(size_t size) const {
    bool equal = true;
    for (const StructBytes& element : elements) {
      for (size_t i = size; i < element.size(); ++i) equal = equal && element[i] == defaults[i];
    }
    return equal;
  }
};

// A struct that the library fills.
struct StructOutput {
  const char* type;
  size_t size;
  std::function<rbcStatus_t(void*)> call;
};

// A recording of one channel, and times to interpolate it at.
struct StructRecording {
  const rbcTensor* values;
  const rbcTensor* times;
  const rbcTensor* queries;
};

class StructCalls {
 public:
  StructCalls() {
    for (const auto& add : makers()) add(*this);
  }
  StructCalls(const StructCalls&) = delete;

  // A struct that a call reads: its defaults, the elements that are passed, and the name of the
  // argument. The call succeeds.
  template <class T, class Call>
  void add(const char* type, T defaults, std::vector<T> elements, const char* argument, Call call) {
    std::vector<StructBytes> bytes;
    for (const T& element : elements) bytes.push_back(structBytesOf(element));
    inputs.push_back({type, argument, bytes, structBytesOf(defaults),
                      [call](const void* object) { return call(static_cast<const T*>(object)); }});
  }

  // A struct that a call fills.
  template <class T, class Call>
  void addFilled(const char* type, Call call) {
    filled.push_back(
        {type, sizeof(T), [call](void* object) { return call(static_cast<T*>(object)); }});
  }

  // Tensors that live as long as the calls.
  const rbcTensor* in(rbcDType dtype, std::vector<int64_t> shape, const std::vector<double>& of) {
    std::vector<uint64_t> elements;
    for (const double number : of) elements.push_back(encode(dtype, number));
    return keep(arrayOf(dtype, std::move(shape), elements));
  }
  const rbcTensor* out(rbcDType dtype, std::vector<int64_t> shape) {
    const rbcTensor* made = keep(Array(dtype, std::move(shape)));
    outputs_.push_back(&arrays_.back());
    return made;
  }
  StructRecording recording() {
    return {in(kF32, {3, 1}, {0, 2, 6}), in(kF64, {3}, {0, 1, 3}), in(kF64, {2}, {0.5, 2})};
  }
  rbcContext_t context() const { return context_.get(); }

  // The status, and the output of the call.
  rbcStatus_t run(const StructInput& input, const void* object, std::vector<uint64_t>* written) {
    for (Array* array : outputs_) array->memory().poison();
    const rbcStatus_t status = input.call(object);
    written->clear();
    for (const Array* array : outputs_) {
      const std::vector<uint64_t> elements = array->elements();
      written->insert(written->end(), elements.begin(), elements.end());
    }
    return status;
  }

  std::vector<StructInput> inputs;
  std::vector<StructOutput> filled;

  static std::vector<std::function<void(StructCalls&)>>& makers() {
    static std::vector<std::function<void(StructCalls&)>> all;
    return all;
  }

 private:
  const rbcTensor* keep(Array array) {
    arrays_.push_back(std::move(array));
    tensors_.push_back(arrays_.back().tensor());
    return &tensors_.back();
  }

  const Context context_ = cpuContext(1);
  std::deque<Array> arrays_;
  std::deque<rbcTensor> tensors_;
  std::vector<Array*> outputs_;
};

// Adds calls, before the tests run.
struct StructCallsOf {
  explicit StructCallsOf(std::function<void(StructCalls&)> add) {
    StructCalls::makers().push_back(std::move(add));
  }
};

}  // namespace support
