// ASSERT means "our bug": it is never used on input. It stays on in release builds, prints the
// condition and the place, and aborts. DEV_ASSERT is for checks too dear for release.
#pragma once

namespace pagoda {

[[noreturn]] void assert_failed(const char* condition, const char* message, const char* file,
                                int line);

}  // namespace pagoda

#define ASSERT(condition, message)                                      \
  do {                                                                  \
    if (!(condition)) [[unlikely]]                                      \
      ::pagoda::assert_failed(#condition, message, __FILE__, __LINE__); \
  } while (false)

#ifdef PAGODA_DEV_CHECKS
#define DEV_ASSERT(condition, message) ASSERT(condition, message)
#else
#define DEV_ASSERT(condition, message) \
  do {                                 \
  } while (false)
#endif
