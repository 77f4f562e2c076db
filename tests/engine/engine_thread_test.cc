// Tests the engine's own thread: submissions from many threads, an orderly end, and sleep when
// idle.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/engine.h"
#include "engine/null_runner.h"

namespace pagoda::engine {
namespace {

class Waiter final : public ReplySink {
 public:
  void on_token(std::uint32_t, const OutputToken&) override { ++tokens_; }
  void on_finish(std::uint32_t, FinishReason reason, const SequenceRecord&,
                 const std::string&) override {
    const std::lock_guard lock(mutex_);
    reason_ = reason;
    ended_.notify_all();
  }
  FinishReason wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return reason_.has_value(); });
    return *reason_;
  }
  std::optional<FinishReason> reason() {
    const std::lock_guard lock(mutex_);
    return reason_;
  }
  int tokens() const { return tokens_; }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::optional<FinishReason> reason_;
  int tokens_ = 0;
};

// SlowReader takes no more than so many tokens until it is told to.
class SlowReader final : public ReplySink {
 public:
  explicit SlowReader(std::uint64_t most) : most_(most) {}

  bool wants_more() const override { return tokens_ < most_; }
  void on_token(std::uint32_t, const OutputToken&) override { ++tokens_; }
  void on_finish(std::uint32_t, FinishReason, const SequenceRecord&, const std::string&) override {
    ended_ = true;
  }
  void read_all() { most_ = UINT64_MAX; }
  std::uint64_t tokens() const { return tokens_; }
  bool ended() const { return ended_; }

 private:
  std::atomic<std::uint64_t> most_;
  std::atomic<std::uint64_t> tokens_{0};
  std::atomic<bool> ended_{false};
};

class EngineThread : public testing::Test {
 protected:
  EngineThread() {
    options_.core.limits = {.vocabulary = 100, .context_tokens = 1000, .sequences_max = 16};
    options_.core.scheduler.sequences_max = 16;
    options_.core.scheduler.batched_tokens_max = 64;
    options_.core.space = "null";
  }
  static Request request(std::uint32_t tokens) {
    Request request;
    request.prompt = {TokenId(1), TokenId(2)};
    request.end.max_tokens = tokens;
    return request;
  }

  EngineOptions options_;
  kv::Cache cache_{{.blocks = 4096}};
  NullRunner runner_;
  SteadyClock clock_;
};

