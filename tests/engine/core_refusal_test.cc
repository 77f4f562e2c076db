// Some requests end without output: by a full queue, an overdrawn minute, tokens that are not
// finite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "engine/core.h"

namespace pagoda::engine {
namespace {

// MoodyRunner samples token 1, or says that tokens are not finite.
class MoodyRunner final : public Runner {
 public:
  void launch(const Launch& launch) override {
    const Result<SampledToken> good(SampledToken{TokenId(1), {}});
    const Result<SampledToken> bad(Error{ErrorCode::kCorrupt, "logit 7 is not finite"});
    samples_.assign(launch.samples.size(), rows_are_bad ? bad : good);
    nonfinite_.assign(launch.rows.size(), ++launches_ == nonfinite_launch ? 1 : 0);
  }
  Collected collect() override { return {samples_, {}, nullptr, nonfinite_}; }

  bool rows_are_bad = false;
  int nonfinite_launch = 0;  // counted from 1: its tokens are not finite

 private:
  std::vector<Result<SampledToken>> samples_;
  std::vector<std::uint8_t> nonfinite_;
  int launches_ = 0;
};

class Listener final : public ReplySink {
 public:
  void on_token(std::uint32_t, const OutputToken&) override {}
  void on_finish(std::uint32_t, FinishReason why, const SequenceRecord& what,
                 const std::string& text) override {
    reason = why;
    record = what;
    message = text;
  }

  std::optional<FinishReason> reason;
  SequenceRecord record;
  std::string message;
};

class CoreRefusal : public testing::Test {
 protected:
  explicit CoreRefusal(std::uint32_t rows_max = 512, std::uint32_t queue = 2) {
    CoreOptions options;
    options.limits = {.vocabulary = 1000, .context_tokens = 200, .sequences_max = 4};
    options.space = "moody";
    options.requests_queued_max = queue;
    options.scheduler.sequences_max = 4;
    options.scheduler.batched_tokens_max = rows_max;
    core_.emplace(options, cache_, tenants_, runner_, clock_);
  }
  std::shared_ptr<Listener> submit(TenantId tenant = TenantId(0)) {
    Request request;
    for (std::uint32_t i = 0; i < 40; ++i) request.prompt.push_back(TokenId(i));
    request.end.max_tokens = 20;
    request.tenant = tenant;
    const auto listener = std::make_shared<Listener>();
    core_->submit(RequestId(next_id_++), request, listener);
    return listener;
  }
  void run() {
    while (core_->step()) core_->check();
  }

