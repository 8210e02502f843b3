// libFuzzer's entry: the input describes a file of the store.
#include "fuzz_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzzFile(data, size);
}
