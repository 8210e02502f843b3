// Random hostile files without libFuzzer:  robocache_store_files [calls [seed]]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "fuzz_files.h"
#include "support/random.h"

int main(int argc, char** argv) {
  const long calls = argc > 1 ? std::atol(argv[1]) : 20000;
  support::Random random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  constexpr uint64_t kOdd[] = {0,           1,    2,     8,          63,         64,
                               4096,        4104, 65536, 0x7fffffff, 0xffffffff, uint64_t{1} << 48,
                               ~uint64_t{0}};
  for (long call = 0; call < calls; ++call) {
    std::vector<uint8_t> input = {static_cast<uint8_t>(random.bits() & 0x3f)};
    for (int64_t patches = random.below(4); patches > 0; --patches) {
      const uint64_t where =
          random.chance(0.03) ? 0xffff : (random.bits() & 0x1ff) * 4 | (random.bits() & 0x8000);
      const size_t count = random.chance(0.5) ? 8 : 4;
      const uint64_t number =
          random.chance(0.6) ? random.pick(kOdd) : random.bits() >> random.below(64);
      input.push_back(static_cast<uint8_t>(where));
      input.push_back(static_cast<uint8_t>(where >> 8));
      input.push_back(static_cast<uint8_t>(where == 0xffff ? random.bits() : count));
      if (where == 0xffff) continue;
      uint8_t bytes[8];
      std::memcpy(bytes, &number, sizeof bytes);
      input.insert(input.end(), bytes, bytes + count);
    }
    fuzzFile(input.data(), input.size());
  }
  std::printf("%ld files were opened or refused\n", calls);
  return 0;
}
