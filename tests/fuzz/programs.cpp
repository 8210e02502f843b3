#include "fuzz/programs.h"

#include <string>

namespace fuzz {

rbcStatus_t Transcript::ended(rbcStatus_t status, const std::string& function,
                              const std::vector<std::string>& arguments, bool has_path) {
  ++calls_;
  text_ += function + " " + rbcStatusName(status);
  if (status != RBC_STATUS_SUCCESS) {
    const std::string message = rbcGetLastError();
    checkMessage(status, message, arguments, function);
    if (!has_path) text_ += " " + message;
  }
  text_ += "\n";
  return status;
}

void Transcript::bytes(const void* data, size_t size) {
  const auto* at = static_cast<const unsigned char*>(data);
  static const char kDigits[] = "0123456789abcdef";
  for (size_t i = 0; i < size; ++i) {
    text_ += kDigits[at[i] >> 4];
    text_ += kDigits[at[i] & 15];
  }
  text_ += "\n";
}

void Transcript::outcome(const Outcome& outcome) {
  text_ += std::string(rbcStatusName(outcome.status)) + " " + outcome.message + "\n";
  bytes(outcome.output.data(), outcome.output.size());
}

}  // namespace fuzz
