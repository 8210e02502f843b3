// Messages do not depend on the caller's locale and rounding mode, and leave them as they are.
#include <locale.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "abi/resample_call.h"
#include "support/expect.h"
#include "support/odd_floats.h"
#include "support/sanitizers.h"

namespace {

// A locale that writes 1.5 as "1,5". It is compiled here, for none but "C" is sure to be installed.
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
    const std::string command =  // it warns of the other categories, and then its status is 1
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
  locale_t get() const { return locale_; }

 private:
  std::filesystem::path folder_;
  std::string locpath_;
  locale_t locale_ = nullptr;
};

std::string written(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

// Fails by a message with a number of each kind.
std::string messageOfFailure() {
  resample_call::Call call;
  call.params.max_gap = -12345.5;
  errno = 4321;
  CHECK(call.run() == RBC_STATUS_INVALID_ARGUMENT);
  CHECK(errno == 4321);
  return rbcGetLastError();
}

}  // namespace

TEST_CASE("locale: numbers of messages are rounded to nearest, however the caller rounds") {
  resample_call::Call call;
  call.params.max_gap = -2.720285;  // %g has six digits
  const auto message = [&] {
    CHECK(call.run() == RBC_STATUS_INVALID_ARGUMENT);
    return std::string(rbcGetLastError());
  };
  const std::string expected = message();
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    const support::OddFloats odd(mode);
    CHECK(message() == expected);
    CHECK(odd.still());
  }
}

TEST_CASE("locale: messages have a decimal point in every one, and leave it set") {
  if (support::kSanitized)
    SKIP_BECAUSE("glibc leaks the path of locales, and LeakSanitizer would tell");
  const CommaLocale comma;
  if (comma.get() == nullptr) SKIP_BECAUSE("localedef, which makes the locale, is not here");
  const std::string expected = messageOfFailure();
  CHECK(support::tells(expected, {"max_gap: is -12345.5, "}));

  SUBCASE("of the thread") {
    const locale_t before = uselocale(comma.get());
    const std::string number = written(1.5), message = messageOfFailure(), after = written(1.5);
    const locale_t kept = uselocale(before);
    CHECK(number == "1,5");  // or this proves nothing
    CHECK(message == expected);
    CHECK(after == "1,5");
    CHECK(kept == comma.get());
  }
  SUBCASE("of the process") {
    const std::string before = setlocale(LC_NUMERIC, nullptr);
    REQUIRE(setlocale(LC_NUMERIC, "comma") != nullptr);
    const std::string number = written(1.5), message = messageOfFailure(), after = written(1.5);
    const bool global = uselocale(static_cast<locale_t>(nullptr)) == LC_GLOBAL_LOCALE;
    setlocale(LC_NUMERIC, before.c_str());
    CHECK(number == "1,5");
    CHECK(message == expected);
    CHECK(after == "1,5");
    CHECK(global);
  }
}
