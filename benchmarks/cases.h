// The cases of cases/*.txt, and the data of a case: its arrays, and the bytes that a call must
// move.
//
// A line of such a file: the table, the programs that measure it, and names of cases, separated
// by |.
//
//   cpu, cuda                robocache_bench on either backend; peers-cpu, peers-cuda: peers.py
//   scale, profile           robocache_bench on several GPUs; under ncu (scripts/profile.sh)
//
// A name describes a case completely; the comments in the files describe the names.
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

// The tensors of a call, in any memory, in the order of Data.
struct Tensors {
  std::deque<robocache::Tensor> inputs, outputs;
};

// One prepared call. It does not own its tensors.
class Call {
 public:
  virtual ~Call() = default;
  virtual void operator()(const robocache::Context& context) const = 0;
  // Reserves memory, so that the call allocates nothing.
  virtual void reserve(robocache::Context&) const {}
};

class Data {
 public:
  virtual ~Data() = default;
  virtual std::unique_ptr<Call> callOn(const Tensors& tensors) const = 0;
  // The shape of an array in the whole batch; the array may be a part of it.
  virtual std::vector<int64_t> wholeShape(const support::Array& array) const {
    return array.placement().shape;
  }

  std::deque<std::pair<std::string, support::Array>> inputs;  // by name
  // The results of the portable CPU code on one thread: every other result must have the same bits.
  std::deque<support::Array> outputs;
  bool accumulates = false;  // a call adds to its outputs, which are 0 at first
  int64_t bytes = 0;         // that must be moved
  int64_t rows = 0;          // distinct rows of values that are needed; voxels with points
  int64_t points = 0;        // per cloud
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
  std::string table, name;  // together unique
  bool variant = false;     // differs from another case in one respect: measured less thoroughly
  int kernels = 2;          // per call on CUDA, at most
  bool is_single = false;   // one recording: only hot calls are measured
  bool has_plain = false;   // can be compared with a simple kernel

  virtual ~Case() = default;
  std::string id() const { return table + "/" + name; }
  // The bytes that a call moves, approximately: depends on what its queries share.
  virtual int64_t roughBytes() const = 0;
  virtual std::unique_ptr<const Data> load() const = 0;
  // The properties in a name, as members of a JSON object.
  virtual std::string facts() const = 0;
};
using CasePtr = std::shared_ptr<const Case>;

// A kind of cases, recognized by a mark in its names. `parse` throws for a name that it does not
// understand. The file with the kind's cases defines a static object.
struct CaseKind {
  using Parse = std::shared_ptr<Case> (*)(const std::string& name);
  CaseKind(const char* mark, Parse parse);

  const char* mark;
  Parse parse;
};

// For names without a mark.
std::shared_ptr<Case> parseResampling(const std::string& name);
CasePtr parseCase(const std::string& table, const std::string& name);

// The cases that `user` measures, in order.
std::vector<CasePtr> casesOf(const std::string& user);

// The data of a case; cached for the last case.
const Data& dataOf(const CasePtr& c);

}  // namespace bench
