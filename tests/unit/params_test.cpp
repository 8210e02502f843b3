// The struct_size rule, on a struct of this test: with the structs of older and newer callers.
#include "params.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "guard.h"
#include "support/arrays.h"
#include "support/expect.h"

namespace {
struct Params {
  uint32_t struct_size;
  uint32_t flags;
  int32_t first;
  int32_t reserved0;
  int32_t other;
  int32_t another;
  double second;  // added in a later release
};
}  // namespace

template <>
inline constexpr rbc::KnownFlags rbc::kKnownFlags<Params> = {6, "TWO, FOUR or 0"};

namespace {

constexpr uint32_t kOlderSize = offsetof(Params, second);
constexpr Params kDefaults = {sizeof(Params), 0, 1, 0, 3, 0, 2.5};

// The memory of a caller of another release: `bytes` in total, ending at an inaccessible page.
class Given {
 public:
  explicit Given(size_t bytes) : memory_(std::max<size_t>(bytes, 4), support::Flush::kEnd) {
    std::memset(memory_.data(), 0, memory_.bytes());
    setSize(static_cast<uint32_t>(bytes));
  }
  void setSize(uint32_t size) { std::memcpy(memory_.data(), &size, sizeof size); }
  template <class T>
  void set(size_t offset, T value) {
    std::memcpy(memory_.data() + offset, &value, sizeof value);
  }
  const Params* get() const { return reinterpret_cast<const Params*>(memory_.data()); }

 private:
  support::GuardedMemory memory_;
};

Params read(const Params* source) { return rbc::readParams(source, kDefaults, "params"); }

}  // namespace

TEST_CASE("params: null gives the defaults") {
  const Params params = read(nullptr);
  CHECK(params.first == 1);
  CHECK(params.second == 2.5);
}

TEST_CASE("params: an older caller's struct is read only up to its end, and the rest is default") {
  Given source(kOlderSize);
  source.set(offsetof(Params, first), int32_t{7});
  const Params params = read(source.get());
  CHECK(params.first == 7);
  CHECK(params.second == 2.5);
}

TEST_CASE("params: a struct of this release is read completely") {
  Given source(sizeof(Params));
  source.set(offsetof(Params, first), int32_t{7});
  source.set(offsetof(Params, second), 8.0);
  const Params params = read(source.get());
  CHECK(params.first == 7);
  CHECK(params.second == 8.0);
}

TEST_CASE("params: a newer caller's struct is accepted if its unknown bytes are zero") {
  Given source(sizeof(Params) + 24);
  source.set(offsetof(Params, first), int32_t{7});
  CHECK(read(source.get()).first == 7);
  for (const size_t byte : {sizeof(Params), sizeof(Params) + 13, sizeof(Params) + 23}) {
    Given newer(sizeof(Params) + 24);
    newer.set(byte, char{1});
    const std::string at = std::to_string(byte);
    CHECK_FAILS(rbc::guard([&] { read(newer.get()); }), RBC_STATUS_INVALID_ARGUMENT,
                "params:", at.c_str());
  }
}

TEST_CASE("params: a struct_size that no compiler gives is refused and nothing is read") {
  constexpr auto own = static_cast<uint32_t>(sizeof(Params));
  for (const uint32_t size : {0u, 1u, 4u, kOlderSize - 4, kOlderSize - 1, kOlderSize + 1,
                              kOlderSize + 4, own - 1, own + 4, 65544u}) {
    Given source(4);
    source.setSize(size);
    CHECK_FAILS(rbc::guard([&] { read(source.get()); }), RBC_STATUS_INVALID_ARGUMENT,
                "params:", "struct_size");
  }
  Given uninitialized(4);
  uninitialized.setSize(0xCCCCCCCC);
  CHECK_FAILS(rbc::guard([&] { read(uninitialized.get()); }), RBC_STATUS_INVALID_ARGUMENT,
              "params:", "struct_size");
}

TEST_CASE("params: unknown flags are refused") {
  for (const uint32_t flags : {0u, 2u, 4u, 6u}) {
    Given source(sizeof(Params));
    source.set(offsetof(Params, flags), flags);
    CHECK(read(source.get()).flags == flags);
  }
  for (const uint32_t flags : {1u, 8u, 0x80000002u}) {
    Given source(sizeof(Params));
    source.set(offsetof(Params, flags), flags);
    CHECK_FAILS(rbc::guard([&] { read(source.get()); }), RBC_STATUS_INVALID_ARGUMENT, "flags: 0x",
                "unknown bits, expected TWO, FOUR or 0");
  }
}

TEST_CASE("params: reserved fields are 0, and without a name the message is bare") {
  Given source(kOlderSize);
  source.set(offsetof(Params, reserved0), int32_t{-1});
  CHECK_FAILS(rbc::guard([&] { read(source.get()); }), RBC_STATUS_INVALID_ARGUMENT,
              "params: reserved0 is not 0");
  CHECK_FAILS(rbc::guard([&] { rbc::readParams(source.get(), kOlderSize, kDefaults, nullptr); }),
              RBC_STATUS_INVALID_ARGUMENT, "reserved0 is not 0");
}

// ---- arrays of structs without a size field -----------------------------------------------------

namespace {

struct Element {
  int64_t first;
  int32_t second;
  int32_t third;
};

// `count` elements of `size` bytes, up to an inaccessible page; each has its index as its first
// field.
support::GuardedMemory elementsOf(int32_t count, size_t size) {
  support::GuardedMemory memory(size * static_cast<size_t>(count), support::Flush::kEnd);
  std::memset(memory.data(), 0, memory.bytes());
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(memory.data() + static_cast<size_t>(i) * size, &i, sizeof i);
  }
  return memory;
}

}  // namespace

TEST_CASE("params: elements of an older and of a newer caller") {
  for (const uint32_t size : {8u, 16u, 24u, 64u}) {
    const support::GuardedMemory memory = elementsOf(3, size);
    const auto* source = reinterpret_cast<const Element*>(memory.data());
    Element read[3];
    std::memset(static_cast<void*>(read), 0x55, sizeof read);
    rbc::readElements(source, 3, size, "elements", "element_size", read);
    for (int64_t i = 0; i < 3; ++i) {
      CHECK(read[i].first == i);
      CHECK(read[i].second == 0);
      CHECK(read[i].third == 0);
    }
    if (size <= sizeof(Element)) continue;
    const support::GuardedMemory newer = elementsOf(3, size);
    newer.data()[2 * size - 1] = std::byte{1};
    CHECK_FAILS(rbc::guard([&] {
                  rbc::readElements(reinterpret_cast<const Element*>(newer.data()), 3, size,
                                    "elements", "element_size", read);
                }),
                RBC_STATUS_INVALID_ARGUMENT, "elements[1]: a byte is set beyond the 16 bytes");
  }
}

TEST_CASE("params: a size of elements that no release has") {
  const support::GuardedMemory memory = elementsOf(1, 16);
  const auto* source = reinterpret_cast<const Element*>(memory.data());
  Element read[1];
  for (const uint32_t size : {0u, 4u, 12u, 65544u}) {
    CHECK_FAILS(
        rbc::guard([&] { rbc::readElements(source, 1, size, "elements", "element_size", read); }),
        RBC_STATUS_INVALID_ARGUMENT, "element_size: is ");
  }
  rbc::readElements<Element>(nullptr, 0, 0, "elements", "element_size", read);  // none is read
}
