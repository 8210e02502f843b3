// Between the library and CUDA's runtime: the n-th call of it fails. For programs that link the library's
// objects, with --wrap for each function that cuda_shim.cpp names.
#pragma once

#include <cstdint>

namespace cuda_shim {

// From now on the n-th call fails, and no other; 0: none.
void failAt(int64_t n);
// How many calls since then.
int64_t calls();
// The function that was made to fail since then; null: none was.
const char* failed();

}  // namespace cuda_shim
