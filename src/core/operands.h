// The tensors of a call: each is read once, with its name and its role, and checked against all
// others at the end.
#pragma once

#include "context.h"
#include "view.h"

namespace rbc {

class Operands {
 public:
  static constexpr int kMax = 512;
  static constexpr int kMaxOutputs = 32;

  // When to check that the context reaches an operand's memory: when it is added, or at the end,
  // after operands whose names say more.
  enum class Reach { kNow, kInTheEnd };

  explicit Operands(const rbcContext& context)
      : context_(context), device_(context.backend->device(*context.state)) {}

  // The operands that follow belong to this element of an array of the caller; -1: to the call
  // itself.
  void setStream(int number, const char* array = "streams") {
    stream_ = number;
    array_ = array;
  }

  // These fail unless the tensor is well formed and the context reaches its memory. The address of
  // the view does not change.
  const View& in(const rbcTensor* tensor, const char* name, Reach reach = Reach::kNow) {
    return add(tensor, name, false, reach);
  }
  // An operand that the call writes; it may read it as well.
  const View& out(const rbcTensor* tensor, const char* name, Reach reach = Reach::kNow);
  // Returns null if the tensor is null.
  const View* optionalOut(const rbcTensor* tensor, const char* name, Reach reach = Reach::kNow) {
    return tensor != nullptr ? &out(tensor, name, reach) : nullptr;
  }

  // Fails unless the elements of each output are distinct and share no memory with other operands.
  void requireApart() const;

 private:
  const View& add(const rbcTensor* tensor, const char* name, bool written, Reach reach);
  const rbcContext& context_;
  const rbcDevice device_;      // of most operands
  bool reach_is_open_ = false;  // whether any operand is checked with Reach::kInTheEnd
  int stream_ = -1;
  const char* array_ = "streams";
  int count_ = 0;
  int num_outputs_ = 0;
  int outputs_[kMaxOutputs];
  struct Operand {
    View view;
    const char* name;
    int32_t stream;
    const char* array;
    bool written;
  };
  // Checks one operand.
  template <class Check>
  void check(const Operand& operand, Check&& check) const;
  // How an error names an operand, with another one in the same message.
  struct Name {
    explicit Name(const Operand& operand);
    char text[64];
  };

  Operand operands_[kMax];
};

}  // namespace rbc
