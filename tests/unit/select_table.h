// Tables of calls and the kernels chosen for them, on three devices; no GPU is needed. A page of
// the docs shows the same tables: with ROBOCACHE_WRITE_DOCS set, the tests write it.
#pragma once

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "launch_choice.h"
#include "runtime/launch_device.h"

namespace select_table {

struct Device {
  const char* name;
  rbc::cuda::LaunchDevice device;
};
inline constexpr Device kDevices[] = {
    {"A100", {108, 80, 163 << 10, false, true}},
    {"H100", {132, 90, 227 << 10, true, true}},
    {"Orin", {8, 87, 163 << 10, false, true}},
};
inline constexpr int kNumDevices = 3;

// "kernel (form), grid ..., shared ...; not faster kernel: why".
inline std::string lineOf(const rbc::LaunchChoice& choice) {
  char text[512];
  rbc::writeLaunch("", choice, text, sizeof text);
  return std::string(text).substr(2);
}

// A call and its line on each device; null: same as on the previous device.
template <class Call>
struct Row {
  const char* name;
  Call (*make)();
  const char* lines[kNumDevices];
};

inline std::string partBefore(const std::string& line, const char* end) {
  return line.substr(0, line.find(end));
}
inline std::string partBehind(const std::string& line, const char* begin) {
  const size_t at = line.find(begin);
  return at == std::string::npos ? "" : line.substr(at + std::string(begin).size());
}

inline constexpr const char* kPage = "docs/performance/kernels.md";

// Compares the block of the page between the family's two marks, or writes it.
inline void checkPage(const std::string& family, const std::string& table) {
  std::ifstream file(kPage);
  REQUIRE_MESSAGE(file.is_open(), kPage, ": cannot be read");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::string begin = "<!-- begin " + family + ": written by tests/unit -->\n";
  const std::string end = "<!-- end " + family + " -->\n";
  const size_t from = page.find(begin);
  const size_t to = page.find(end);
  REQUIRE_MESSAGE((from != std::string::npos && to != std::string::npos && from < to), kPage,
                  ": lacks the marks of ", family);
  const size_t first = from + begin.size();
  if (std::getenv("ROBOCACHE_WRITE_DOCS") != nullptr) {
    std::ofstream(kPage) << page.substr(0, first) << table << page.substr(to);
    return;
  }
  CHECK_MESSAGE(page.substr(first, to - first) == table, kPage, ": the table of ", family,
                " is out of date; run the tests with ROBOCACHE_WRITE_DOCS=1. Expected:\n", table);
}

// The texts of all devices in one: "this", or "that (A100, H100), this (Orin)". Empty texts are
// skipped.
inline std::string joined(const std::string (&parts)[kNumDevices]) {
  std::string text;
  for (int i = 0; i < kNumDevices;) {
    std::string names = kDevices[i].name;
    int end = i + 1;
    for (; end < kNumDevices && parts[end] == parts[i]; ++end) {
      names += std::string(", ") + kDevices[end].name;
    }
    if (i == 0 && end == kNumDevices) return parts[0];
    if (!parts[i].empty()) text += (text.empty() ? "" : ", ") + parts[i] + " (" + names + ")";
    i = end;
  }
  return text;
}

// The same for launches: prints the kernel once if it is the same on all devices.
inline std::string joinedLaunches(const std::string (&lines)[kNumDevices]) {
  constexpr const char* kGrid = ", grid ";
  std::string kernels[kNumDevices];
  std::string grids[kNumDevices];
  for (int i = 0; i < kNumDevices; ++i) {
    kernels[i] = partBefore(lines[i], kGrid);
    grids[i] = partBehind(lines[i], kGrid);
  }
  const bool same = kernels[0] == kernels[1] && kernels[1] == kernels[2];
  return same ? kernels[0] + kGrid + joined(grids) : joined(lines);
}

// Checks every line of the table, and the page. `select(call, device)` is the family's.
template <class Call, size_t kRows, class Select>
void check(const char* family, const Row<Call> (&rows)[kRows], const Select& select) {
  std::string table = "| Call | Kernel and launch | Not the next faster kernel |\n|---|---|---|\n";
  for (const Row<Call>& row : rows) {
    const Call call = row.make();
    std::string expected;
    std::string launches[kNumDevices];
    std::string reasons[kNumDevices];
    for (int i = 0; i < kNumDevices; ++i) {
      if (row.lines[i] != nullptr) expected = row.lines[i];
      const std::string line = lineOf(select(call, kDevices[i].device));
      const std::string where = std::string(row.name) + " on " + kDevices[i].name;
      CHECK_MESSAGE(line == expected, where, ":\n  found    ", line, "\n  expected ", expected);
      launches[i] = partBefore(partBefore(line, "; not "), ", shared 0 bytes");
      reasons[i] = partBehind(line, "; not ");
    }
    table += std::string("| ") + row.name + " | " + joinedLaunches(launches) + " | " +
             joined(reasons) + (joined(reasons).empty() ? "|\n" : " |\n");
  }
  checkPage(family, table);
}

// A change to a call that a fast kernel accepts, and the reason why the kernel then refuses it.
template <class Call>
struct Spoiled {
  void (*spoil)(Call* call);
  const char* because;
};

// Checks the reasons on the H100, where `kernel` accepts the unchanged call.
template <class Call, size_t kRows, class Select>
void checkSpoiled(const char* kernel, Call (*make)(), const Spoiled<Call> (&rows)[kRows],
                  const Select& select) {
  const auto& device = kDevices[1].device;
  CHECK(std::string(select(make(), device).kernel) == kernel);
  for (const Spoiled<Call>& row : rows) {
    Call call = make();
    row.spoil(&call);
    const std::string because = partBehind(lineOf(select(call, device)), "; not ");
    const std::string expected = row.because;
    CHECK(because == expected);
  }
}

// An address that is a multiple of 256 bytes. It is never accessed: selections only check
// alignment.
inline void* addressOf(int number) {
  return reinterpret_cast<void*>((static_cast<uintptr_t>(number) + 1) << 32);
}

}  // namespace select_table
