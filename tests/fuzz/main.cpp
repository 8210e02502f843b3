// Fuzzed calls without libFuzzer: of files, or as many random ones as asked for.
//
//   robocache_fuzz_replay FILE_OR_FOLDER...
//   robocache_fuzz_replay --calls N --seed S
//
// Random call i of seed S is that of seed S + i: --calls 1 --seed S + i plays it alone.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/session.h"

namespace {

int playFile(fuzz::Session& session, const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(file)), {});
  try {
    session.play(fuzz::Choices(bytes.data(), bytes.size()));
    return 0;
  } catch (const fuzz::Defect& defect) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), defect.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t calls = 0;
  uint64_t seed = 1;
  uint64_t played = 0;
  int defects = 0;
  fuzz::Session session(fuzz::machinesHere());
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--calls") == 0 && i + 1 < argc) {
      calls = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::filesystem::is_directory(argv[i])) {
      for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
        defects += playFile(session, entry.path());
        ++played;
      }
    } else {
      defects += playFile(session, argv[i]);
      ++played;
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
    if (played % 10000 == 0) std::fprintf(stderr, "%llu\n", static_cast<unsigned long long>(played));
  }
  for (const auto& [what, times] : session.tally()) {
    std::printf("%9lld  %s\n", static_cast<long long>(times), what.c_str());
  }
  std::printf("%llu calls played, defects: %d\n", static_cast<unsigned long long>(played), defects);
  return defects > 0 || played == 0 ? 1 : 0;
}
