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
  std::string name(size_t n) const;
  // The elements with another size, at the end of their memory.
  GuardedMemory resized(size_t size) const;
  // Returns whether all fields that a struct of this size lacks have their defaults.
  bool defaultsBeyond(size_t size) const;
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
  StructCalls();
  StructCalls(const StructCalls&) = delete;

  // A struct that a call reads: its defaults, the elements that are passed, and the name of the
  // argument. The call succeeds.
  template <class T, class Call>
  void add(const char* type, T defaults, std::vector<T> elements, const char* argument, Call call) {
    addBytes(type, argument, elements.data(), elements.size(), structBytesOf(defaults),
             [call](const void* object) { return call(static_cast<const T*>(object)); });
  }

  // A struct that a call fills.
  template <class T, class Call>
  void addFilled(const char* type, Call call) {
    filled.push_back(
        {type, sizeof(T), [call](void* object) { return call(static_cast<T*>(object)); }});
  }

  // Tensors that live as long as the calls.
  const rbcTensor* in(rbcDType dtype, std::vector<int64_t> shape, const std::vector<double>& of);
  const rbcTensor* out(rbcDType dtype, std::vector<int64_t> shape);
  StructRecording recording();
  rbcContext_t context() const { return context_.get(); }

  // The status, and the output of the call.
  rbcStatus_t run(const StructInput& input, const void* object, std::vector<uint64_t>* written);

  std::vector<StructInput> inputs;
  std::vector<StructOutput> filled;

  static std::vector<std::function<void(StructCalls&)>>& makers();

 private:
  // `elements`: `count` structs of the size of the defaults.
  void addBytes(const char* type, const char* argument, const void* elements, size_t count,
                StructBytes defaults, std::function<rbcStatus_t(const void*)> call);
  const rbcTensor* keep(Array array);

  const Context context_ = cpuContext(1);
  std::deque<Array> arrays_;
  std::deque<rbcTensor> tensors_;
  std::vector<Array*> outputs_;
};

// Adds calls, before the tests run.
struct StructCallsOf {
  explicit StructCallsOf(std::function<void(StructCalls&)> add);
};

}  // namespace support
