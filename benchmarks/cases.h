// The cases of cases.txt, and the data of one: its arrays, and the bytes that a call must move.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "robocache/robocache.hpp"
#include "support/arrays.h"

namespace bench {

// The tensors of a call, wherever their memory is, in the order of Data.
struct Tensors {
  std::deque<robocache::Tensor> inputs, outputs;
};

// One call, ready to go. It does not own its tensors.
class Call {
 public:
  virtual ~Call() = default;
  virtual void operator()(const robocache::Context& context) const = 0;
  // So that the call allocates nothing.
  virtual void reserve(robocache::Context&) const {}
};

class Data {
 public:
  virtual ~Data() = default;
  virtual std::unique_ptr<Call> callOn(const Tensors& tensors) const = 0;
  // The shape of one of the arrays in the whole batch, of which they may be a part.
  virtual std::vector<int64_t> wholeShape(const support::Array& array) const {
    return array.placement().shape;
  }

  std::deque<std::pair<std::string, support::Array>> inputs;  // by what they are
  // What the portable CPU code gives on one thread: every result must have the same bits.
  std::deque<support::Array> outputs;
  bool accumulates = false;  // a call adds to what its outputs hold, which is 0 at first
  int64_t bytes = 0;         // that must be moved
  int64_t rows = 0;          // distinct rows of values that are needed; voxels with a point
  int64_t points = 0;        // of clouds
  double in_range = 0;       // share of the queries, or of the points

 protected:
  const support::Array& addInput(const char* name, rbcDType dtype, std::vector<int64_t> shape);
  void addOutput(rbcDType dtype, std::vector<int64_t> shape);
  void answer();
};

template <class T>
T* elements(const support::Array& array) {
  return reinterpret_cast<T*>(array.memory().data());
}

struct Case {
  std::string table, name;  // unique together
  bool variant = false;     // of another case, in one thing: measured less thoroughly
  int kernels = 2;          // of a call on CUDA at most
  bool is_single = false;   // one recording: calls on it are measured hot alone
  bool has_plain = false;   // a plain kernel can stand beside it

  virtual ~Case() = default;
  std::string id() const { return table + "/" + name; }
  // What a call moves, give or take what its queries share.
  virtual int64_t roughBytes() const = 0;
  virtual std::unique_ptr<const Data> load() const = 0;
  // What a name tells, as members of a JSON object.
  virtual std::string facts() const = 0;
};
using CasePtr = std::shared_ptr<const Case>;

// A kind of cases, whose names have a mark that no other kind's have. `parse` throws for a name that it
// does not understand. The file with the kind's cases makes one, which stays.
struct CaseKind {
  using Parse = std::shared_ptr<Case> (*)(const std::string& name);
  CaseKind(const char* mark, Parse parse);

  const char* mark;
  Parse parse;
};

// Of names without a mark.
std::shared_ptr<Case> parseResampling(const std::string& name);
CasePtr parseCase(const std::string& table, const std::string& name);

// Those that `user` measures, in their order.
std::vector<CasePtr> casesOf(const std::string& user);

// The data of a case; that of the last one asked for is kept.
const Data& dataOf(const CasePtr& c);

}  // namespace bench
