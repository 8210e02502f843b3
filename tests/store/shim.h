// System calls of the store that fail, or at which the process is killed: shim.cpp wraps them.
#pragma once

namespace shim {

struct Plan {
  int target = 0;           // the number of the call that fails, from 1 on; 0: none
  int error = 0;            // its errno; 0: the process is killed before the call
  bool no_unnamed = false;  // the file system has no files without a name
  bool no_locks = false;    // the file system has no locks
  bool no_replace = false;  // the kernel has no renameat2
};

struct Seen {
  int calls;             // so far
  bool fired;            // the target was reached
  const char* function;  // of the target
};

// Begins to count; what was seen is in memory that survives the process.
void begin(const Plan& plan, Seen* seen);
void end();

}  // namespace shim
