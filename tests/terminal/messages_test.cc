#include "terminal/messages.h"

#include <gtest/gtest.h>

namespace pagoda::terminal {
namespace {

TEST(Messages, CountsAgreeWithTheirNouns) {
  EXPECT_EQ(counted(0, "token"), "0 tokens");
  EXPECT_EQ(counted(1, "token"), "1 token");
  EXPECT_EQ(counted(2, "new token"), "2 new tokens");
}

}  // namespace
}  // namespace pagoda::terminal
