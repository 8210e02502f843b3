// The kernel that a call ran: rbcContextGetInfo reports it, and RBC_LOG prints it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rbc {

// A condition of a faster kernel that a call did not meet. All texts are literals.
struct Refusal {
  const char* kernel = nullptr;   // the faster kernel; null: no kernel refused the call
  const char* text = nullptr;     // {} stands for `found`, {dtype} for the dtype of that number
  const char* operand = nullptr;  // the array that `index` counts, such as streams; null: none
  int64_t index = 0;
  int64_t found = 0;
};

// The kernel that does most of a call's work, and its launch.
struct LaunchChoice {
  const char* kernel = nullptr;  // null: the call had nothing to do, or there was no call
  const char* form = "";         // the kernel's instance; may be empty
  int64_t grid = 0;              // blocks; 0 on the CPU
  int32_t threads = 0;           // per block; on the CPU, the most that the call uses
  int32_t shared_bytes = 0;      // dynamic shared memory per block
  bool general = false;          // the kernel accepts any call, and faster ones refused this one
  Refusal because;               // why the next faster kernel refused
};

// Writes the choice as one line without an end, cut to the size.
void writeLaunch(const char* operation, const LaunchChoice& choice, char* text,
                 size_t size) noexcept;

// The calls that are printed to stderr, one line per call.
enum class LogLevel : uint8_t { kNone, kSlow, kKernels };

// Reads the environment variable RBC_LOG: "kernels" or "slow". Any other value prints nothing.
LogLevel logLevel() noexcept;

// Prints the line if the level asks for it.
void logLaunch(LogLevel level, const char* operation, const LaunchChoice& choice) noexcept;

}  // namespace rbc
