// The sanitizers that the tests run under: GCC defines macros, Clang features.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define RBC_TEST_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define RBC_TEST_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RBC_TEST_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define RBC_TEST_THREAD_SANITIZER 1
#endif
#endif

#if !defined(RBC_TEST_ADDRESS_SANITIZER)
#define RBC_TEST_ADDRESS_SANITIZER 0
#endif
#if !defined(RBC_TEST_THREAD_SANITIZER)
#define RBC_TEST_THREAD_SANITIZER 0
#endif
// They have their own allocator, and are slow.
#define RBC_TEST_SANITIZED (RBC_TEST_ADDRESS_SANITIZER || RBC_TEST_THREAD_SANITIZER)

namespace support {

// Only looks for races: the work of a single thread is left to the other sanitizers.
inline constexpr bool kThreadSanitizer = RBC_TEST_THREAD_SANITIZER;
inline constexpr bool kSanitized = RBC_TEST_SANITIZED;

}  // namespace support
