// The headers keep to the baseline of ABI version 1, tests/abi/layouts: sizes, offsets and values
// that programs were compiled with, the types of functions, and the defaults of structs. A struct
// with a struct_size may grow at its end, and no other may.
//
// Once ABI version 1 is released, rows may be added, but not changed or removed. The rows:
//
//   VALUE(constant, value)
//   SIZE(type, bytes)                    a struct or a handle that may not grow
//   GROWS(struct, bytes, id, number)     a struct with a struct_size; number is the value of id
//   FIELD(struct, field, offset, type)
//   DEFAULT(struct, field, value)        what the initializer sets; it sets all other fields to 0
//   SYMBOL_VERSION(version)              of the functions below it: ROBOCACHE_1, or for those that
//                                        release 0.2 adds, ROBOCACHE_1_0.2
//   FUNCTION(function, type)
//
// CMake makes the linker's version script from the last two.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "robocache/robocache.h"
#include "support/expect.h"

#if defined(RBC_DLPACK_HEADER)
#include RBC_DLPACK_HEADER
#endif

static_assert(RBC_ABI_VERSION == 1, "a new ABI version needs a new baseline");
static_assert(sizeof(void*) == 8 && sizeof(size_t) == 8, "the baseline is that of 64-bit Linux");

#define VALUE(name, value) static_assert((name) == (value), #name " has changed")
#define SIZE(type, bytes) \
  static_assert(sizeof(type) == (bytes), "the size of " #type " has changed")
#define GROWS(type, bytes, id, number) \
  SIZE(type, bytes);                   \
  VALUE(id, number);                   \
  static_assert(sizeof(type) % 8 == 0, "the size of " #type " is not a multiple of 8")
#define FIELD(type, field, offset, ...)                                            \
  static_assert(offsetof(type, field) == (offset), #type "." #field " has moved"); \
  static_assert(std::is_same_v<decltype(type::field), __VA_ARGS__>,                \
                #type "." #field " has another type")
#define FUNCTION(name, ...) \
  static_assert(std::is_same_v<decltype(&name), __VA_ARGS__>, #name " has changed")
#include "layouts.inc"

namespace {

// Zeros, the size, and the defaults that a test has set.
template <class Struct>
Struct& expectedOf() {
  static Struct expected = [] {
    Struct zeros;
    std::memset(&zeros, 0, sizeof zeros);
    zeros.struct_size = sizeof zeros;
    return zeros;
  }();
  return expected;
}

template <class Struct>
void checkInitializer(const std::string& name, const Struct& made) {
  CAPTURE(name);
  const bool same = std::memcmp(&made, &expectedOf<Struct>(), sizeof made) == 0;
  CHECK_MESSAGE(same, "a field is not the DEFAULT of tests/abi/layouts, or not 0");
}

template <class Struct>
void checkInitParams(int32_t id, const Struct& defaults) {
  CAPTURE(id);
  constexpr size_t kSize = sizeof(Struct);
  const auto* expected = reinterpret_cast<const unsigned char*>(&defaults);
  for (const size_t size : {kSize, std::max(kSize - 8, size_t{8}), size_t{8}, kSize + 16}) {
    std::vector<unsigned char> bytes(size + 8, 0xab);
    CHECK_SUCCEEDS(rbcInitParams(id, bytes.data(), size));
    uint32_t struct_size = 0;
    std::memcpy(&struct_size, bytes.data(), sizeof struct_size);
    CHECK(struct_size == size);
    for (size_t i = sizeof struct_size; i < size; ++i) {
      CHECK(bytes[i] == (i < kSize ? expected[i] : 0));
    }
    for (size_t i = size; i < size + 8; ++i) CHECK(bytes[i] == 0xab);
  }
}

}  // namespace

TEST_CASE("layout: the initializers set the defaults, and other fields to zero"){
#define DEFAULT(type, field, value) expectedOf<type>().field = value
#include "layouts.inc"
#define GROWS(type, bytes, id, number) checkInitializer(#type, type##Init())
#include "layouts.inc"
}

TEST_CASE("layout: rbcInitParams writes what the inline initializers write") {
  std::set<int32_t> numbers;
#define GROWS(type, bytes, id, number)   \
  checkInitParams(number, type##Init()); \
  CHECK(numbers.insert(number).second)
#include "layouts.inc"
  const int32_t last = *numbers.rbegin();
  CHECK(*numbers.begin() == 1);
  CHECK(last == static_cast<int32_t>(numbers.size()));

  uint64_t words[2] = {7, 7};
  for (const int32_t id : {0, -1, last + 1, INT32_MAX}) {
    CHECK_FAILS(rbcInitParams(id, words, sizeof words), RBC_STATUS_INVALID_ARGUMENT,
                "struct_id: is ");
  }
  for (const size_t size : {size_t{0}, size_t{4}, size_t{12}, size_t{65544}, SIZE_MAX}) {
    CHECK_FAILS(rbcInitParams(RBC_STRUCT_FUSE_PARAMS, words, size), RBC_STATUS_INVALID_ARGUMENT,
                "struct_size: is ");
  }
  CHECK_FAILS(rbcInitParams(RBC_STRUCT_FUSE_PARAMS, nullptr, 16), RBC_STATUS_INVALID_ARGUMENT,
              "params: is null");
  CHECK(words[0] == 7);
  CHECK(words[1] == 7);
}

// ---- DLPack -------------------------------------------------------------------------------------

#if defined(RBC_DLPACK_HEADER)

#define SAME_FIELD(ours, our_field, theirs, their_field)                    \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field), \
                #ours "." #our_field " has moved");                         \
  static_assert(sizeof(ours::our_field) == sizeof(theirs::their_field),     \
                #ours "." #our_field " has another size")

static_assert(sizeof(rbcTensor) == sizeof(DLTensor) && alignof(rbcTensor) == alignof(DLTensor));
SAME_FIELD(rbcTensor, data, DLTensor, data);
SAME_FIELD(rbcTensor, device, DLTensor, device);
SAME_FIELD(rbcTensor, ndim, DLTensor, ndim);
SAME_FIELD(rbcTensor, dtype, DLTensor, dtype);
SAME_FIELD(rbcTensor, shape, DLTensor, shape);
SAME_FIELD(rbcTensor, strides, DLTensor, strides);
SAME_FIELD(rbcTensor, byte_offset, DLTensor, byte_offset);
static_assert(sizeof(rbcDevice) == sizeof(DLDevice));
SAME_FIELD(rbcDevice, type, DLDevice, device_type);
SAME_FIELD(rbcDevice, id, DLDevice, device_id);
static_assert(sizeof(rbcDType) == sizeof(DLDataType));
SAME_FIELD(rbcDType, code, DLDataType, code);
SAME_FIELD(rbcDType, bits, DLDataType, bits);
SAME_FIELD(rbcDType, lanes, DLDataType, lanes);

static_assert(int{RBC_DEVICE_CPU} == kDLCPU && int{RBC_DEVICE_CUDA} == kDLCUDA);
static_assert(int{RBC_DEVICE_CUDA_HOST} == kDLCUDAHost &&
              int{RBC_DEVICE_CUDA_MANAGED} == kDLCUDAManaged);
static_assert(int{RBC_DTYPE_INT} == kDLInt && int{RBC_DTYPE_UINT} == kDLUInt &&
              int{RBC_DTYPE_FLOAT} == kDLFloat);
static_assert(int{RBC_DTYPE_BFLOAT} == kDLBfloat && int{RBC_DTYPE_BOOL} == kDLBool);

TEST_CASE("layout: a DLTensor can be passed by a cast") {
  float values[] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {2, 2};
  int64_t strides[] = {3, 1};
  const DLTensor tensor = {values, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 4};
  rbcTensorInfo info = rbcTensorInfoInit();
  CHECK_SUCCEEDS(rbcTensorGetInfo(reinterpret_cast<const rbcTensor*>(&tensor), &info));
  CHECK(info.data == values + 1);
  CHECK(info.strides[0] == 3);
  CHECK(info.num_elements == 4);
}

#else
TEST_CASE("layout: a DLTensor can be passed by a cast") { SKIP_BECAUSE("no dlpack.h"); }
#endif
