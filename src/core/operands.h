// The tensors of a call: each is read once, with its name and its role, and verified at the end
// against all the others.
#pragma once

#include "context.h"
#include "view.h"

namespace rbc {

class Operands {
 public:
  static constexpr int kMax = 512;
  static constexpr int kMaxOutputs = 16;

  explicit Operands(const rbcContext& context) : context_(context) {}

  // What follows belongs to this stream of the caller's array; -1: to the call itself.
  void setStream(int number) { stream_ = number; }

  // These fail unless the tensor is well formed and the context reaches its memory. The view stays
  // where it is.
  const View& in(const rbcTensor* tensor, const char* name) {
    return add(normalize(tensor, name), name);
  }
  // What the call writes; it may read it as well.
  const View& out(const rbcTensor* tensor, const char* name);
  // Null, where the tensor is.
  const View* optionalOut(const rbcTensor* tensor, const char* name) {
    return tensor != nullptr ? &out(tensor, name) : nullptr;
  }

  // Fails unless the elements of each output are distinct, and apart from all other operands.
  void requireApart() const;

 private:
  const View& add(const View& view, const char* name);
  void requireDisjoint(int one, int other) const;

  const rbcContext& context_;
  int stream_ = -1;
  int count_ = 0;
  int num_outputs_ = 0;
  int outputs_[kMaxOutputs];
  bool written_[kMax];
  int8_t streams_[kMax];
  const char* names_[kMax];
  View views_[kMax];
};

}  // namespace rbc
