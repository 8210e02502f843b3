#include "abi/error_table.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace support {

Argument::Argument(rbcDType dtype, std::vector<int64_t> extents)
    : array(dtype, extents), shape(std::move(extents)) {
  restore();
}

void Argument::restore() {
  raw = array.tensor();
  raw.shape = shape.data();
}

void Argument::reshape(std::vector<int64_t> extents) {
  shape = std::move(extents);
  raw.shape = shape.data();
  raw.ndim = static_cast<int32_t>(shape.size());
}

void Argument::restride(std::vector<int64_t> by) {
  strides = std::move(by);
  raw.strides = strides.data();
}

const Context& refusingContext() {
  static const Context made = cpuContext(2);
  return made;
}

bool ErrorText::matches(const std::string& message) const {
  if (message.find('\n') != std::string::npos) return false;
  size_t begin = 0;
  size_t at = 0;
  while (true) {
    const size_t end = told.find("...", begin);
    const std::string part = told.substr(begin, end == std::string::npos ? end : end - begin);
    const size_t found = message.find(part, at);
    if (found == std::string::npos || (begin == 0 && found != 0)) return false;
    if (end == std::string::npos) return !told.empty();
    at = found + part.size();
    begin = end + 3;
  }
}

void checkRefused(const char* function, rbcStatus_t got, rbcStatus_t expected,
                  const ErrorText& text) {
  const std::string message = rbcGetLastError();
  const bool right = got == expected && text.matches(message);
  CHECK_MESSAGE(right, std::string(function), " gave ", nameOf(got), " \"", message,
                "\", expected ", nameOf(expected), " \"", text.told, "\"");
}

}  // namespace support
