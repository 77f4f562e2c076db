// When a client that was refused should come back. Seconds are worked out by hand.
#include "server/retry_after.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "server/api_error.h"
#include "server/story_server.h"
#include "server/tenants_fixture.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;

// 1,000 tokens of prompts a request were computed, at 500 a second, and 100 of outputs, at 200:
// 2.5 seconds.
engine::Snapshot measured_now(std::uint64_t requests_waiting) {
  engine::Snapshot now;
  now.requests_finished = 10;
  now.prompt_tokens = 12'000;
  now.prompt_tokens_cached = 2'000;
  now.output_tokens = 1'000;
  now.prompt_tokens_per_second = 500;
  now.output_tokens_per_second = 200;
  now.requests_waiting = requests_waiting;
  return now;
}

TEST(RetryAfter, TheQueueIsWorkedOffAtTheMeasuredRates) {
  EXPECT_EQ(queue_seconds(measured_now(0)), 3u);
  EXPECT_EQ(queue_seconds(measured_now(2)), 8u);
  EXPECT_EQ(queue_seconds(measured_now(3)), 10u);
  EXPECT_EQ(queue_seconds(measured_now(1000)), kRetrySecondsMax);
  engine::Snapshot fresh;
  fresh.requests_waiting = 1000;
  EXPECT_EQ(queue_seconds(fresh), kRetrySecondsMin) << "nothing is measured yet";
  engine::Snapshot no_rates = measured_now(3);
  no_rates.prompt_tokens_per_second = no_rates.output_tokens_per_second = 0;
  EXPECT_EQ(queue_seconds(no_rates), kRetrySecondsMin);
}

TEST(RetryAfter, AMinutesTokensComeEvenly) {
  EXPECT_EQ(refill_seconds(100, 600), 10u);
  EXPECT_EQ(refill_seconds(101, 600), 11u);
  EXPECT_EQ(refill_seconds(1, 6'000), kRetrySecondsMin);
  EXPECT_EQ(refill_seconds(601, 600), kRetrySecondsMax);
}

TEST(RetryAfter, EveryPhaseHasItsOwn) {
  ServerState state("1.2.3");
  EXPECT_EQ(retry_after_s(state, "loading"), kRetryLoadingSeconds);
  state.advance(Phase::kDraining);  // stopped before the model was there
  EXPECT_EQ(retry_after_s(state, "draining"), kRetryStoppingSeconds);
  StoryFixture ready;
  EXPECT_EQ(retry_after_s(ready.state(), "too_many_requests"), kRetrySecondsMin);
  EXPECT_EQ(retry_after_s(ready.state(), "device_lost"), kRetrySecondsMax);
}

TEST(RetryAfter, OnlyRefusalsThatPassLackTheHeader) {
  EXPECT_TRUE(lacks_retry_after(error_reply(ApiError(429, "later"))));
  EXPECT_TRUE(lacks_retry_after(error_reply(ApiError(503, "later"))));
  EXPECT_FALSE(lacks_retry_after(error_reply(ApiError(500, "never"))));
  EXPECT_FALSE(lacks_retry_after(json_reply(Json::object())));
  EXPECT_FALSE(lacks_retry_after({.status = 429, .headers = {{"Retry-After", "7"}}}));
}

TEST(RetryAfter, AServerThatLoadsSendsItsSeconds) {
  const auto loading = Server::listen(small_server(), [](int) {}).value();
  const int client = connected_to(port_of(*loading), got("/v1/models"));
  EXPECT_THAT(read_to_end(client).value_or(""), HasSubstr("Retry-After: 5\r\n"));
  close(client);
  loading->stop();
}

TEST(RetryAfter, AClientWithTooManyConnectionsIsToldToo) {
  const StoryServer server;  // two connections are as many as a client may have
  EXPECT_THAT(server.ask(got("/v1/models")).value_or(""), testing::Not(HasSubstr("Retry-After")));
  const int first = server.connected("");
  const int second = server.connected("");
  std::string refused;
  while (refused.find(" 429 ") == std::string::npos) refused = server.ask(got("/")).value_or("");
  EXPECT_THAT(refused, HasSubstr("Retry-After: 1\r\n"));
  close(first);
  close(second);
}

class RetryAfterOfTenants : public TenantsFixture {
 protected:
  RetryAfterOfTenants()
      : TenantsFixture(
            "tenant slow tokens_per_minute=60\nkey slow-key slow\n"
            "tenant free\nkey free-key free\n") {}

  HeaderList headers_for(const std::string& key, int status, std::uint64_t prompt_tokens) {
    const ServerState& state = fixture_.state();
    HttpReply reply = error_reply(ApiError(status, "later"));
    add_retry_after(state, identify("Bearer " + key, state.keys()), prompt_tokens, reply);
    return reply.headers;
  }
};

TEST_F(RetryAfterOfTenants, ALimitOfTokensPerMinuteSaysWhenItGrantsThePrompt) {
  EXPECT_EQ(headers_for("slow-key", 429, 20), (HeaderList{{"Retry-After", "20"}}));
  EXPECT_EQ(headers_for("slow-key", 503, 20), HeaderList());
  EXPECT_EQ(headers_for("free-key", 429, 20), HeaderList());
}

}  // namespace
}  // namespace pagoda::server
