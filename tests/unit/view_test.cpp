#include "view.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "guard.h"
#include "support/arrays.h"
#include "support/expect.h"

namespace {

using support::kF32;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr rbcDevice kCpu = {RBC_DEVICE_CPU, 0};

alignas(16) std::byte memory[256];

// A descriptor with room for its extents and strides.
struct Described {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  rbcTensor tensor;

  Described(rbcDType dtype, std::vector<int64_t> shape_, std::vector<int64_t> strides_ = {},
            uint64_t offset = 0)
      : shape(std::move(shape_)), strides(std::move(strides_)) {
    tensor = {memory, kCpu,         static_cast<int32_t>(shape.size()),
              dtype,  shape.data(), strides.empty() ? nullptr : strides.data(),
              offset};
  }
  operator const rbcTensor*() const { return &tensor; }
};

rbc::View view(const rbcTensor* tensor) { return rbc::normalize(tensor, "values"); }
rbcStatus_t refusal(const rbcTensor* tensor) {
  return rbc::guard([&] { view(tensor); });
}

std::vector<int64_t> stridesOf(const rbc::View& v) { return {v.strides, v.strides + v.ndim}; }
using Strides = std::vector<int64_t>;

}  // namespace

TEST_CASE("view: null strides mean compact and row-major") {
  const rbc::View v = view(Described(kF32, {2, 3, 4}));
  CHECK(stridesOf(v) == Strides{12, 4, 1});
  CHECK(v.count == 24);
  CHECK(v.contiguous());
  CHECK(v.data == memory);
  CHECK(v.begin == memory);
  CHECK(v.end == memory + 96);
}

TEST_CASE("view: byte_offset is applied") {
  const rbc::View v = view(Described(kF32, {3}, {2}, 8));
  CHECK(v.data == memory + 8);
  CHECK(v.begin == memory + 8);
  CHECK(v.end == memory + 8 + 2 * 8 + 4);
  CHECK_FALSE(v.contiguous());
}

TEST_CASE("view: strides of extents 0 and 1 mean nothing") {
  const rbc::View one = view(Described(kF32, {1, 4, 1}, {kMost, 1, kLeast}));
  CHECK(one.contiguous());
  CHECK(stridesOf(one) == Strides{4, 1, 1});
  CHECK(one.end == memory + 16);
  const rbc::View none = view(Described(kF32, {0, 4}, {kLeast, 1}));
  CHECK(none.contiguous());
  CHECK(none.count == 0);
}

TEST_CASE("view: a scalar has one element") {
  const rbc::View v = view(Described(kF32, {}));
  CHECK(v.ndim == 0);
  CHECK(v.count == 1);
  CHECK(v.end - v.begin == 4);
}

TEST_CASE("view: negative and zero strides span the bytes that they reach") {
  const rbc::View reversed = view(Described(kF32, {5}, {-2}, 64));
  CHECK(reversed.data == memory + 64);
  CHECK(reversed.begin == memory + 64 - 32);
  CHECK(reversed.end == memory + 68);
  const rbc::View broadcast = view(Described(kF32, {1000000, 3}, {0, 1}));
  CHECK(broadcast.count == 3000000);
  CHECK(broadcast.end - broadcast.begin == 12);
  const rbc::View mixed = view(Described(kF32, {2, 3}, {-4, 2}, 32));
  CHECK(mixed.begin == memory + 16);
  CHECK(mixed.end == memory + 32 + 16 + 4);
}

TEST_CASE("view: an empty tensor may have no data") {
  Described empty(kF32, {4, 0, 3});
  empty.tensor.data = nullptr;
  CHECK(view(empty).count == 0);
  Described full(kF32, {4, 1, 3});
  full.tensor.data = nullptr;
  CHECK_FAILS(refusal(full), RBC_STATUS_INVALID_ARGUMENT, "values: data is null", "12");
}

TEST_CASE("view: strides of an empty tensor become 0, except in descriptions") {
  for (const int64_t stride : {kLeast, kMost, int64_t{1} << 62, int64_t{1}}) {
    const Described empty(kF32, {4, 0, 3, 1}, {stride, stride, stride, stride});
    CHECK(stridesOf(view(empty)) == Strides{0, 0, 0, 0});
    CHECK(view(empty).contiguous());
    CHECK(stridesOf(rbc::describe(empty, "values")) == Strides{stride, 3, stride, 1});
  }
  CHECK(stridesOf(view(Described(kF32, {2, 3, 0}))) == Strides{0, 0, 0});
  CHECK(stridesOf(rbc::describe(Described(kF32, {2, 3, 0}), "values")) == Strides{3, 1, 1});
}

