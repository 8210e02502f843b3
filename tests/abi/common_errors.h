// Errors that all operations share: their rows follow from the operation's description
// (error_table.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "abi/error_table.h"

namespace support {

namespace detail {

// Rows of every tensor of the call; `spoil` takes the tensor.
template <class Call>
class TensorRows {
 public:
  explicit TensorRows(const TensorOf<Call>& tensor) : tensor_(tensor) {}

  template <class Spoil>
  void operator()(rbcStatus_t status, const std::string& told, Spoil spoil) const {
    checkError<Call>({status, std::string(tensor_.name) + ": " + told, [&](Call& call) {
                        tensor_.prepare(call);
                        spoil(tensor_.of(call));
                      }});
  }

 private:
  TensorOf<Call> tensor_;
};

}  // namespace detail

template <class Call>
void checkReachableMemory() {
  checkGood<Call>();
  CHECK_SUCCEEDS(Call().workspace());
  for (const int32_t type : {RBC_DEVICE_CUDA_HOST, RBC_DEVICE_CUDA_MANAGED}) {
    Call call;
    for (const TensorOf<Call>& tensor : Call::tensors()) tensor.of(call).raw.device = {type, 0};
    CHECK_SUCCEEDS(call.run());
    call.checkOutputs();
  }
}

template <class Call>
void checkNullPointers() {
  const Call call;
  size_t bytes = 0;
  CHECK_FAILS(call.run(nullptr), RBC_STATUS_INVALID_ARGUMENT, "context: is null");
  CHECK_FAILS(call.workspace(nullptr, &bytes), RBC_STATUS_INVALID_ARGUMENT, "context: is null");
  CHECK_FAILS(call.workspace(refusingContext().get(), nullptr), RBC_STATUS_INVALID_ARGUMENT,
              "bytes: is null");
  CHECK(bytes == 0);
  CHECK(call.untouched());
  for (const PointerOf<Call>& pointer : Call::pointers()) {
    checkError<Call>({RBC_STATUS_INVALID_ARGUMENT, pointer.message, pointer.clear});
  }
}

template <class Call>
void checkDescriptors() {
  static constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const TensorOf<Call>& tensor : Call::tensors()) {
    const detail::TensorRows<Call> wrong(tensor);
    Call good;
    const Argument& a = tensor.of(good);
    wrong(RBC_STATUS_INVALID_ARGUMENT,
          "data is null, expected " + std::to_string(a.array.count()) + " elements",
          [](Argument& b) { b.raw.data = nullptr; });
    wrong(RBC_STATUS_SHAPE_MISMATCH, "rank is 9, expected 0 to 8",
          [](Argument& b) { b.raw.ndim = RBC_TENSOR_MAX_NDIM + 1; });
    wrong(RBC_STATUS_SHAPE_MISMATCH, "rank is -1, expected 0 to 8",
          [](Argument& b) { b.raw.ndim = -1; });
    wrong(RBC_STATUS_DTYPE_MISMATCH, "dtype...2 lanes", [](Argument& b) { b.raw.dtype.lanes = 2; });
    wrong(RBC_STATUS_DTYPE_MISMATCH, "dtype...0 lanes", [](Argument& b) { b.raw.dtype.lanes = 0; });
    wrong(RBC_STATUS_DTYPE_MISMATCH, "dtype", [](Argument& b) { b.raw.dtype = {5, 64, 1}; });
    wrong(RBC_STATUS_DTYPE_MISMATCH, "dtype", [](Argument& b) { b.raw.dtype.bits = 4; });
    if (sizeOf(a.array.dtype()) > 1) {
      wrong(RBC_STATUS_INVALID_ARGUMENT, "data + byte_offset is not aligned",
            [](Argument& b) { b.raw.byte_offset = 1; });
    }
    if (a.shape.empty()) continue;
    wrong(RBC_STATUS_INVALID_ARGUMENT, "shape is null", [](Argument& b) { b.raw.shape = nullptr; });
    wrong(RBC_STATUS_SHAPE_MISMATCH, "extent 0 is -2, expected 0 or more",
          [](Argument& b) { b.shape[0] = -2; });
    wrong(RBC_STATUS_SHAPE_MISMATCH, "shape [9223372036854775807...overflow",
          [](Argument& b) { b.shape[0] = kMost; });
    wrong(RBC_STATUS_SHAPE_MISMATCH, "shape [...overflow",
          [](Argument& b) { b.restride(std::vector<int64_t>(b.shape.size(), kMost)); });
  }
}

template <class Call>
void checkDevices() {
  for (const TensorOf<Call>& tensor : Call::tensors()) {
    for (const int32_t type : {RBC_DEVICE_CUDA, 0, 10, -1, 99}) {
      detail::TensorRows<Call>{tensor}(
          RBC_STATUS_DEVICE_MISMATCH,
          "lives on device (type " + std::to_string(type) + ", id 0), expected the CPU",
          [&](Argument& a) { a.raw.device.type = type; });
    }
  }
}

