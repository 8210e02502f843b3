// Calls that must be refused: a test takes a good call, spoils one thing, and sees that the status
// and the message are right, that nothing was written, and that the next good call works.
//
// An operation describes its good call in a struct, `Call`:
//
//   run(context), workspace(context, &bytes)   the two functions, by default on refusingContext()
//   untouched(), checkOutputs()                what was written
//   tensors(), pointers(), structs()           what common_errors.h spoils one after the other
//   pack()                                     the same data as packed rows, if it takes such
//
// The errors of an operation are tables of rows: a status, the message, and a change that causes
// it.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/expect.h"
#include "support/run.h"

namespace support {

// A tensor argument whose every field a test may spoil.
struct Argument {
  Array array;
  rbcTensor raw = {};
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;

  Argument(rbcDType dtype, std::vector<int64_t> extents);
  Argument(const Argument&) = delete;

  void restore();
  void reshape(std::vector<int64_t> extents);
  void restride(std::vector<int64_t> by);
  template <class T>
  void fill(std::initializer_list<T> elements) {
    auto next = elements.begin();
    array.each([&](std::byte* p) { std::memcpy(p, &*next++, sizeof(T)); });
  }
};

// The context of all such calls.
const Context& refusingContext();

// The workspace query reads no arrays, so it does not find errors in their contents.
enum class Seen { kByBoth, kByTheCallAlone };

// The beginning of a message. "..." matches any text.
struct ErrorText {
  std::string told;

  ErrorText(const char* text) : told(text) {}             // NOLINT: rows must be short
  ErrorText(std::string text) : told(std::move(text)) {}  // NOLINT

  bool matches(const std::string& message) const;
};

// Refers to a function that spoils a call, and that must exist as long as the row. There are
// hundreds of rows, and a std::function takes ten times as long to compile.
template <class Call>
class Spoil {
 public:
  template <class Function>
  Spoil(const Function& function)  // NOLINT
      : function_(&function), call_([](const void* object, Call& call) {
          (*static_cast<const Function*>(object))(call);
        }) {}

  void operator()(Call& call) const { call_(function_, call); }

 private:
  const void* function_;
  void (*call_)(const void*, Call&);
};

template <class Call>
struct ErrorRow {
  rbcStatus_t status;
  ErrorText message;
  Spoil<Call> spoil;
  Seen seen = Seen::kByBoth;
};

// Checks the status and the message of what just failed.
void checkRefused(const char* function, rbcStatus_t got, rbcStatus_t expected,
                  const ErrorText& text);

template <class Call>
void checkGood() {
  const Call good;
  CHECK_SUCCEEDS(good.run());
  good.checkOutputs();
}

template <class Call>
void checkError(const ErrorRow<Call>& row) {
  constexpr size_t kBytes = 4242;
  Call call;
  row.spoil(call);
  checkRefused("the call", call.run(), row.status, row.message);
  CHECK(call.untouched());
  if (row.seen == Seen::kByBoth) {
    size_t bytes = kBytes;
    checkRefused("the workspace query", call.workspace(refusingContext().get(), &bytes), row.status,
                 row.message);
    CHECK(bytes == kBytes);
  }
  checkGood<Call>();
}

template <class Call>
void checkErrors(const std::vector<ErrorRow<Call>>& table) {
  for (const ErrorRow<Call>& row : table) checkError(row);
}

// ---- what a call is made of ---------------------------------------------------------------------

enum class Access { kRead, kWritten };

// A tensor of the call, by its name in messages.
template <class Call>
struct TensorOf {
  const char* name;
  Argument& (*of)(Call&);
  Access access = Access::kRead;
  void (*prepare)(Call&) = [](Call&) {};  // makes the call take it, if the good one does not
};

// Bytes of a struct that must be 0.
struct Reserved {
  size_t offset;
  size_t bytes;
};

// A struct of the call that opens with its size.
template <class Call>
struct StructOf {
  const char* name;
  size_t size;
  std::function<void*(Call&)> of;
  std::function<void(Call&, const void*)> pass;  // another one in its place
  std::vector<Reserved> reserved;
  bool has_flags = true;  // after the size
  uint32_t flags = 0;     // that the operation knows
};

// An argument that may not be null, or a member that may not.
template <class Call>
struct PointerOf {
  const char* message;
  void (*clear)(Call&);
};

template <class Call>
TensorOf<Call> tensorOf(const std::string& name) {
  for (const TensorOf<Call>& tensor : Call::tensors()) {
    if (name == tensor.name) return tensor;
  }
  throw std::logic_error("no tensor is called " + name);
}

// ---- tables of one tensor each ------------------------------------------------------------------

// A tensor by name, its bad property, and the message after "name: ".
struct ShapeRow {
  const char* tensor;
  std::vector<int64_t> shape;
  const char* message;
};
struct DTypeRow {
  const char* tensor;
  rbcDType dtype;
  const char* message;
};

template <class Call>
void checkShapes(const std::vector<ShapeRow>& table) {
  for (const ShapeRow& row : table) {
    const TensorOf<Call> tensor = tensorOf<Call>(row.tensor);
    checkError<Call>(
        {RBC_STATUS_SHAPE_MISMATCH, std::string(row.tensor) + ": " + row.message, [&](Call& call) {
           tensor.prepare(call);
           tensor.of(call).reshape(row.shape);
         }});
  }
}

template <class Call>
void checkDTypes(const std::vector<DTypeRow>& table) {
  for (const DTypeRow& row : table) {
    const TensorOf<Call> tensor = tensorOf<Call>(row.tensor);
    checkError<Call>(
        {RBC_STATUS_DTYPE_MISMATCH, std::string(row.tensor) + ": " + row.message, [&](Call& call) {
           tensor.prepare(call);
           tensor.of(call).raw.dtype = row.dtype;
         }});
  }
}

}  // namespace support
