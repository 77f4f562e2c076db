// Tests what a client sees of a server whose device is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/losing_runner.h"
#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

TEST(LostDevice, IsA503WithItsReasonAndTheServerIsNotHealthy) {
  std::unique_ptr<engine::LosingRunner> losing;
  StoryFixture fixture(100, true, [&](engine::Runner& runner) -> engine::Runner& {
    losing = std::make_unique<engine::LosingRunner>(runner);
    return *losing;
  });
  const Json body = {{"prompt", "Once upon a time"}, {"max_tokens", 20}};
  EXPECT_EQ(fixture.post("/v1/completions", body).status, 200);
  EXPECT_EQ(fixture.get("/health").status, 200);
  losing->lose_at(losing->launches() + 5);
  for (int i = 0; i < 3; ++i) {  // the running request, and later ones
    const HttpReply reply = fixture.post("/v1/completions", body);
    EXPECT_EQ(reply.status, 503);
    const Json error = Json::parse(reply.body)["error"];
    EXPECT_EQ(error["code"], "device_lost");
    EXPECT_EQ(error["message"], "GPU: launching a graph: it fell off the bus");
  }
  EXPECT_EQ(fixture.get("/health").status, 503);
  EXPECT_EQ(fixture.get("/ready").status, 503);
  EXPECT_EQ(fixture.get("/v1/models").status, 200);
}

TEST(LostDevice, EndsAStreamThatHasBegunWithAnError) {
  std::unique_ptr<engine::LosingRunner> losing;
  StoryFixture fixture(100, true, [&](engine::Runner& runner) -> engine::Runner& {
    losing = std::make_unique<engine::LosingRunner>(runner);
    return *losing;
  });
  losing->lose_at(6);
  const HttpReply reply = fixture.post(
      "/v1/completions", {{"prompt", "Once upon a time"}, {"max_tokens", 20}, {"stream", true}});
  EXPECT_THAT(reply.body, testing::HasSubstr("device_lost"));
}

}  // namespace
}  // namespace pagoda::server