template <class Call>
void checkStructs() {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  for (const StructOf<Call>& s : Call::structs()) {
    const std::string name = std::string(s.name) + ": ";
    const auto set = [&](Call& call, size_t offset, auto value) {
      std::memcpy(static_cast<std::byte*>(s.of(call)) + offset, &value, sizeof value);
    };
    const auto own = static_cast<uint32_t>(s.size);
    for (const uint32_t size : {0u, 4u, own - 4, own - 1, own + 4, 65544u, 0xffffffffu}) {
      const std::string told = "struct_size is " + std::to_string(size) + ", expected ";
      checkError<Call>(
          {kStatus, name + told + std::to_string(own), [&](Call& call) { set(call, 0, size); }});
    }
    for (const Reserved& field : s.reserved) {
      for (size_t i = 0; i < field.bytes; ++i) {
        checkError<Call>({kStatus, name + "reserved0 is not 0",
                          [&](Call& call) { set(call, field.offset + i, std::byte{0x80}); }});
      }
    }
    if (!s.has_flags) continue;
    const uint32_t unknown = ~s.flags & (s.flags + 1);  // the lowest such bit
    for (const uint32_t flags : {unknown, s.flags | unknown, 0x80000000u}) {
      char told[64];
      std::snprintf(told, sizeof told, "flags: 0x%x has unknown bits, expected ", flags);
      checkError<Call>({kStatus, told, [&](Call& call) { set(call, 4, flags); }});
    }
  }
}

// A newer caller's struct has more fields: zeros in them ask for nothing.
template <class Call>
void checkNewerCaller() {
  constexpr size_t kMore = 24;
  for (const StructOf<Call>& s : Call::structs()) {
    Call call;
    std::vector<uint64_t> newer((s.size + kMore + 7) / 8);
    auto* const bytes = reinterpret_cast<std::byte*>(newer.data());
    const auto size = static_cast<uint32_t>(s.size + kMore);
    std::memcpy(bytes, s.of(call), s.size);
    std::memcpy(bytes, &size, sizeof size);
    s.pass(call, bytes);
    for (const size_t i : {size_t{0}, kMore / 2 + 1, kMore - 1}) {
      bytes[s.size + i] = std::byte{1};
      const std::string told =
          std::string(s.name) + ": byte " + std::to_string(s.size + i) + " is set";
      CHECK_FAILS(call.run(), RBC_STATUS_INVALID_ARGUMENT, told.c_str());
      CHECK_FAILS(call.workspace(), RBC_STATUS_INVALID_ARGUMENT, told.c_str());
      CHECK(call.untouched());
      bytes[s.size + i] = std::byte{0};
    }
    CHECK_SUCCEEDS(call.run());
    call.checkOutputs();
  }
}

// Every output, and every input, apart from every other output, and each output from itself.
template <class Call>
void checkOverlaps() {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  const std::vector<TensorOf<Call>> tensors = Call::tensors();
  const auto overlap = [&](const TensorOf<Call>& told, const char* first,
                           const TensorOf<Call>& moved, const TensorOf<Call>& onto) {
    checkError<Call>(
        {kStatus, std::string(told.name) + ": overlaps " + first + ", expected memory of its own",
         [&](Call& call) {
           onto.prepare(call);
           // Aligned for any element, since bytes may have odd addresses.
           const auto address = reinterpret_cast<uintptr_t>(onto.of(call).raw.data);
           moved.of(call).raw.data = reinterpret_cast<void*>(address & ~uintptr_t{7});
         }});
  };
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorOf<Call>& output = tensors[i];
    if (output.access == Access::kRead) continue;
    for (size_t j = 0; j < tensors.size(); ++j) {
      const TensorOf<Call>& other = tensors[j];
      if (other.access == Access::kRead) {
        overlap(other, output.name, output, other);
      } else if (j > i) {
        overlap(other, output.name, other, output);
      }
    }
    Call good;
    const Argument& a = output.of(good);
    if (a.array.count() < 2) continue;
    const std::string told = std::string(output.name) + ": elements share memory (shape ";
    checkError<Call>({kStatus, told + "...expected distinct ones", [&](Call& call) {
                        output.of(call).restride(std::vector<int64_t>(a.shape.size(), 0));
                      }});
  }
}

}  // namespace support

// The test cases of an operation. They are macros because each is a separate ctest.
#define COMMON_ERROR_TESTS(name, Call)                                                     \
  TEST_CASE(name " errors: the good call is good, wherever the host reaches its memory") { \
    ::support::checkReachableMemory<Call>();                                               \
  }                                                                                        \
  TEST_CASE(name " errors: null pointers") { ::support::checkNullPointers<Call>(); }       \
  TEST_CASE(name " errors: descriptors that no tensor can have") {                         \
    ::support::checkDescriptors<Call>();                                                   \
  }                                                                                        \
  TEST_CASE(name " errors: memory of another device") { ::support::checkDevices<Call>(); } \
  TEST_CASE(name " errors: an input or output that overlaps an output") {                  \
    ::support::checkOverlaps<Call>();                                                      \
  }

// Of an operation that takes structs.
#define STRUCT_ERROR_TESTS(name, Call)                                \
  TEST_CASE(name " errors: struct_size, flags and reserved fields") { \
    ::support::checkStructs<Call>();                                  \
  }                                                                   \
  TEST_CASE(name " errors: what a newer caller asks for") { ::support::checkNewerCaller<Call>(); }
