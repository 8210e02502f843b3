// Structs that begin with struct_size, as programs of other releases pass them: shorter, longer,
// and with sizes that no compiler produces. Tests every such struct of layouts.inc, in a call that
// succeeds: see struct_calls.h.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "abi/struct_calls.h"
#include "support/expect.h"

namespace {

using support::StructCalls;
using support::StructInput;
using support::StructOutput;

}  // namespace

TEST_CASE("struct sizes: every struct that begins with its size is tested") {
  std::set<std::string> expected;
#define GROWS(type, bytes, id, number) expected.insert(#type)
#include "layouts.inc"
  const StructCalls calls;
  std::set<std::string> tested;
  for (const StructInput& input : calls.inputs) tested.insert(input.type);
  for (const StructOutput& output : calls.filled) tested.insert(output.type);
  CHECK(tested == expected);
}

TEST_CASE("struct sizes: a field that an older program does not have has its default") {
  StructCalls calls;
  int all_shorter = 0;
  for (const StructInput& input : calls.inputs) {
    CAPTURE(std::string(input.type));
    std::vector<uint64_t> expected;
    std::vector<uint64_t> written;
    CHECK_SUCCEEDS(calls.run(input, input.resized(input.size()).data(), &expected));
    const bool ends_with_a_value = !input.defaultsBeyond(input.size() - 8);
    int shorter = 0;
    for (size_t size = input.size() - 8; size >= 8 && input.defaultsBeyond(size); size -= 8) {
      CAPTURE(size);
      CHECK_SUCCEEDS(calls.run(input, input.resized(size).data(), &written));
      CHECK(written == expected);
      ++shorter;
    }
    CHECK((shorter > 0 || ends_with_a_value || input.size() == 8));
    all_shorter += shorter;
  }
  CHECK(all_shorter > 60);
}

TEST_CASE("struct sizes: a field that only a newer program has must be zero") {
  constexpr size_t kMore = 24;
  StructCalls calls;
  for (const StructInput& input : calls.inputs) {
    CAPTURE(std::string(input.type));
    std::vector<uint64_t> expected;
    std::vector<uint64_t> written;
    CHECK_SUCCEEDS(calls.run(input, input.resized(input.size()).data(), &expected));
    const support::GuardedMemory newer = input.resized(input.size() + kMore);
    CHECK_SUCCEEDS(calls.run(input, newer.data(), &written));
    CHECK(written == expected);
    for (size_t n = 0; n < input.elements.size(); ++n) {
      for (const size_t more : {size_t{0}, kMore / 2 + 1, kMore - 1}) {
        std::byte& byte = newer.data()[n * (input.size() + kMore) + input.size() + more];
        byte = std::byte{1};
        const std::string message =
            input.name(n) + "byte " + std::to_string(input.size() + more) + " is set";
        CHECK_FAILS(calls.run(input, newer.data(), &written), RBC_STATUS_INVALID_ARGUMENT,
                    message.c_str());
        byte = std::byte{0};
      }
    }
  }
}

TEST_CASE("struct sizes: a size that cuts a field, or that no struct has, is refused") {
  StructCalls calls;
  for (const StructInput& input : calls.inputs) {
    CAPTURE(std::string(input.type));
    const auto known = static_cast<uint32_t>(input.size());
    for (const uint32_t size : {0u, 4u, known - 4, known - 1, known + 4, 65544u, 0xffffffffu}) {
      const support::GuardedMemory memory = input.resized(known);
      std::memcpy(memory.data(), &size, sizeof size);
      const std::string message = input.name(0) + "struct_size is " + std::to_string(size) +
                                  ", expected " + std::to_string(known);
      std::vector<uint64_t> written;
      CHECK_FAILS(calls.run(input, memory.data(), &written), RBC_STATUS_INVALID_ARGUMENT,
                  message.c_str());
    }
  }
}

TEST_CASE("struct sizes: the library fills a struct as far as the program knows it") {
  const StructCalls calls;
  for (const StructOutput& output : calls.filled) {
    CAPTURE(std::string(output.type));
    support::StructBytes complete(output.size);
    for (const size_t size : {output.size, output.size + 24, output.size - 8, size_t{8}}) {
      CAPTURE(size);
      const support::GuardedMemory memory(size, support::Flush::kEnd);
      std::memset(memory.data(), 0x5a, size);
      const auto struct_size = static_cast<uint32_t>(size);
      std::memcpy(memory.data(), &struct_size, sizeof struct_size);
      CHECK_SUCCEEDS(output.call(memory.data()));
      if (size == output.size) std::memcpy(complete.data(), memory.data(), size);
      CHECK(std::memcmp(memory.data(), &struct_size, sizeof struct_size) == 0);
      const size_t known = std::min(size, output.size);
      CHECK(std::memcmp(memory.data() + 4, complete.data() + 4, known - 4) == 0);
      for (size_t i = known; i < size; ++i) CHECK(memory.data()[i] == std::byte{0x5a});
    }
    const uint32_t none = 0;
    uint64_t memory = 0;
    std::memcpy(&memory, &none, sizeof none);
    CHECK_FAILS(output.call(&memory), RBC_STATUS_INVALID_ARGUMENT, "struct_size is 0");
  }
}
