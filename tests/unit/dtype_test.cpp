#include <string>

#include "dtype.h"
#include "guard.h"
#include "support/dtypes.h"
#include "support/expect.h"
#include "support/share.h"
#include "visit_dtype.h"

using support::kFloatDTypes;
using support::kIntegerDTypes;

TEST_CASE("dtype: each one is found, with its size and kind") {
  for (const rbcDType dtype : kFloatDTypes) {
    const rbc::DType found = rbc::dtypeOf(dtype, "values");
    CHECK(rbc::isFloat(found));
    CHECK(rbc::sizeOf(found) == support::sizeOf(dtype));
    rbc::visitFloat(
        found, [&](auto tag) { CHECK(sizeof(typename decltype(tag)::type) == dtype.bits / 8u); });
  }
  for (const rbcDType dtype : kIntegerDTypes) {
    const rbc::DType found = rbc::dtypeOf(dtype, "values");
    CHECK_FALSE(rbc::isFloat(found));
    CHECK(rbc::sizeOf(found) == support::sizeOf(dtype));
    rbc::visitInteger(
        found, [&](auto tag) { CHECK(sizeof(typename decltype(tag)::type) == dtype.bits / 8u); });
  }
  CHECK(std::string(rbc::nameOf(rbc::dtypeOf(support::kBF16, "x"))) == "bfloat16");
  CHECK(std::string(rbc::nameOf(rbc::dtypeOf(support::kU64, "x"))) == "uint64");
}

TEST_CASE("dtype: all others are refused by name") {
  constexpr int kCodes = 32;  // larger than each code that exists
  int known = 0;
  for (int code = 0; code < 256; ++code) {
    if (code >= kCodes && !support::inShare(static_cast<uint64_t>(code))) continue;
    for (int bits = 0; bits < 256; ++bits) {
      const rbcDType dtype = {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1};
      const rbcStatus_t status = rbc::guard([&] { rbc::dtypeOf(dtype, "values"); });
      if (status == RBC_STATUS_SUCCESS) {
        ++known;
      } else if (status != RBC_STATUS_DTYPE_MISMATCH ||
                 !support::tells(rbcGetLastError(), {"values: dtype"})) {
        FAIL("code ", code, " bits ", bits, ": ", std::string(rbcGetLastError()));
      }
    }
  }
  CHECK(known == 13);
  for (const uint16_t lanes : {0, 2, 4, 65535}) {
    CHECK_FAILS(rbc::guard([&] {
                  rbc::dtypeOf({RBC_DTYPE_FLOAT, 32, lanes}, "values");
                }),
                RBC_STATUS_DTYPE_MISMATCH, "values:", "lanes");
  }
}

TEST_CASE("dtype: a dispatch without a row for the dtype is an error") {
  const auto miss = [] { rbc::visitFloat(rbc::DType::I32, [](auto) {}); };
  CHECK_FAILS(rbc::guard(miss), RBC_STATUS_INTERNAL, "int32");
  CHECK_FAILS(rbc::guard([] { rbc::visitInteger(rbc::DType::F32, [](auto) {}); }),
              RBC_STATUS_INTERNAL, "float32");
}
