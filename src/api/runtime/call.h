// The two functions of an operation: rbcX runs it, and rbcXWorkspaceSize returns the workspace that
// it needs.
//
// A Call is constructed from the context and the arguments of the function. It has the
// `operands`, and these members; CallBase provides most of them:
//   kOperation         the name of the call for rbcContextGetInfo and RBC_LOG
//   problem()          the problem that the backend gets
//   empty()            whether there is nothing to do
//   visitIndexes(v)    calls v(array, entries) for each of its lengths and offsets
//   verifyIndexes()    fails for entries out of range
//   requireCheckable(c)  fails if check() cannot run now
//   checkBytes(c)      the workspace of check()
//   check(c, scratch)  further verification, of data
//   afterBytes(c)      the workspace of after()
//   after(c, scratch)  work that follows the operation
//   keepIndexes(l)     optional: copies the arrays that verifyIndexes() verifies to the layout's
//                      memory, if it has any. Without it, all arrays of visitIndexes() are copied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "context.h"
#include "guard.h"
#include "operands.h"
#include "operation.h"
#include "runtime/indexes.h"
#include "scratch_layout.h"
#include "status.h"

namespace rbc {

struct CallBase {
  explicit CallBase(const rbcContext& context) : operands(context) {}
  CallBase(const CallBase&) = delete;
  CallBase& operator=(const CallBase&) = delete;

  size_t checkBytes(const rbcContext&) const { return 0; }
  void requireCheckable(const rbcContext&) const {}
  void check(rbcContext&, Scratch) const {}
  size_t afterBytes(const rbcContext&) const { return 0; }
  void after(rbcContext&, Scratch) const {}

  Operands operands;
};

template <class Call, class = void>
inline constexpr bool kKeepsIndexes = false;
template <class Call>
inline constexpr bool kKeepsIndexes<Call, std::void_t<decltype(&Call::keepIndexes)>> = true;

template <class Call>
class Entry {
 public:
  template <class Arguments>
  Entry(rbcContext_t context, const Arguments& arguments)
      : use_(context),
        context_(*use_),
        on_host_(context_.backend->id == RBC_BACKEND_CPU),
        call_(context_.call_memory.make<Call>(context_, arguments)),
        operation_(operationFor<std::decay_t<decltype(call_.problem())>>(*context_.backend)) {
    call_.operands.requireApart();
  }

  size_t workspaceBytes() {
    if (on_host_) call_.verifyIndexes();
    return allBytes(ownBytes());
  }

  void run() {
    call_.requireCheckable(context_);
    const size_t own = ownBytes();
    const size_t all = allBytes(own);
    ScratchLayout layout(all > 0 ? workspace(context_, all).data : nullptr);
    // Verifies copies and then uses them, so that the caller's arrays may change meanwhile.
    if (on_host_) {
      keepIndexes(layout);
      call_.verifyIndexes();
    }
    const Scratch scratch = {layout.take<std::byte>(static_cast<int64_t>(own)), own};
    call_.check(context_, scratch);
    BackendState& state = *context_.state;
    state.last_operation = Call::kOperation;
    state.last_launch = call_.empty() ? LaunchChoice{} : state.usual_launch;
    if (!call_.empty()) operation_.run(state, call_.problem(), scratch);
    call_.after(context_, scratch);
    if (state.log_level != LogLevel::kNone) {
      logLaunch(state.log_level, state.last_operation, state.last_launch);
    }
  }

 private:
  // The workspace of the check, the operation and after(), which run one after the other.
  size_t ownBytes() const {
    const size_t bytes = std::max(call_.checkBytes(context_), call_.afterBytes(context_));
    if (call_.empty()) return bytes;
    return std::max(bytes, operation_.workspaceBytes(*context_.state, call_.problem()));
  }

  // The same with the copies of lengths and offsets before it.
  size_t allBytes(size_t own) {
    ScratchLayout layout(nullptr);
    if (on_host_) keepIndexes(layout);
    if (own > 0) layout.take<std::byte>(static_cast<int64_t>(own));
    return layout.used();
  }

  // Copies the arrays if the layout has memory; otherwise it only counts their bytes.
  void keepIndexes(ScratchLayout& layout) {
    if constexpr (kKeepsIndexes<Call>) {
      call_.keepIndexes(layout);
    } else {
      call_.visitIndexes([&](IndexArray& array, int64_t entries) {
        int64_t* copy = layout.take<int64_t>(entries);
        if (copy != nullptr) array = copyOf(array, entries, copy);
      });
    }
  }

  ContextUse use_;
  rbcContext& context_;
  bool on_host_;
  Call& call_;
  const Operation<std::decay_t<decltype(call_.problem())>>& operation_;
};

template <class Call, class Arguments>
rbcStatus_t runCall(rbcContext_t context, const Arguments& arguments) {
  return guard([&] { Entry<Call>(context, arguments).run(); });
}

template <class Call, class Arguments>
rbcStatus_t sizeCall(rbcContext_t context, const Arguments& arguments, size_t* bytes) {
  return guard([&] {
    if (bytes == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "bytes: is null");
    *bytes = Entry<Call>(context, arguments).workspaceBytes();
  });
}

}  // namespace rbc
