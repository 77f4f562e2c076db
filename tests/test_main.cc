#include <gmock/gmock.h>

#include "reported_skips.h"

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  return pagoda::run_tests();
}
