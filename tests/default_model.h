// The default model, for tests that need real weights or a real vocabulary. Where it is not
// downloaded such tests are skipped; on the build machine (CI=true) that is a failure.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace pagoda {

inline std::string default_model_path() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::string folder = cache != nullptr && *cache != '\0'
                           ? std::string(cache)
                           : std::string(home != nullptr ? home : ".") + "/.cache";
  return folder + "/pagoda/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

inline bool missing_model_is_failure() {
  const char* const ci = std::getenv("CI");
  return ci != nullptr && std::string(ci) == "true";
}

}  // namespace pagoda

// The first line of a test, or of a SetUp, that needs the default model.
#define REQUIRE_DEFAULT_MODEL()                                                            \
  do {                                                                                     \
    if (!std::filesystem::exists(::pagoda::default_model_path())) {                        \
      if (::pagoda::missing_model_is_failure()) {                                          \
        FAIL() << "the default model is missing: " << ::pagoda::default_model_path();      \
      }                                                                                    \
      GTEST_SKIP() << "the default model is not here: " << ::pagoda::default_model_path(); \
    }                                                                                      \
  } while (false)
