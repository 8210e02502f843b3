// The base of an operation's good call (error_table.h): it calls the two functions, finds outputs
// that were written, and describes structs of parameters.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <vector>

#include "abi/error_table.h"

namespace support {

// Traits: whether a struct has a member that tests change.
template <class Struct, class = void>
struct HasFlags : std::false_type {};
template <class Struct>
struct HasFlags<Struct, std::void_t<decltype(Struct::flags)>> : std::true_type {};
template <class Struct, class = void>
struct HasReserved0 : std::false_type {};
template <class Struct>
struct HasReserved0<Struct, std::void_t<decltype(Struct::reserved0)>> : std::true_type {};

// The bytes of a struct that must be 0.
template <class Struct>
std::vector<Reserved> reservedOf() {
  if constexpr (HasReserved0<Struct>::value) {
    return {{offsetof(Struct, reserved0), sizeof(Struct::reserved0)}};
  } else {
    return {};
  }
}

// Describes a struct that is a member of the call. The call passes the pointer `passed`.
template <class Call, class Struct>
StructOf<Call> structOf(const char* name, Struct Call::*own, const Struct* Call::*passed,
                        uint32_t flags = 0) {
  return {
      name,
      sizeof(Struct),
      [own](Call& call) -> void* { return &(call.*own); },
      [passed](Call& call, const void* other) { call.*passed = static_cast<const Struct*>(other); },
      reservedOf<Struct>(),
      HasFlags<Struct>::value,
      flags};
}

// `Call` derives from this class and has arguments(): a tuple of the arguments after the context.
template <class Call, auto kFunction, auto kWorkspaceSize>
class OperationCall {
 public:
  OperationCall() = default;
  OperationCall(const OperationCall&) = delete;  // structs point to members

  rbcStatus_t run(rbcContext_t context = refusingContext().get()) const {
    return std::apply([=](auto... a) { return kFunction(context, a...); }, self().arguments());
  }
  rbcStatus_t workspace(rbcContext_t context, size_t* bytes) const {
    return std::apply([=](auto... a) { return kWorkspaceSize(context, a..., bytes); },
                      self().arguments());
  }
  rbcStatus_t workspace() const {
    constexpr size_t kPoison = 12345;
    size_t bytes = kPoison;
    const rbcStatus_t status = workspace(refusingContext().get(), &bytes);
    if (status != RBC_STATUS_SUCCESS) CHECK(bytes == kPoison);
    return status;
  }
  // Returns whether no output was written.
  bool untouched() const {
    for (const TensorOf<Call>& tensor : Call::tensors()) {
      const Argument& argument = tensor.of(const_cast<Call&>(self()));
      if (tensor.access == Access::kWritten && !argument.array.untouched()) return false;
    }
    return true;
  }
  // Defaults for an operation without packed rows, and for one without structs.
  void pack() {}
  static std::vector<StructOf<Call>> structs() { return {}; }

 private:
  const Call& self() const { return static_cast<const Call&>(*this); }
};

}  // namespace support
