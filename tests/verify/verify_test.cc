// pagoda verify: all ways agree on a real model; where one does not, it is named and the exit
// status is 1.
#include "verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/bench_command.h"
#include "cli/captured_command.h"
#include "store/remote/server_process.h"

namespace pagoda::verify {
namespace {

using testing::HasSubstr;

cli::Captured verify_captured(const VerifyOptions& options) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int exit_status = verify(options);
  std::fflush(stdout);
  std::string out = testing::internal::GetCapturedStdout();
  return {exit_status, std::move(out), testing::internal::GetCapturedStderr()};
}

VerifyOptions story_options() {
  VerifyOptions options;
  options.model = bench::story_model();
  options.device.kind = app::DeviceKind::kCpu;
  options.folder = testing::TempDir();
  return options;
}

// What computes, but for the log-probability of one token, which is wrong by its last bit, or for
// one token.
class WrongRunner final : public engine::Runner {
 public:
  WrongRunner(engine::Runner& runner, bool wrong_token)
      : runner_(runner), wrong_token_(wrong_token) {}

  std::uint32_t launches_ahead() const override { return runner_.launches_ahead(); }
  std::uint32_t drafts_max() const override { return runner_.drafts_max(); }
  void launch(const engine::Launch& launch) override { runner_.launch(launch); }
  engine::Collected collect() override {
    const engine::Collected collected = runner_.collect();
    for (Result<engine::SampledToken>& sample : collected.samples) {
      if (!sample.ok() || !sample.value().score) continue;  // behind a wrong draft token
      if (++samples_ != kWrongSample) continue;
      engine::SampledToken& choice = sample.value();
      if (wrong_token_) choice.token = TokenId(choice.token.value() ^ 1U);
      float& logprob = choice.score->chosen.logprob;
      logprob = std::nextafter(logprob, 0.0f);
    }
    return collected;
  }

 private:
  static constexpr int kWrongSample = 40;

  engine::Runner& runner_;
  bool wrong_token_;
  int samples_ = 0;
};

class WrongBackend final : public engine::Backend {
 public:
  WrongBackend(std::unique_ptr<engine::Backend> backend, bool wrong_token)
      : backend_(std::move(backend)), runner_(backend_->runner(), wrong_token) {}

  const engine::CoreOptions& core_options() const override { return backend_->core_options(); }
  kv::Cache& cache() override { return backend_->cache(); }
  engine::Runner& runner() override { return runner_; }
  const kv::memory::PageLayout& page_layout() const override { return backend_->page_layout(); }
  std::span<const kv::memory::AttentionSpec> groups() const override { return backend_->groups(); }
  std::size_t threads() const override { return backend_->threads(); }
  std::string device_name() const override { return backend_->device_name(); }
  std::uint64_t kv_bytes() const override { return backend_->kv_bytes(); }
  std::uint64_t kv_tokens() const override { return backend_->kv_tokens(); }
  std::uint64_t sequences_at(std::uint64_t tokens) const override {
    return backend_->sequences_at(tokens);
  }
  std::optional<std::uint64_t> context_asked() const override { return backend_->context_asked(); }
  std::string rows_id() const override { return backend_->rows_id(); }
  std::string numerics_id() const override { return backend_->numerics_id(); }
  void use_tiers(const engine::TierOptions& tiers) override { backend_->use_tiers(tiers); }
  Result<std::unique_ptr<kv::PageCopier>> create_page_copier() override {
    return backend_->create_page_copier();
  }

