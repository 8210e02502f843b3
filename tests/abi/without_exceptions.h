// A call of the C++ wrapper from a source that is compiled without exceptions.
#pragma once

#include <string>

namespace support {

// "" if it went as it should, else what did not.
std::string resampledWithoutExceptions();

}  // namespace support
