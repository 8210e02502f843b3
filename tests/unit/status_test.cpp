#include <stdexcept>
#include <string>
#include <thread>

#include "guard.h"
#include "status.h"
#include "support/expect.h"

TEST_CASE("status: every exception becomes a status and a message") {
  CHECK(rbc::guard([] {}) == RBC_STATUS_SUCCESS);
  for (int i = 1; i <= RBC_STATUS_CANCELLED; ++i) {
    const auto status = static_cast<rbcStatus_t>(i);
    CHECK_FAILS(rbc::guard([&] { rbc::fail(status, "times: row %d", 7); }), status, "times: row 7");
  }
  CHECK_FAILS(rbc::guard([] { throw std::bad_alloc(); }), RBC_STATUS_OUT_OF_MEMORY, "host memory");
  CHECK_FAILS(rbc::guard([] { throw std::runtime_error("boom"); }), RBC_STATUS_INTERNAL,
              "internal error: boom");
  CHECK_FAILS(rbc::guard([] { throw 1; }), RBC_STATUS_INTERNAL, "unknown exception");
}

TEST_CASE("status: success leaves the last error and each thread has its own") {
  CHECK(rbc::guard([] { rbc::fail(RBC_STATUS_UNSUPPORTED, "first"); }) == RBC_STATUS_UNSUPPORTED);
  CHECK(rbc::guard([] {}) == RBC_STATUS_SUCCESS);
  CHECK(std::string(rbcGetLastError()) == "first");
  std::string at_start = "?";
  std::thread([&] {
    at_start = rbcGetLastError();
    rbc::setLastError("second");
  }).join();
  CHECK(at_start == "");
  CHECK(std::string(rbcGetLastError()) == "first");
}

TEST_CASE("status: a message that is too long is cut, not overrun") {
  const std::string longer(5000, 'x');
  CHECK(rbc::guard([&] { rbc::fail(RBC_STATUS_INTERNAL, "%s", longer.c_str()); }) ==
        RBC_STATUS_INTERNAL);
  const std::string message = rbcGetLastError();
  CHECK(message.size() > 200);
  CHECK(message.size() < longer.size());
  CHECK(message == longer.substr(0, message.size()));
}

TEST_CASE("status: every status has a name") {
  CHECK(std::string(rbcStatusName(RBC_STATUS_SUCCESS)) == "RBC_STATUS_SUCCESS");
  CHECK(std::string(rbcStatusName(RBC_STATUS_WORKSPACE_TOO_SMALL)) ==
        "RBC_STATUS_WORKSPACE_TOO_SMALL");
  for (int i = 0; i <= RBC_STATUS_BUSY; ++i) {
    CHECK(std::string(rbcStatusName(static_cast<rbcStatus_t>(i))) != "RBC_STATUS_UNKNOWN");
  }
  CHECK(std::string(rbcStatusName(static_cast<rbcStatus_t>(RBC_STATUS_BUSY + 1))) ==
        "RBC_STATUS_UNKNOWN");
}