 private:
  std::unique_ptr<engine::Backend> backend_;
  WrongRunner runner_;
};

const std::vector<std::string> kWays = {
    "cold",      "warm",      "batched",  "chunked",   "preempted", "forked",    "drafted",
    "host tier", "disk tier", "1 thread", "2 threads", "3 threads", "5 threads", "8 threads"};

TEST(Verify, AllWaysGiveOneDigestUnderAPolicyToo) {
  VerifyOptions options = story_options();
  options.kv_policy = {.window = 24, .sinks = 4};
  options.json = true;
  const cli::Captured captured = verify_captured(options);
  EXPECT_EQ(captured.exit_status, 0) << captured.err << captured.out;
  const auto json = nlohmann::json::parse(captured.out, nullptr, false);
  EXPECT_EQ(json["equal"], true);
  EXPECT_EQ(json["tokens"], 5 * 24);
}

TEST(Verify, AllWaysOfThisMachineGiveOneDigest) {
  VerifyOptions options = story_options();
  options.json = true;
  const cli::Captured captured = verify_captured(options);
  EXPECT_EQ(captured.exit_status, 0) << captured.err;
  const auto json = nlohmann::json::parse(captured.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << captured.out;
  EXPECT_EQ(json["equal"], true);
  EXPECT_TRUE(json["difference"].is_null());
  EXPECT_EQ(json["tokens"], 5 * 24);
  std::vector<std::string> shown;
  for (const auto& way : json["ways"]) {
    if (way["shown"] == false) {
      EXPECT_EQ(way["way"], "remote tier") << way["note"];
      EXPECT_THAT(way["note"].get<std::string>(), HasSubstr("no remote store"));
      continue;
    }
    shown.push_back(way["way"]);
    EXPECT_EQ(way["digest"], json["ways"][0]["digest"]) << way["way"];
  }
  EXPECT_EQ(shown, kWays);
}

void expect_equal_through(const std::string& url) {
  VerifyOptions options = story_options();
  options.json = true;
  options.remote = url;
  const cli::Captured captured = verify_captured(options);
  EXPECT_EQ(captured.exit_status, 0) << captured.err;
  const auto json = nlohmann::json::parse(captured.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << captured.out;
  for (const auto& way : json["ways"]) EXPECT_EQ(way["shown"], true) << way.dump();
}

TEST(Verify, ARedisServerIsAWay) {
  REQUIRE_SERVER(store::ServerProcess::has_redis(), "redis-server");
  const store::ServerProcess server = store::ServerProcess::redis();
  expect_equal_through("redis://" + server.host_and_port());
}

TEST(Verify, AMemcachedIsAWay) {
  REQUIRE_SERVER(store::ServerProcess::has_memcached(), "memcached");
  const store::ServerProcess server = store::ServerProcess::memcached();
  expect_equal_through("memcached://" + server.host_and_port());
}

TEST(Verify, ARemoteStoreThatIsNamedAndDoesNotAnswerIsAnError) {
  VerifyOptions options = story_options();
  options.remote = "redis://127.0.0.1:" + std::to_string(store::free_port());
  const cli::Captured captured = verify_captured(options);
  EXPECT_EQ(captured.exit_status, 1);
  EXPECT_THAT(captured.err, HasSubstr("error: remote tier: " + options.remote));
}

TEST(Verify, TheTableNamesWhatIsNotHere) {
  const cli::Captured captured =
      cli::run_captured({"verify", bench::story_model(), "--device", "cpu", "-n", "2", "--folder",
                         testing::TempDir()});
  EXPECT_EQ(captured.exit_status, 0) << captured.err;
  EXPECT_THAT(captured.out, HasSubstr("remote tier  not here: no remote store was given"));
  // Two tokens fit wherever the prompt does.
  EXPECT_THAT(captured.out, HasSubstr("ways, the same 10 tokens and log-probabilities"));
}

struct Sabotage {
  std::string way;
  bool wrong_token;
};

TEST(Verify, AWayThatDiffersInTheLastBitIsNamedAndFails) {
  const Sabotage table[] = {{"warm", false},     {"batched", true},    {"chunked", false},
                            {"preempted", true}, {"forked", false},    {"drafted", false},
                            {"host tier", true}, {"disk tier", false}, {"8 threads", false}};
  for (const Sabotage& row : table) {
    VerifyOptions options = story_options();
    options.json = true;
    options.replace_backend = [&](std::string_view way, std::unique_ptr<engine::Backend> backend) {
      if (way != row.way) return backend;
      return std::unique_ptr<engine::Backend>(
          std::make_unique<WrongBackend>(std::move(backend), row.wrong_token));
    };
    const cli::Captured captured = verify_captured(options);
    EXPECT_EQ(captured.exit_status, 1) << row.way;
    EXPECT_THAT(captured.err, HasSubstr("error: " + row.way + " differs from cold in prompt"));
    EXPECT_THAT(captured.err, HasSubstr(" at position "));
    EXPECT_THAT(captured.err, HasSubstr(": token "));
    const auto json = nlohmann::json::parse(captured.out, nullptr, false);
    ASSERT_TRUE(json.is_object()) << captured.out;
    EXPECT_EQ(json["equal"], false);
    EXPECT_EQ(json["difference"]["way"], row.way);
    EXPECT_EQ(json["ways"].back()["way"], row.way) << "nothing is tried after it";
    EXPECT_NE(json["ways"].back()["digest"], json["ways"][0]["digest"]);
  }
}

TEST(Verify, QuestionsBeyondTheContextAreRefusedWithBothNumbers) {
  const cli::Captured captured =
      cli::run_captured({"verify", bench::story_model(), "--prompt-tokens", "600"});
  EXPECT_EQ(captured.exit_status, 2);
  EXPECT_THAT(captured.err, HasSubstr("make 624 tokens, but the context holds 512"));
}

TEST(Verify, ExplainsItselfWithExamples) {
  const cli::Captured help = cli::run_captured({"verify", "--help"});
  EXPECT_EQ(help.exit_status, 0);
  EXPECT_THAT(help.out, HasSubstr("Examples:\n  pagoda verify"));
  EXPECT_THAT(help.out,
              HasSubstr("Every flag has an environment variable: --model is PAGODA_MODEL."));
}

TEST(Verify, AModelThatIsNotThereIsAnError) {
  const cli::Captured captured = cli::run_captured({"verify", "/nowhere.gguf"});
  EXPECT_EQ(captured.exit_status, 1);
  EXPECT_THAT(captured.err, HasSubstr("/nowhere.gguf"));
}

}  // namespace
}  // namespace pagoda::verify
