// Sits between the library and the CUDA runtime: makes the n-th call fail. For programs that link
// the library's objects, with --wrap for each function that cuda_shim.cpp names.
#pragma once

#include <cstdint>

namespace cuda_shim {

// From now on only the n-th call fails; 0: none.
void failAt(int64_t n);
// Number of calls since then.
int64_t calls();
// The function that failed since then; null: none.
const char* failed();

}  // namespace cuda_shim
