#pragma once

#include <cstddef>
#include <cstdint>

// Opens a file that the input describes. Ends the process if something is wrong.
int fuzzFile(const uint8_t* data, size_t size);
