// Looks at the cache leave room for what else the engine's thread has to do.
#include "server/cache_looks.h"

#include <gtest/gtest.h>

#include <future>
#include <new>
#include <string>

#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

class CacheLooksTest : public testing::Test {
 protected:
  // Asks for a look that writes `name` down.
  void ask(char name) {
    looks_.ask(
        fixture_.engine(),
        [this, name](kv::Cache&) -> DeferredReply::Make {
          order_ += name;
          return [] { return HttpReply{.body = "seen"}; };
        },
        [this](const DeferredReply::Make&) { ++given_; });
  }
  void post(char name) {
    fixture_.engine().post([this, name](kv::Cache&) { order_ += name; });
  }
  // Returns when the engine's thread has done everything that was asked for before, and has had a
  // round more for each of so many looks.
  void pass_rounds(int rounds) {
    for (int i = 0; i <= rounds; ++i) {
      std::promise<void> passed;
      fixture_.engine().post([&](kv::Cache&) { passed.set_value(); });
      passed.get_future().wait();
    }
  }

  StoryFixture fixture_;
  CacheLooks looks_;
  std::string order_;  // of the engine's thread, until pass_rounds() returns
  int given_ = 0;
};

TEST_F(CacheLooksTest, OneIsTakenBetweenTwoSteps) {
  std::promise<void> go_on;
  fixture_.engine().post([gate = go_on.get_future().share()](kv::Cache&) { gate.wait(); });
  for (const char name : {'a', 'b', 'c'}) ask(name);
  post('x');
  go_on.set_value();
  pass_rounds(3);
  EXPECT_EQ(order_, "axbc") << "what came in meanwhile does not wait for all looks";
  EXPECT_EQ(given_, 3);
  ask('d');
  pass_rounds(1);
  EXPECT_EQ(order_, "axbcd");
}

TEST_F(CacheLooksTest, OneWithoutMemoryIsAnErrorAndTheNextIsTaken) {
  std::promise<int> status;
  looks_.ask(
      fixture_.engine(), [](kv::Cache&) -> DeferredReply::Make { throw std::bad_alloc(); },
      [&](const DeferredReply::Make& make) { status.set_value(make().status); });
  ask('a');
  EXPECT_EQ(status.get_future().get(), 503);
  pass_rounds(2);
  EXPECT_EQ(order_, "a");
}

}  // namespace
}  // namespace pagoda::server
