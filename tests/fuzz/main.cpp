// Plays fuzzed calls without libFuzzer: from files, or a number of random ones.
//
//   robocache_fuzz_replay FILE...            a .hex file has one input per line; # begins a comment
//   robocache_fuzz_replay --calls N --seed S
//
// Random call i of seed S is the first call of seed S + i: --calls 1 --seed S + i plays only that
// call.
#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <string>
#include <thread>

#include "fuzz/session.h"

namespace {

int play(fuzz::Session& session, const std::vector<uint8_t>& bytes, const std::string& name) {
  try {
    session.play(fuzz::Choices(bytes.data(), bytes.size()));
    return 0;
  } catch (const fuzz::Defect& defect) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), defect.what());
    return 1;
  }
}

// One input, or the inputs on each line of a file that ends in .hex.
int playFile(fuzz::Session& session, const std::filesystem::path& path, uint64_t* played) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    return 1;
  }
  if (path.extension() != ".hex") {
    ++*played;
    return play(session, {std::istreambuf_iterator<char>(file), {}}, path);
  }
  int defects = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    ++*played;
    std::vector<uint8_t> bytes;
    for (size_t i = 0; i + 1 < line.size(); i += 2) {
      bytes.push_back(static_cast<uint8_t>(std::stoi(line.substr(i, 2), nullptr, 16)));
    }
    defects += play(session, bytes, line);
  }
  return defects;
}

}  // namespace

int main(int argc, char** argv) {
  // Keeps pages that one call frees for the next one: getting them from the system took a third of
  // the time.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  uint64_t calls = 0;
  uint64_t seed = 1;
  uint64_t played = 0;
  int defects = 0;
  fuzz::Session session(fuzz::machinesHere());
  // Its threads allocate while they start; a call that cannot be repeated must not be blamed for
  // that.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--calls") == 0 && i + 1 < argc) {
      calls = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      defects += playFile(session, argv[i], &played);
    }
  }
  for (uint64_t n = 0; n < calls && defects < 20; ++n) {
    try {
      session.play(fuzz::Choices(seed + n));
    } catch (const fuzz::Defect& defect) {
      std::fprintf(stderr, "seed %llu: %s\n", static_cast<unsigned long long>(seed + n),
                   defect.what());
      ++defects;
    }
    ++played;
    if (played % 10000 == 0)
      std::fprintf(stderr, "%llu\n", static_cast<unsigned long long>(played));
  }
  for (const auto& [what, times] : session.tally()) {
    std::printf("%9lld  %s\n", static_cast<long long>(times), what.c_str());
  }
  std::printf("%llu calls played, defects: %d\n", static_cast<unsigned long long>(played), defects);
  return defects > 0 || played == 0 ? 1 : 0;
}