TEST_F(EngineThread, ServesManyThreadsAtOnce) {
  Engine engine(options_, cache_, runner_, clock_);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const auto waiter = std::make_shared<Waiter>();
        ASSERT_TRUE(engine.submit(request(5), waiter).ok());
        EXPECT_EQ(waiter->wait(), FinishReason::kLength);
        EXPECT_EQ(waiter->tokens(), 5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(engine.drain(std::chrono::seconds(10)));
  EXPECT_EQ(engine.snapshot().requests_finished, 200u);
  EXPECT_EQ(engine.snapshot().output_tokens, 1000u);
}

// RoundSink notes in which round of the engine it was answered.
class RoundSink final : public ReplySink {
 public:
  RoundSink(std::atomic<std::uint64_t>& round, std::vector<std::uint64_t>& answered)
      : round_(round), answered_(answered) {}
  void on_token(std::uint32_t, const OutputToken&) override {}
  void on_finish(std::uint32_t, FinishReason, const SequenceRecord&, const std::string&) override {
    answered_.push_back(round_);
  }

 private:
  std::atomic<std::uint64_t>& round_;
  std::vector<std::uint64_t>& answered_;
};

// A body may ask about many prompts, and everybody's step waits for the answers.
TEST_F(EngineThread, AnswersFewQuestionsBetweenSteps) {
  std::atomic<std::uint64_t> round{0};
  std::vector<std::uint64_t> answered;  // of the engine's thread, until it is drained
  options_.after_step = [&] { ++round; };
  constexpr std::uint64_t kQuestions = 500;
  {
    Engine engine(options_, cache_, runner_, clock_);
    std::promise<void> may_go_on;
    engine.post([&](kv::Cache&) { may_go_on.get_future().wait(); });  // until all have come
    Request question = request(5);
    question.explain = question.explain_only = true;
    const auto sink = std::make_shared<RoundSink>(round, answered);
    for (std::uint64_t i = 0; i < kQuestions; ++i) ASSERT_TRUE(engine.submit(question, sink).ok());
    const auto waiter = std::make_shared<Waiter>();
    ASSERT_TRUE(engine.submit(request(5), waiter).ok());
    may_go_on.set_value();
    EXPECT_EQ(waiter->wait(), FinishReason::kLength);
    EXPECT_TRUE(engine.drain(std::chrono::seconds(10)));
  }
  ASSERT_EQ(answered.size(), kQuestions) << "none is forgotten";
  for (std::size_t i = 8; i < answered.size(); ++i) EXPECT_GT(answered[i], answered[i - 8]);
}

TEST_F(EngineThread, TenantsAreSeenFromOutside) {
  options_.tenants = {{.name = "second", .limits = {}}};
  Engine engine(options_, cache_, runner_, clock_);
  EXPECT_EQ(engine.tenant_name(TenantId(0)), "default");
  EXPECT_EQ(engine.tenant_name(TenantId(1)), "second");
  Request asked = request(5);
  asked.tenant = TenantId(1);
  const auto waiter = std::make_shared<Waiter>();
  ASSERT_TRUE(engine.submit(asked, waiter).ok());
  EXPECT_EQ(waiter->wait(), FinishReason::kLength);
  EXPECT_TRUE(engine.drain(std::chrono::seconds(10)));  // asleep, and seen to be
  const std::vector<TenantStats> tenants = engine.tenants();
  ASSERT_EQ(tenants.size(), 2u);
  EXPECT_EQ(tenants[1].name, "second");
  EXPECT_EQ(tenants[1].sequences_running, 0u);
  EXPECT_EQ(tenants[1].use.output_tokens, 5u);
  EXPECT_EQ(tenants[1].use.requests_finished, 1u);
  EXPECT_EQ(tenants[0].use.requests_finished, 0u);
}

TEST_F(EngineThread, DrainsAndThenTakesNothing) {
  Engine engine(options_, cache_, runner_, clock_);
  const auto waiter = std::make_shared<Waiter>();
  ASSERT_TRUE(engine.submit(request(900), waiter).ok());
  EXPECT_TRUE(engine.drain(std::chrono::seconds(30)));
  EXPECT_EQ(waiter->wait(), FinishReason::kLength);
  EXPECT_FALSE(engine.submit(request(1), waiter).ok());
}

TEST_F(EngineThread, DroppingItCancelsWhatRuns) {
  const auto waiter = std::make_shared<Waiter>();
  {
    Engine engine(options_, cache_, runner_, clock_);
    Request endless = request(998);
    endless.sampling.n = 16;
    for (int i = 0; i < 40; ++i)
      ASSERT_TRUE(engine.submit(endless, std::make_shared<Waiter>()).ok());
    ASSERT_TRUE(engine.submit(request(998), waiter).ok());
  }
  const std::optional<FinishReason> reason = waiter->reason();
  EXPECT_TRUE(reason == FinishReason::kCancelled || reason == FinishReason::kLength);
}

// The engine's thread is busy with an earlier message while a request arrives and the engine is
// dropped: the request gets its end all the same.
TEST_F(EngineThread, DroppingItEndsRequestsThatAreStillInTheInbox) {
  const auto waiter = std::make_shared<Waiter>();
  std::promise<void> busy;
  std::promise<void> dropping;
  std::thread release;
  {
    Engine engine(options_, cache_, runner_, clock_);
    engine.post([&](kv::Cache&) {
      busy.set_value();
      dropping.get_future().wait();
    });
    busy.get_future().wait();
    ASSERT_TRUE(engine.submit(request(998), waiter).ok());
    release = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      dropping.set_value();
    });
  }
  release.join();
  EXPECT_EQ(waiter->reason(), FinishReason::kCancelled);
}

