// A locale that writes 1.5 as "1,5". It is compiled here, since only "C" is certain to be
// installed.
#pragma once

#include <locale.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace support {

class CommaLocale {
 public:
  CommaLocale() {
    char name[] = "/tmp/robocache-locale-XXXXXX";
    if (mkdtemp(name) == nullptr) return;
    folder_ = name;
    std::ofstream(folder_ / "source") << "LC_NUMERIC\ndecimal_point \"<U002C>\"\n"
                                         "thousands_sep \"<U002E>\"\ngrouping 3;3\n"
                                         "END LC_NUMERIC\n";
    const std::string at = folder_.string();
    const std::string command =  // it warns about the other categories, and then its status is 1
        "localedef -c -i " + at + "/source " + at + "/comma >" + at + "/log 2>&1";
    if (std::system(command.c_str()) < 0) return;
    if (const char* before = getenv("LOCPATH")) locpath_ = before;
    setenv("LOCPATH", at.c_str(), 1);
    locale_ = newlocale(LC_NUMERIC_MASK, "comma", static_cast<locale_t>(nullptr));
  }
  ~CommaLocale() {
    if (locale_ != nullptr) freelocale(locale_);
    if (locpath_.empty()) {
      unsetenv("LOCPATH");
    } else {
      setenv("LOCPATH", locpath_.c_str(), 1);
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  CommaLocale(const CommaLocale&) = delete;

  // Null without localedef. For setlocale() the locale is named "comma".
  locale_t get() const { return locale_; }

 private:
  std::filesystem::path folder_;
  std::string locpath_;
  locale_t locale_ = nullptr;
};

}  // namespace support
