// Requests whose pages another server was asked to wait for, and those beside them to whom nobody
// promised anything.
#include <gtest/gtest.h>

#include "engine/tiers/toy_fixture.h"

namespace pagoda::engine {
namespace {

constexpr std::int64_t kWaitNs = 60'000'000'000;

class ExpectedPages : public testing::Test {
 protected:
  ExpectedPages() { fixture_.store.expects_ns = kWaitNs; }
  ~ExpectedPages() override { fixture_.store.end_finds(); }

  // Its lookup is open until the test ends it.
  std::shared_ptr<TestSink> submit_expecting(Request request) {
    request.origin = kv::PageOrigin{.host = "there", .port = 1, .is_computing = true};
    fixture_.store.holds_finds = true;
    const auto heard = fixture_.submit(request);
    fixture_.run(3);
    fixture_.store.holds_finds = false;
    return heard;
  }

  ToyFixture fixture_;
};

TEST_F(ExpectedPages, HoldUpNobodyElseWhoBeginsAlike) {
  Request longer = toy_request(18);
  longer.prompt.push_back(TokenId(7));
  const auto expecting = submit_expecting(toy_request(18));
  const auto alike = fixture_.submit(longer);
  const auto same = fixture_.submit(toy_request(18));
  fixture_.run(50);
  EXPECT_FALSE(expecting->ended());
  ASSERT_TRUE(alike->ended());
  ASSERT_TRUE(same->ended());
  EXPECT_EQ(alike->answers[0].tokens, fixture_.alone(longer));
  EXPECT_EQ(same->answers[0].tokens, fixture_.alone(toy_request(18)));
  fixture_.store.end_finds();
  fixture_.run();
  ASSERT_TRUE(expecting->ended());
  EXPECT_EQ(expecting->answers[0].tokens, fixture_.alone(toy_request(18)));
}

// A step looks at 64 waiting requests and no more; these are none of them.
TEST_F(ExpectedPages, HoldUpNobodyHoweverManyTheyAre) {
  std::vector<std::shared_ptr<TestSink>> expecting;
  for (std::uint32_t i = 0; i < 130; ++i) {
    Request request = toy_request(10);
    request.prompt[0] = TokenId(1 + i % 49);
    request.prompt[1] = TokenId(1 + i / 49);
    expecting.push_back(submit_expecting(request));
  }
  Request other = toy_request(18);
  other.prompt[1] = TokenId(40);
  const auto heard = fixture_.submit(other);
  fixture_.run(50);
  ASSERT_TRUE(heard->ended());
  EXPECT_EQ(heard->answers[0].tokens, fixture_.alone(other));
  fixture_.store.end_finds();
  fixture_.run(2000);
  for (const auto& each : expecting) EXPECT_TRUE(each->ended());
}

}  // namespace
}  // namespace pagoda::engine
