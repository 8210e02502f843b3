// The kernel that a call ran: rbcContextGetInfo reports it, and RBC_LOG prints it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rbc {

// A condition of a faster kernel that a call did not meet. All texts are literals.
struct Refusal {
  const char* kernel = nullptr;   // the faster one; null: no kernel refused the call
  const char* text = nullptr;     // {} stands for `found`, {dtype} for the dtype of that number
  const char* operand = nullptr;  // the array that `index` counts, such as streams; null: none
  int64_t index = 0;
  int64_t found = 0;
};

// The kernel that does most of a call's work, and its launch.
struct LaunchChoice {
  const char* kernel = nullptr;  // null: the call had nothing to do, or there was no call
  const char* form = "";         // which of the kernel's instances; may be empty
  int64_t grid = 0;              // blocks; 0 on the CPU
  int32_t threads = 0;           // of a block; on the CPU of the call, at most
  int32_t shared_bytes = 0;      // dynamic shared memory of a block
  bool general = false;          // the kernel does any call, and faster ones refused this one
  Refusal because;               // why not the next faster kernel
};

// Writes the choice as one line without an end, cut to the size.
void writeLaunch(const char* operation, const LaunchChoice& choice, char* text,
                 size_t size) noexcept;

// The calls that are printed to stderr, one line per call.
enum class LogLevel : uint8_t { kNone, kSlow, kKernels };

// By the environment variable RBC_LOG: "kernels" or "slow". Any other value prints nothing.
LogLevel logLevel() noexcept;

// Prints the line if the level asks for it.
void logLaunch(LogLevel level, const char* operation, const LaunchChoice& choice) noexcept;

}  // namespace rbc