TEST_CASE("view: bad descriptors are refused by name") {
  CHECK_FAILS(refusal(nullptr), RBC_STATUS_INVALID_ARGUMENT, "values: is null");
  Described t(kF32, {2, 3});
  t.tensor.shape = nullptr;
  CHECK_FAILS(refusal(t), RBC_STATUS_INVALID_ARGUMENT, "values: shape is null");
  for (const int32_t ndim : {-1, RBC_TENSOR_MAX_NDIM + 1, std::numeric_limits<int32_t>::max()}) {
    Described bad(kF32, std::vector<int64_t>(9, 1));
    bad.tensor.ndim = ndim;
    CHECK_FAILS(refusal(bad), RBC_STATUS_SHAPE_MISMATCH, "values: rank",
                std::to_string(ndim).c_str());
  }
  CHECK_FAILS(refusal(Described(kF32, {2, -3})), RBC_STATUS_SHAPE_MISMATCH,
              "values: extent 1 is -3");
  CHECK_FAILS(refusal(Described(kF32, {kLeast})), RBC_STATUS_SHAPE_MISMATCH, "values: extent 0");
  CHECK_FAILS(refusal(Described({RBC_DTYPE_FLOAT, 32, 2}, {2})), RBC_STATUS_DTYPE_MISMATCH,
              "values:", "2 lanes");
}

TEST_CASE("view: data that is not aligned to its element is refused") {
  for (const rbcDType dtype : {support::kF16, support::kF32, support::kF64}) {
    for (uint64_t offset = 0; offset < 16; ++offset) {
      const bool aligned = offset % static_cast<uint64_t>(support::sizeOf(dtype)) == 0;
      CHECK((refusal(Described(dtype, {2}, {}, offset)) == RBC_STATUS_SUCCESS) == aligned);
      if (!aligned) CHECK(support::tells(rbcGetLastError(), {"values:", "aligned"}));
    }
  }
}

TEST_CASE("view: sizes and offsets beyond 64 bits are refused, for any shape") {
  const auto refused = [](const Described& t) {
    CHECK_FAILS(refusal(t), RBC_STATUS_SHAPE_MISMATCH, "values:", "overflow");
  };
  refused(Described(kF32, {kMost, 2}));
  refused(Described(kF32, {kMost}));  // the elements fit, their bytes do not
  refused(Described(kF32, {int64_t{1} << 32, int64_t{1} << 32}));
  refused(Described(kF32, {0, kMost, kMost}));
  refused(Described(kF32, {kMost, kMost, 0}));
  refused(Described(kF32, {2}, {kMost}));
  refused(Described(kF32, {2}, {kLeast}));
  refused(Described(kF32, {3}, {kLeast / 8}));
  refused(Described(kF32, {2, 2, 2}, {kMost / 8, kMost / 8, kMost / 8}));
  refused(Described(support::kU8, {2}, {kLeast}));
  refused(Described(support::kU8, {2}, {kMost}));
  refused(Described(support::kU8, {2}, {-(int64_t{1} << 62)}));
  // Extents times strides, and their sum, fit as well: callers that multiply them need no check.
  refused(Described(support::kU8, {2}, {int64_t{1} << 62}));
  refused(Described(support::kU8, {2, 2}, {int64_t{1} << 61, -(int64_t{1} << 61)}));
  CHECK(view(Described(support::kU8, {2}, {int64_t{1} << 61})).count == 2);
  Described far(kF32, {2}, {}, std::numeric_limits<uint64_t>::max() - 3);
  CHECK_FAILS(refusal(far), RBC_STATUS_INVALID_ARGUMENT, "values: byte_offset");
  // The largest sizes that fit.
  CHECK(view(Described(support::kU8, {int64_t{1} << 61, 3}, {0, 1})).count ==
        3 * (int64_t{1} << 61));
}

TEST_CASE("view: the public function reports the same, and nothing on failure") {
  rbcTensorInfo info = rbcTensorInfoInit();
  std::memset(&info, 0x5A, sizeof info);
  CHECK_FAILS(rbcTensorGetInfo(Described(kF32, {-1}), &info), RBC_STATUS_SHAPE_MISMATCH, "tensor:");
  const auto* bytes = reinterpret_cast<const unsigned char*>(&info);
  CHECK(std::all_of(bytes, bytes + sizeof info, [](unsigned char b) { return b == 0x5A; }));
  CHECK_FAILS(rbcTensorGetInfo(Described(kF32, {1}), nullptr), RBC_STATUS_INVALID_ARGUMENT,
              "info:");
  CHECK_SUCCEEDS(rbcTensorGetInfo(Described(support::kBF16, {3, 1, 5}, {5, 77, 1}, 6), &info));
  CHECK(info.data == memory + 6);
  CHECK(info.num_elements == 15);
  CHECK(info.num_bytes == 30);
  CHECK(info.element_size == 2);
  CHECK(info.is_contiguous == 1);
  CHECK(info.shape[2] == 5);
  CHECK(info.strides[0] == 5);
  CHECK(info.strides[1] == 5);
}

TEST_CASE("view: begin and end are the bytes of the elements") {
  for (const support::Layout layout : support::kLayouts) {
    for (const auto& shape :
         std::vector<std::vector<int64_t>>{{3, 4, 5}, {1, 4, 1}, {7}, {2, 1, 3}}) {
      const support::Array array(support::kF32, shape, layout);
      const rbcTensor tensor = array.tensor();
      const rbc::View v = view(&tensor);
      const std::byte* low = nullptr;
      const std::byte* high = nullptr;
      array.each([&](const std::byte* p) {
        low = low == nullptr ? p : std::min(low, p);
        high = high == nullptr ? p + 4 : std::max(high, p + 4);
      });
      CHECK(v.begin == low);
      CHECK(v.end == high);
      CHECK(v.count == array.count());
    }
  }
}
