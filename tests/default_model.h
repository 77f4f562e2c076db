// The default model, for tests that need real weights or a real vocabulary. Where it is not
// downloaded such tests are skipped; on the build machine (CI=true) that is a failure.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace pagoda {

// Where ./run keeps what it downloads.
inline std::string cached_model_path(const std::string& name) {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::string folder = cache != nullptr && *cache != '\0'
                           ? std::string(cache)
                           : std::string(home != nullptr ? home : ".") + "/.cache";
  return folder + "/pagoda/models/" + name;
}

inline std::string default_model_path() {
  return cached_model_path("SmolLM2-135M-Instruct.Q4_1.gguf");
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
