// The entry point of libFuzzer: an input is one call, on every kind of CPU context.
#include <cstdio>
#include <cstdlib>

#include "fuzz/machines.h"
#include "fuzz/session.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::Session session(fuzz::cpuMachines());
  try {
    session.play(fuzz::Choices(data, size));
  } catch (const fuzz::Defect& defect) {
    std::fprintf(stderr, "%s\n", defect.what());
    std::abort();
  }
  return 0;
}
