#include "launch_choice.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "dtype.h"

namespace rbc {
namespace {

// A text that is cut at the end of its memory.
class Line {
 public:
  Line(char* text, size_t size) : text_(text), size_(size) { text_[0] = '\0'; }

  __attribute__((format(printf, 2, 3))) void add(const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(text_ + used_, size_ - used_, format, arguments);
    va_end(arguments);
    if (length > 0) used_ = std::min(used_ + static_cast<size_t>(length), size_ - 1);
  }

  void addRefusal(const Refusal& refusal) {
    if (refusal.operand != nullptr) add("%s[%" PRId64 "].", refusal.operand, refusal.index);
    const char* rest = refusal.text;
    while (const char* place = std::strchr(rest, '{')) {
      const bool is_dtype = std::strncmp(place, "{dtype}", 7) == 0;
      add("%.*s", static_cast<int>(place - rest), rest);
      if (is_dtype) {
        add("%s", nameOf(static_cast<DType>(refusal.found)));
      } else {
        add("%" PRId64, refusal.found);
      }
      rest = place + (is_dtype ? 7 : 2);
    }
    add("%s", rest);
  }

 private:
  char* text_;
  size_t size_;
  size_t used_ = 0;
};

}  // namespace

void writeLaunch(const char* operation, const LaunchChoice& choice, char* text,
                 size_t size) noexcept {
  Line line(text, size);
  if (operation == nullptr) return;
  line.add("%s: %s", operation, choice.kernel != nullptr ? choice.kernel : "nothing to do");
  if (choice.form[0] != '\0') line.add(" (%s)", choice.form);
  if (choice.grid > 0) {
    line.add(", grid %" PRId64 " x %d, shared %d bytes", choice.grid, choice.threads,
             choice.shared_bytes);
  } else if (choice.threads > 0) {
    line.add(", threads %d", choice.threads);
  }
  if (choice.because.kernel == nullptr) return;
  line.add("; not %s: ", choice.because.kernel);
  line.addRefusal(choice.because);
}

LogLevel logLevel() noexcept {
  const char* value = std::getenv("RBC_LOG");
  if (value == nullptr) return LogLevel::kNone;
  if (std::strcmp(value, "kernels") == 0) return LogLevel::kKernels;
  return std::strcmp(value, "slow") == 0 ? LogLevel::kSlow : LogLevel::kNone;
}

void logLaunch(LogLevel level, const char* operation, const LaunchChoice& choice) noexcept {
  if (level == LogLevel::kNone || (level == LogLevel::kSlow && !choice.general)) return;
  char text[512];
  writeLaunch(operation, choice, text, sizeof text);
  std::fprintf(stderr, "robocache: %s\n", text);
}

}  // namespace rbc
