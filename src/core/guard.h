// The only place where exceptions become a status and a message. Inside it nothing depends on how
// the caller's thread rounds.
#pragma once

#include <exception>
#include <new>

#include "float_environment.h"
#include "status.h"

namespace rbc {

template <class Body>
rbcStatus_t guard(Body&& body) noexcept {
  const DefaultFloats floats;
  try {
    body();
    return RBC_STATUS_SUCCESS;
  } catch (const Error& error) {
    return error.status();  // fail() has left the message
  } catch (const std::bad_alloc&) {
    setLastError("host memory is exhausted");
    return RBC_STATUS_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    setLastError("internal error: %s", error.what());
    return RBC_STATUS_INTERNAL;
  } catch (...) {
    setLastError("internal error: unknown exception");
    return RBC_STATUS_INTERNAL;
  }
}

}  // namespace rbc
