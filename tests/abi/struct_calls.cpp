#include "abi/struct_calls.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace support {

std::string StructInput::name(size_t n) const {
  const bool array = elements.size() > 1;
  return argument + (array ? "[" + std::to_string(n) + "]" : std::string()) + ": ";
}

GuardedMemory StructInput::resized(size_t size) const {
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

bool StructInput::defaultsBeyond(size_t size) const {
  bool equal = true;
  for (const StructBytes& element : elements) {
    for (size_t i = size; i < element.size(); ++i) equal = equal && element[i] == defaults[i];
  }
  return equal;
}

StructCalls::StructCalls() {
  for (const auto& add : makers()) add(*this);
}

std::vector<std::function<void(StructCalls&)>>& StructCalls::makers() {
  static std::vector<std::function<void(StructCalls&)>> all;
  return all;
}

StructCallsOf::StructCallsOf(std::function<void(StructCalls&)> add) {
  StructCalls::makers().push_back(std::move(add));
}

void StructCalls::addBytes(const char* type, const char* argument, const void* elements,
                           size_t count, StructBytes defaults,
                           std::function<rbcStatus_t(const void*)> call) {
  std::vector<StructBytes> copies;
  const auto* begin = static_cast<const std::byte*>(elements);
  const size_t size = defaults.size();
  for (size_t n = 0; n < count; ++n) {
    copies.emplace_back(begin + n * size, begin + (n + 1) * size);
  }
  inputs.push_back({type, argument, std::move(copies), std::move(defaults), std::move(call)});
}

const rbcTensor* StructCalls::keep(Array array) {
  arrays_.push_back(std::move(array));
  tensors_.push_back(arrays_.back().tensor());
  return &tensors_.back();
}

const rbcTensor* StructCalls::in(rbcDType dtype, std::vector<int64_t> shape,
                                 const std::vector<double>& of) {
  std::vector<uint64_t> elements;
  for (const double number : of) elements.push_back(encode(dtype, number));
  return keep(arrayOf(dtype, std::move(shape), elements));
}

const rbcTensor* StructCalls::out(rbcDType dtype, std::vector<int64_t> shape) {
  const rbcTensor* made = keep(Array(dtype, std::move(shape)));
  outputs_.push_back(&arrays_.back());
  return made;
}

StructRecording StructCalls::recording() {
  return {in(kF32, {3, 1}, {0, 2, 6}), in(kF64, {3}, {0, 1, 3}), in(kF64, {2}, {0.5, 2})};
}

rbcStatus_t StructCalls::run(const StructInput& input, const void* object,
                             std::vector<uint64_t>* written) {
  for (Array* array : outputs_) array->memory().poison();
  const rbcStatus_t status = input.call(object);
  written->clear();
  for (const Array* array : outputs_) {
    const std::vector<uint64_t> elements = array->elements();
    written->insert(written->end(), elements.begin(), elements.end());
  }
  return status;
}

}  // namespace support
