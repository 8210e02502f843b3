// The tensors of a call: each is read once, with its name and its role, and verified at the end
// against all the others.
#pragma once

#include "context.h"
#include "view.h"

namespace rbc {

class Operands {
 public:
  static constexpr int kMax = 512;
  static constexpr int kMaxOutputs = 32;

  // When it is verified that the context reaches an operand's memory: where it is added, or in the end,
  // after those whose names say more.
  enum class Reach { kNow, kInTheEnd };

  explicit Operands(const rbcContext& context)
      : context_(context), device_(context.backend->device(*context.state)) {}

  // What follows belongs to this element of an array of the caller; -1: to the call itself.
  void setStream(int number, const char* array = "streams") {
    stream_ = number;
    array_ = array;
  }

  // These fail unless the tensor is well formed and the context reaches its memory. The view stays
  // where it is.
  const View& in(const rbcTensor* tensor, const char* name, Reach reach = Reach::kNow) {
    return add(tensor, name, false, reach);
  }
  // What the call writes; it may read it as well.
  const View& out(const rbcTensor* tensor, const char* name, Reach reach = Reach::kNow);
  // Null, where the tensor is.
  const View* optionalOut(const rbcTensor* tensor, const char* name, Reach reach = Reach::kNow) {
    return tensor != nullptr ? &out(tensor, name, reach) : nullptr;
  }

  // Fails unless the elements of each output are distinct, and apart from all other operands.
  void requireApart() const;

 private:
  const View& add(const rbcTensor* tensor, const char* name, bool written, Reach reach);
  const rbcContext& context_;
  const rbcDevice device_;      // where most operands are
  bool reach_is_open_ = false;  // of an operand that is elsewhere
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
  // An operand by itself.
  template <class Check>
  void check(const Operand& operand, Check&& check) const;
  // What to call one beside another.
  struct Name {
    explicit Name(const Operand& operand);
    char text[64];
  };

  Operand operands_[kMax];
};

}  // namespace rbc
