// Binds the two functions of an operation to one list of arguments.
#pragma once

#include <type_traits>

#include "fuzz/call.h"

namespace fuzz {
namespace detail {

template <class To>
To passed(const Tensor* tensor) {
  return tensor != nullptr ? tensor->get() : nullptr;
}
template <class To>
To passed(const Struct* object) {
  return object->get<std::remove_pointer_t<To>>();
}
template <class To>
To passed(int32_t number) {
  return number;
}

}  // namespace detail

template <auto kFunction, auto kWorkspaceSize>
struct Operation;

template <class... Types, rbcStatus_t (*kFunction)(rbcContext_t, Types...), auto kWorkspaceSize>
struct Operation<kFunction, kWorkspaceSize> {
  // Tensors, structs and numbers, in the order of the function. A null Tensor* passes a null
  // pointer.
  template <class... Arguments>
  static void bind(Call* call, Arguments... arguments) {
    call->run = [=](rbcContext_t context, const Handles&) {
      return kFunction(context, detail::passed<Types>(arguments)...);
    };
    call->size = [=](rbcContext_t context, const Handles&, size_t* bytes) {
      return kWorkspaceSize(context, detail::passed<Types>(arguments)..., bytes);
    };
  }
};

}  // namespace fuzz
