// Calls all operations for hours, with valid and invalid arguments and occasional memory failures.
// The resources of the process are recorded, and must not grow.
//
//   robocache_soak [--hours H | --seconds S] [--seed S] [--log FILE]
#include <dirent.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "fuzz/session.h"

namespace {

struct Sample {
  double seconds;
  int64_t plays;
  int64_t calls;     // of functions of the library, many per play
  int64_t heap;      // KiB allocated, without workspaces: a rare call makes those larger
  int64_t resident;  // KiB
  int64_t device;    // KiB of the GPU's memory in use
  int64_t descriptors;
  int64_t threads;
};

int64_t statusField(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.compare(0, name.size(), name) == 0) return std::atoll(line.c_str() + name.size() + 1);
  }
  return 0;
}

int64_t countOf(const char* folder) {
  int64_t count = 0;
  DIR* const opened = opendir(folder);
  while (opened != nullptr && readdir(opened) != nullptr) ++count;
  if (opened != nullptr) closedir(opened);
  return count;
}

int64_t heapKiB(const fuzz::Session& session) {
  const struct mallinfo2 info = mallinfo2();
  return (static_cast<int64_t>(info.uordblks + info.hblkhd) -
          static_cast<int64_t>(session.workspaceBytes())) >>
         10;
}

// Growth of the allocated memory per hour, by least squares over the second half.
double growthAnHour(const std::vector<Sample>& samples) {
  const size_t first = samples.size() / 2;
  const double n = static_cast<double>(samples.size() - first);
  double x = 0, y = 0, xx = 0, xy = 0;
  for (size_t i = first; i < samples.size(); ++i) {
    const double t = samples[i].seconds / 3600;
    const auto kib = static_cast<double>(samples[i].heap);
    x += t;
    y += kib;
    xx += t * t;
    xy += t * kib;
  }
  const double spread = n * xx - x * x;
  return spread > 0 ? (n * xy - x * y) / spread : 0;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 3600;
  uint64_t seed = 1;
  const char* log = nullptr;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--hours") == 0) seconds = 3600 * std::atof(argv[i + 1]);
    if (std::strcmp(argv[i], "--seconds") == 0) seconds = std::atof(argv[i + 1]);
    if (std::strcmp(argv[i], "--seed") == 0) seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--log") == 0) log = argv[i + 1];
  }
  std::ofstream table;
  if (log != nullptr) table.open(log);
  if (table.is_open())
    table << "seconds,plays,calls,heap_kib,resident_kib,device_kib,descriptors,threads\n";

  fuzz::Session session(fuzz::machinesHere());
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::vector<Sample> samples;
  int64_t plays = 0;
  int defects = 0;
  double next = 0;
  while (elapsed() < seconds && defects < 10) {
    if (elapsed() >= next) {
      malloc_trim(0);  // memory that the C library keeps for later is not a leak
      samples.push_back({elapsed(), plays, session.calls(), heapKiB(session), statusField("VmRSS:"),
                         fuzz::deviceBytesInUse() >> 10, countOf("/proc/self/fd"),
                         statusField("Threads:")});
      const Sample& s = samples.back();
      if (table.is_open()) {
        table << s.seconds << ',' << s.plays << ',' << s.calls << ',' << s.heap << ',' << s.resident
              << ',' << s.device << ',' << s.descriptors << ',' << s.threads << std::endl;
      }
      next = elapsed() + seconds / 200;
    }
    // Memory is exhausted from some allocation on, in one call of a hundred.
    if (plays % 100 == 99) session.failNext(1 + plays / 100 % 3);
    try {
      session.play(fuzz::Choices(seed + static_cast<uint64_t>(plays)));
    } catch (const fuzz::Defect& defect) {
      std::fprintf(stderr, "seed %llu: %s\n",
                   static_cast<unsigned long long>(seed + static_cast<uint64_t>(plays)),
                   defect.what());
      ++defects;
    }
    session.failNext(0);
    ++plays;
  }
  if (samples.size() < 20) {
    std::fprintf(stderr, "too short to find a trend\n");
    return 1;
  }
  const Sample& settled = samples[samples.size() / 2];
  const Sample& last = samples.back();
  const double growth = growthAnHour(samples);
  std::printf(
      "%lld plays, %lld calls in %.0f s, %.0f calls per second; %lld KiB allocated, %+.0f KiB an "
      "hour; %lld KiB "
      "resident; %lld KiB of the GPU; %lld descriptors, %lld threads; defects: %d\n",
      static_cast<long long>(plays), static_cast<long long>(session.calls()), last.seconds,
      static_cast<double>(last.calls) / last.seconds, static_cast<long long>(last.heap), growth,
      static_cast<long long>(last.resident), static_cast<long long>(last.device),
      static_cast<long long>(last.descriptors), static_cast<long long>(last.threads), defects);
  // Memory varies with the needs of a call: the minimum shows what is kept.
  const auto grows = [&](const char* what, int64_t Sample::*field, int64_t slack) {
    const auto least = [&](size_t begin, size_t end) {
      int64_t kib = INT64_MAX;
      for (size_t i = begin; i < end; ++i) kib = std::min(kib, samples[i].*field);
      return kib;
    };
    const size_t quarter = samples.size() / 4;
    const int64_t before = least(quarter, 2 * quarter);
    const int64_t grown = least(3 * quarter, samples.size()) - before;
    if (grown <= slack + before / 20) return false;
    std::fprintf(stderr, "%s grows: %lld KiB in half the time\n", what,
                 static_cast<long long>(grown));
    return true;
  };
  const bool leaks = grows("memory", &Sample::heap, 512);
  const bool leaks_device = grows("memory of the GPU", &Sample::device, 8 << 10);
  if (last.descriptors > settled.descriptors) std::fprintf(stderr, "descriptors grow\n");
  if (last.threads > settled.threads) std::fprintf(stderr, "threads grow\n");
  return leaks || leaks_device || last.descriptors > settled.descriptors ||
                 last.threads > settled.threads || defects > 0
             ? 1
             : 0;
}
