// Messages do not depend on the caller's locale and rounding mode, and do not change them.
#include <locale.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "abi/resample_call.h"
#include "support/comma_locale.h"
#include "support/expect.h"
#include "support/odd_floats.h"
#include "support/sanitizers.h"

namespace {

using support::CommaLocale;

std::string written(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

// Fails with a message that has a number of each kind.
std::string messageOfFailure() {
  resample_call::Call call;
  call.params.max_gap = -12345.5;
  errno = 4321;
  CHECK(call.run() == RBC_STATUS_INVALID_ARGUMENT);
  CHECK(errno == 4321);
  return rbcGetLastError();
}

}  // namespace

TEST_CASE(
    "locale: numbers in messages are rounded to nearest, for any rounding mode of the caller") {
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

TEST_CASE("locale: messages have a decimal point in every locale, and do not change it") {
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
    CHECK(number == "1,5");  // else the test proves nothing
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
