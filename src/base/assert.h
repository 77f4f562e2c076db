// ASSERT marks a bug of ours and is never used on input. A failed ASSERT prints the condition and
// its source line and aborts, in release builds too. DEV_ASSERT holds checks that cost too much for
// a release build.
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
