#include <gmock/gmock.h>

#include "reported_skips.h"

// ThreadSanitizer sees none of the locks of a library that was compiled without it.
extern "C" const char* __tsan_default_suppressions() { return "race:libzmq.so\n"; }

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  return pagoda::run_tests();
}
