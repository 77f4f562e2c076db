// A tenant whose grammars make costly masks does not delay another one's tokens.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/core.h"
#include "engine/engine_fixture.h"
#include "structured/grammar.h"
#include "structured/matcher.h"

namespace pagoda::engine {
namespace {

constexpr std::uint32_t kSequences = 3;  // of the tenant with grammars

// Masks cost too much for a second one in a step, whatever the grammar.
BackendOptions backend_of_costly_masks() {
  BackendOptions options;
  options.threads = 1;
  options.kv_bytes = 8 << 20;
  options.scheduler.sequences_max = kSequences + 1;
  options.scheduler.batched_tokens_max = 64;
  options.scheduler.light_mask_work = 0;
  options.scheduler.tenant_mask_work = 1;
  return options;
}

// Every letter of the output may be the one that counts: each mask is another one, and work.
std::shared_ptr<const structured::Matcher> ambiguous_constraint(const model::Config& config) {
  std::vector<std::string> bytes;
  for (std::uint32_t i = 0; i < config.vocabulary; ++i) {
    bytes.emplace_back(1, static_cast<char>(i % 128));
  }
  const std::vector<TokenId> ends = {TokenId(0)};
  return std::make_shared<const structured::Matcher>(
      structured::grammar_from_regex("[ab]*a[ab]{200}").value(),
      structured::MaskVocabulary::build(bytes, ends, config.vocabulary));
}

class CostlyMasks : public testing::Test {
 protected:
  std::shared_ptr<TestSink> submit(sched::TenantId tenant, std::uint64_t seed, bool constrained) {
    Request request;
    request.prompt = model::random_tokens(stories().config(), 10, seed);
    request.tenant = tenant;
    request.sampling.temperature = 1;
    request.sampling.seed = seed;
    request.end.max_tokens = kTokens;
    request.end.ignore_eos = true;
    if (constrained) request.constraint = ambiguous_constraint(stories().config());
    return fixture_.submit(request);
  }
  static std::size_t tokens_of(const std::vector<std::shared_ptr<TestSink>>& sinks) {
    std::size_t tokens = 0;
    for (const auto& sink : sinks) tokens += sink->answers[0].tokens.size();
    return tokens;
  }

  static constexpr std::uint32_t kTokens = 40;
  EngineFixture fixture_{stories(), backend_of_costly_masks(), *kernels::available_sets().back()};
};

TEST_F(CostlyMasks, OfATenantTakeTurnsWhileAnotherRunsAndGiveTheSameAnswers) {
  const sched::TenantId heavy = fixture_.tenants().add("heavy", {});
  const sched::TenantId plain = fixture_.tenants().add("plain", {});
  std::vector<std::shared_ptr<TestSink>> alone;
  for (std::uint32_t i = 0; i < kSequences; ++i) alone.push_back(submit(heavy, i, true));
  std::uint32_t steps_alone = 0;
  while (fixture_.step()) ++steps_alone;
  EXPECT_LT(steps_alone, 2 * kTokens) << "a tenant alone does not take turns";

  std::vector<std::shared_ptr<TestSink>> masked;
  for (std::uint32_t i = 0; i < kSequences; ++i) masked.push_back(submit(heavy, i, true));
  const auto other = submit(plain, 99, false);
  std::size_t tokens_before = 0;
  while (other->answers[0].tokens.size() < 2) fixture_.step();
  while (!other->ended()) {
    tokens_before = tokens_of(masked);
    const std::size_t others_before = other->answers[0].tokens.size();
    fixture_.step();
    EXPECT_LE(tokens_of(masked) - tokens_before, 1U);
    EXPECT_EQ(other->answers[0].tokens.size() - others_before, 1U);
  }
  for (const auto& sink : masked) {
    EXPECT_GT(sink->answers[0].tokens.size(), kTokens / kSequences / 2) << "all get their turn";
  }
  fixture_.run();
  for (std::uint32_t i = 0; i < kSequences; ++i) {
    EXPECT_EQ(masked[i]->answers[0].tokens, alone[i]->answers[0].tokens);
    EXPECT_EQ(alone[i]->answers[0].tokens.size(), kTokens);
  }
}

}  // namespace
}  // namespace pagoda::engine
