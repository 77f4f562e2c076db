// A SIGHUP that comes before the server listens for it is heard afterwards, and ends nothing.
#include "serve/held_signal.h"

#include <gtest/gtest.h>

#include <csignal>

namespace pagoda::serve {
namespace {

volatile std::sig_atomic_t heard = 0;

void count_signal(int /*signal*/) { heard = heard + 1; }

TEST(HeldSignal, ComesToTheHandlerThatWasSetInBetween) {
  heard = 0;
  struct sigaction before = {};
  sigaction(SIGHUP, nullptr, &before);
  {
    HeldSignal hangup(SIGHUP);
    raise(SIGHUP);  // unless it is held, this process ends here
    struct sigaction counts = {};
    counts.sa_handler = count_signal;
    sigaction(SIGHUP, &counts, nullptr);
    EXPECT_EQ(heard, 0);
    hangup.release();
    EXPECT_EQ(heard, 1);
    hangup.release();
    raise(SIGHUP);
    EXPECT_EQ(heard, 2);
  }
  sigaction(SIGHUP, &before, nullptr);
}

TEST(HeldSignal, EndsWithItsScope) {
  struct sigaction before = {};
  struct sigaction counts = {};
  counts.sa_handler = count_signal;
  sigaction(SIGHUP, &counts, &before);
  heard = 0;
  {
    const HeldSignal hangup(SIGHUP);
    raise(SIGHUP);
    EXPECT_EQ(heard, 0);
  }
  EXPECT_EQ(heard, 1);
  sigaction(SIGHUP, &before, nullptr);
}

}  // namespace
}  // namespace pagoda::serve