TEST_F(EngineThread, TenantsMayComeAndChangeWhileItRuns) {
  options_.tenants = {{"anna", {.output_tokens = 3}}};
  Engine engine(options_, cache_, runner_, clock_);
  Request late = request(5);
  late.tenant = TenantId(2);
  EXPECT_FALSE(engine.submit(late, std::make_shared<Waiter>()).ok());
  engine.set_tenants({{"anna", {.output_tokens = 4}}, {"bert", {.requests_queued = 1}}});
  const auto waiter = std::make_shared<Waiter>();
  ASSERT_TRUE(engine.submit(late, waiter).ok());
  EXPECT_EQ(waiter->wait(), FinishReason::kLength);
  Request first = request(4);
  first.tenant = TenantId(1);
  EXPECT_TRUE(engine.submit(first, std::make_shared<Waiter>()).ok());
  first.end.max_tokens = 5;
  EXPECT_FALSE(engine.submit(first, std::make_shared<Waiter>()).ok());
}

struct Lowered {
  const char* name;
  TenantLimits before;
  TenantLimits after;
};

class LoweredLimit : public EngineThread, public testing::WithParamInterface<Lowered> {};

// Waiting requests were taken under the limits of their time: they run, alone, and no request
// behind them waits for ever. The test counts rounds of the engine's loop: the loop sleeps while
// nothing can be done.
TEST_P(LoweredLimit, StopsNeitherWhoWaitsNorWhoComesLater) {
  std::atomic<std::uint64_t> rounds{0};
  options_.tenants = {{"anna", GetParam().before}};
  options_.after_step = [&] { ++rounds; };
  Engine engine(options_, cache_, runner_, clock_);
  Request asked = request(10);
  asked.prompt.resize(30, TokenId(3));
  asked.tenant = TenantId(1);
  asked.sampling.n = 2;
  const auto slow = std::make_shared<SlowReader>(4);
  const auto running = engine.submit(asked, slow);
  ASSERT_TRUE(running.ok());
  while (engine.snapshot().sequences_paused < 2) std::this_thread::yield();
  const auto waits = std::make_shared<Waiter>();
  ASSERT_TRUE(engine.submit(asked, waits).ok());
  while (engine.snapshot().requests_waiting == 0) std::this_thread::yield();
  engine.set_tenants({{"anna", GetParam().after}});

  rounds = 0;
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(rounds, 100u) << "one waits for a place, the other for its reader";
  EXPECT_FALSE(waits->reason());
  engine.cancel(running.value());
  for (int i = 0; i < 2000 && !waits->reason(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(waits->reason(), FinishReason::kLength);
  EXPECT_LT(rounds, 1000u);
  Request late;
  late.prompt = {TokenId(1)};
  late.end.max_tokens = 1;
  late.tenant = TenantId(1);
  const auto later = std::make_shared<Waiter>();
  ASSERT_TRUE(engine.submit(late, later).ok());
  for (int i = 0; i < 2000 && !later->reason(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(later->reason(), FinishReason::kLength);
}

INSTANTIATE_TEST_SUITE_P(
    Limits, LoweredLimit,
    testing::Values(Lowered{"Answers", {.sequences_running = 2}, {.sequences_running = 1}},
                    Lowered{"KvTokens", {.kv_tokens = 50}, {.kv_tokens = 2}},
                    Lowered{"Both",
                            {.sequences_running = 3, .kv_tokens = 60},
                            {.sequences_running = 1, .kv_tokens = 2}}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(EngineThread, PostedWorkSeesTheCache) {
  Engine engine(options_, cache_, runner_, clock_);
  std::mutex mutex;
  std::condition_variable done;
  std::uint64_t blocks = 0;
  engine.post([&](kv::Cache& cache) {
    const std::lock_guard lock(mutex);
    blocks = cache.pool().blocks();
    done.notify_all();
  });
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return blocks != 0; });
  EXPECT_EQ(blocks, 4096u);
}

TEST_F(EngineThread, ARequestWhoseReaderStopsPausesAloneAndGoesOnWhenItReads) {
  Engine engine(options_, cache_, runner_, clock_);
  const auto slow = std::make_shared<SlowReader>(10);
  ASSERT_TRUE(engine.submit(request(100), slow).ok());
  while (engine.snapshot().sequences_paused == 0) std::this_thread::yield();
  EXPECT_EQ(slow->tokens(), 10u);
  for (int i = 0; i < 20; ++i) {
    const auto other = std::make_shared<Waiter>();
    ASSERT_TRUE(engine.submit(request(50), other).ok());
    EXPECT_EQ(other->wait(), FinishReason::kLength);
  }
  EXPECT_EQ(slow->tokens(), 10u);
  EXPECT_FALSE(engine.drain(std::chrono::milliseconds(100))) << "it has not ended";
  slow->read_all();
  engine.wake();
  while (!slow->ended()) std::this_thread::yield();
  EXPECT_EQ(slow->tokens(), 100u);
}

TEST_F(EngineThread, ReadersThatStopKeepNoSlotFromOthersAndTheirAnswersStayTheSame) {
  Engine engine(options_, cache_, runner_, clock_);
  Request asked = request(100);
  asked.sampling.n = 16;  // all slots
  const auto slow = std::make_shared<SlowReader>(64);
  ASSERT_TRUE(engine.submit(asked, slow).ok());
  while (engine.snapshot().sequences_paused < 16) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) {
    const auto other = std::make_shared<Waiter>();
    ASSERT_TRUE(engine.submit(request(50), other).ok());
    EXPECT_EQ(other->wait(), FinishReason::kLength);
  }
  EXPECT_EQ(engine.snapshot().sequences_paused, 16u);
  slow->read_all();
  engine.wake();
  EXPECT_TRUE(engine.drain(std::chrono::seconds(30)));
  EXPECT_EQ(slow->tokens(), 1600u);
}

double cpu_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

TEST_F(EngineThread, IdleCostsNoCpu) {
  Engine engine(options_, cache_, runner_, clock_);
  const auto waiter = std::make_shared<Waiter>();
  ASSERT_TRUE(engine.submit(request(5), waiter).ok());
  waiter->wait();
  engine.drain(std::chrono::seconds(10));
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(cpu_seconds() - before, 0.05);
}

TEST_F(EngineThread, AReaderThatIsWaitedForCostsNoCpuAndItsTimeRunsOut) {
  Engine engine(options_, cache_, runner_, clock_);
  const auto slow = std::make_shared<SlowReader>(10);
  Request asked = request(100);
  asked.timeout_ns = 600'000'000;
  ASSERT_TRUE(engine.submit(asked, slow).ok());
  while (engine.snapshot().sequences_paused == 0) std::this_thread::yield();
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(cpu_seconds() - before, 0.05);
  EXPECT_TRUE(engine.drain(std::chrono::seconds(10)));
  EXPECT_TRUE(slow->ended());
  EXPECT_EQ(slow->tokens(), 10u);
}

TEST_F(EngineThread, ASessionThatNobodyUsesEndsThoughNobodyAsksForAnything) {
  kv::Cache cache({.blocks = 4096, .sessions = true, .session_timeout_ns = 100'000'000});
  Engine engine(options_, cache, runner_, clock_);
  Request asked = request(40);
  asked.session = "agent";
  const auto waiter = std::make_shared<Waiter>();
  ASSERT_TRUE(engine.submit(asked, waiter).ok());
  EXPECT_EQ(waiter->wait(), FinishReason::kLength);
  const auto sessions = [&] { return engine.snapshot().sessions; };
  for (int i = 0; i < 1000 && sessions() != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(sessions(), 0u);
  EXPECT_TRUE(engine.drain(std::chrono::seconds(10)));
}

}  // namespace
}  // namespace pagoda::engine
