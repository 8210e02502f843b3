// The shared library as the dynamic linker sees it.
#include <dlfcn.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "robocache/robocache.h"
#include "support/expect.h"

namespace {

std::string outputOf(const std::string& command) {
  std::string output;
  if (FILE* pipe = popen(command.c_str(), "r")) {
    char buffer[4096];
    while (size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, n);
    pclose(pipe);
  }
  return output;
}

std::set<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), regex), end; i != end; ++i)
    found.insert((*i)[1]);
  return found;
}

std::string contentOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

constexpr const char* kLayouts = "tests/abi/layouts";

// The functions of the baseline, as nm prints them: name@@VERSION.
std::set<std::string> listedSymbols() {
  const auto between = [](const std::string& line, const std::string& begin, char end) {
    const bool starts = line.compare(0, begin.size(), begin) == 0;
    return starts ? line.substr(begin.size(), line.find(end) - begin.size()) : std::string();
  };
  std::set<std::string> listed;
  for (const auto& entry : std::filesystem::directory_iterator(kLayouts)) {
    std::ifstream file(entry.path());
    std::string version;
    for (std::string line; std::getline(file, line);) {
      const std::string next = between(line, "SYMBOL_VERSION(", ')');
      if (!next.empty()) version = next;
      const std::string name = between(line, "FUNCTION(", ',');
      if (!name.empty()) listed.insert(name + "@@" + version);
    }
  }
  return listed;
}

std::set<std::string> listedExports() {
  std::set<std::string> names;
  for (const std::string& symbol : listedSymbols())
    names.insert(symbol.substr(0, symbol.find('@')));
  return names;
}

std::set<std::string> declaredIn(const char* folder) {
  std::set<std::string> declared;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".h") continue;
    const auto found = matches(contentOf(entry.path()), "RBC_API [\\w* ]*\\b(rbc\\w+)\\(");
    declared.insert(found.begin(), found.end());
  }
  return declared;
}

std::string difference(const std::set<std::string>& a, const std::set<std::string>& b) {
  std::string text;
  for (const std::string& name : a) text += b.count(name) != 0 ? "" : name + " ";
  return text;
}

}  // namespace

TEST_CASE("exports: the library exports exactly the symbols of the baseline") {
  const std::string symbols = outputOf("nm -D --defined-only " RBC_TEST_LIBRARY);
  REQUIRE_MESSAGE(!symbols.empty(), "nm printed nothing: is binutils installed?");
  // "address type name@@VERSION"; the version itself is listed as an absolute symbol.
  const auto exported = matches(symbols, "\\w+ [B-Zb-z] (\\S+)");
  const std::set<std::string> expected = listedSymbols();
  CHECK(expected.size() >= 24);
  CHECK_MESSAGE(exported == expected, "more: ", difference(exported, expected),
                "; fewer: ", difference(expected, exported));
}

TEST_CASE("exports: the baseline equals the declarations of the headers") {
  const auto declared = declaredIn("include/robocache");
  REQUIRE_MESSAGE(!declared.empty(), "no headers: run the tests in the source folder");
  const auto listed = listedExports();
  CHECK_MESSAGE(declared == listed, "declared only: ", difference(declared, listed),
                "; listed only: ", difference(listed, declared));
}

TEST_CASE("exports: the SONAME has the ABI version, and few libraries are needed") {
  const std::string dynamic = outputOf("readelf -d " RBC_TEST_LIBRARY);
  CHECK(matches(dynamic, "SONAME.*\\[(.*)\\]") ==
        std::set<std::string>{"librobocache.so." + std::to_string(RBC_ABI_VERSION)});
#ifdef _LIBCPP_VERSION
  const std::string standard = "c\\+\\+|c\\+\\+abi|unwind";
#else
  const std::string standard = "stdc\\+\\+";
#endif
  for (const std::string& needed : matches(dynamic, "NEEDED.*\\[(.*)\\]")) {
    const std::regex allowed("lib(c|m|dl|rt|pthread|" + standard +
                             "|gcc_s|asan|ubsan|tsan)\\.so.*|ld-linux.*");
    CHECK_MESSAGE(std::regex_match(needed, allowed), "needs ", needed);
  }
}

TEST_CASE("exports: the library can be loaded by name and returns its versions") {
  void* library = dlopen(RBC_TEST_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  for (const std::string& name : listedExports())
    CHECK_MESSAGE(dlsym(library, name.c_str()) != nullptr, name);
  dlclose(library);
  int32_t release = 0;
  int32_t abi = 0;
  CHECK_SUCCEEDS(rbcGetVersion(&release, &abi));
  CHECK(release == RBC_VERSION_MAJOR * 10000 + RBC_VERSION_MINOR * 100 + RBC_VERSION_PATCH);
  CHECK(abi == RBC_ABI_VERSION);
  CHECK_SUCCEEDS(rbcGetVersion(nullptr, nullptr));
}