  kv::Cache cache_{{.blocks = 100}};
  sched::TenantTable tenants_;
  MoodyRunner runner_;
  ManualClock clock_;
  std::optional<Core> core_;
  std::uint64_t next_id_ = 1;
};

TEST_F(CoreRefusal, TokensThatAreNotFiniteEndTheRequestAndAreNotPublished) {
  runner_.rows_are_bad = true;
  const auto nonfinite = submit();
  run();
  EXPECT_EQ(nonfinite->reason, FinishReason::kError);
  EXPECT_EQ(nonfinite->message, "logit 7 is not finite");
  runner_.rows_are_bad = false;
  const auto next = submit();
  run();
  EXPECT_EQ(next->reason, FinishReason::kLength);
  EXPECT_EQ(next->record.prompt_tokens_cached, 0u);
}

// The prompt takes three launches.
class ChunkedCoreRefusal : public CoreRefusal {
 protected:
  ChunkedCoreRefusal() : CoreRefusal(16) {}
};

TEST_F(ChunkedCoreRefusal, PromptTokensThatAreNotFiniteEndTheRequestBeforeTheyArePublished) {
  runner_.nonfinite_launch = 2;
  const auto nonfinite = submit();
  run();
  EXPECT_EQ(nonfinite->reason, FinishReason::kError);
  EXPECT_NE(nonfinite->message.find("positions 16 to 31 is not finite"), std::string::npos)
      << nonfinite->message;
  const auto next = submit();
  run();
  EXPECT_EQ(next->reason, FinishReason::kLength);
  EXPECT_EQ(next->record.prompt_tokens_cached, 16u);
}

TEST_F(CoreRefusal, AFullQueueRefusesUntilSomebodyLeft) {
  submit();
  submit();
  const auto refused = submit();
  EXPECT_EQ(refused->reason, FinishReason::kRefused);
  EXPECT_NE(refused->message.find("the limit is 2"), std::string::npos) << refused->message;
  run();
  const auto later = submit();
  run();
  EXPECT_EQ(later->reason, FinishReason::kLength);
}

class CoreWithAQueueOfOne : public CoreRefusal {
 protected:
  CoreWithAQueueOfOne() : CoreRefusal(512, 1) {}
};

TEST_F(CoreWithAQueueOfOne, SaysThatOneRequestIsWaiting) {
  submit();
  EXPECT_EQ(submit()->message, "1 request is waiting, the limit is 1");
}

class CoreWithALongQueue : public CoreRefusal {
 protected:
  CoreWithALongQueue() : CoreRefusal(512, 12) {}
};

TEST_F(CoreWithALongQueue, OneTenantLeavesPlacesToTheOthers) {
  const TenantId anna = tenants_.add("anna", {});
  const TenantId bert = tenants_.add("bert", {});
  const auto taken = [&](TenantId tenant) {
    int count = 0;
    while (submit(tenant)->reason != FinishReason::kRefused) ++count;
    return count;
  };
  EXPECT_EQ(taken(anna), 7);  // the seventh came when six waited and six places were left
  EXPECT_EQ(taken(bert), 3);
  const auto third = submit();
  EXPECT_NE(third->reason, FinishReason::kRefused);
  EXPECT_THAT(submit(anna)->message,
              testing::HasSubstr("tenant anna has 7 requests waiting; places left for all: 1"));
}

TEST_F(CoreRefusal, ALimitThatWasLoweredAfterTheDoorRefusesByName) {
  const TenantId tenant = tenants_.add("acme", {.kv_tokens = 100});
  tenants_.change(tenant, {.kv_tokens = 40});
  const auto refused = submit(tenant);
  EXPECT_EQ(refused->reason, FinishReason::kRefused);
  EXPECT_NE(refused->message.find("the context of tenant acme holds 40"), std::string::npos)
      << refused->message;
  EXPECT_EQ(submit()->reason, std::nullopt);
  run();
}

TEST_F(CoreRefusal, PromptsAndOutputsCountAgainstATenantsMinute) {
  const TenantId tenant = tenants_.add("acme", {.tokens_per_minute = 99});
  EXPECT_EQ(submit(tenant)->reason, std::nullopt);  // 40 + 20 of 99: one more does not fit
  run();
  EXPECT_EQ(submit(tenant)->reason, FinishReason::kRefused);
  clock_.advance_ns(1'000'000'000);  // brings back 99 / 60 tokens
  EXPECT_EQ(submit(tenant)->reason, std::nullopt);
}

TEST(ContextOf, ATenantsDefaultIsAboveTheServersAndBelowTheRequests) {
  struct Row {
    std::uint64_t server;
    TenantLimits tenant;
    StopParams end;
    std::uint64_t tokens;  // prompt (20) and output
  };
  const std::vector<Row> rows = {
      {0, {}, {}, 200},
      {50, {}, {}, 70},
      {500, {}, {}, 200},
      {50, {.output_tokens_default = 80}, {}, 100},
      {50, {.output_tokens_default = 8}, {}, 28},
      {0, {.output_tokens_default = 8}, {}, 28},
      {50, {.output_tokens = 30}, {}, 50},
      {50, {.output_tokens = 30, .output_tokens_default = 80}, {}, 50},
      {50, {.context_tokens = 40}, {}, 40},
      {50, {}, {.max_tokens = 90}, 110},
      {50, {.output_tokens_default = 8}, {.max_tokens = 90}, 110},
      {50, {}, {.min_tokens = 60}, 80},
      {50, {.output_tokens = 30}, {.min_tokens = 60}, 50},
  };
  for (const Row& row : rows) {
    const RequestLimits limits = {.vocabulary = 1000,
                                  .context_tokens = 200,
                                  .sequences_max = 4,
                                  .output_tokens_default = row.server};
    Request request;
    request.prompt.assign(20, TokenId(1));
    request.end = row.end;
    EXPECT_EQ(context_of(request, limits, row.tenant), row.tokens) << &row - rows.data();
  }
}

TEST(CheckRequest, APromptThatNoMinuteOfItsTenantHoldsIsAnErrorOfTheRequest) {
  const RequestLimits limits = {.vocabulary = 1000, .context_tokens = 200, .sequences_max = 4};
  Request request;
  request.prompt.assign(20, TokenId(1));
  EXPECT_TRUE(check_request(request, limits, {.tokens_per_minute = 20}).ok());
  const Status refused = check_request(request, limits, {.tokens_per_minute = 19});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfRange);
  EXPECT_NE(refused.error().message.find("19 tokens per minute"), std::string::npos)
      << refused.error().message;
  request.explain_only = true;
  EXPECT_TRUE(check_request(request, limits, {.tokens_per_minute = 19}).ok()) << "computes nothing";
}

TEST(CheckPolicy, SelectingPagesWantsADeviceThatObservesAttention) {
  RequestLimits limits = {.vocabulary = 1000, .context_tokens = 200, .sequences_max = 4};
  for (const bool observes : {true, false}) {
    limits.selections_refused = observes ? "" : "no eyes";
    for (const char* const name : {"full", "window:64", "streaming:4+64"}) {
      EXPECT_TRUE(check_policy(kv::KvPolicy::parse(name).value(), limits).ok()) << name;
    }
    for (const char* const name : {"h2o:64+8", "snapkv:64+8"}) {
      const Status checked = check_policy(kv::KvPolicy::parse(name).value(), limits);
      EXPECT_EQ(checked.ok(), observes) << name;
      if (!checked.ok()) {
        EXPECT_THAT(checked.error().message, testing::HasSubstr("no eyes"));
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::engine
