// A scheduler's step in, a launch out.
#include "engine/launch_assembler.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <variant>

namespace pagoda::engine {
namespace {

constexpr std::uint32_t kBlockTokens = 4;

class LaunchAssemblerTest : public testing::Test {
 protected:
  // A request whose prompt is first, first + 1, … and whose sequence has room for it.
  OpenRequest& add(std::uint32_t first, std::uint64_t prompt_tokens, std::uint32_t sequences = 1,
                   std::optional<std::uint32_t> prompt_logprobs = std::nullopt) {
    OpenRequest& request = *requests_.emplace_back(std::make_unique<OpenRequest>());
    request.asked.sampling.n = sequences;
    request.asked.sampling.prompt_logprobs = prompt_logprobs;
    std::vector<TokenId> prompt;
    for (std::uint32_t i = 0; i < prompt_tokens; ++i) prompt.push_back(TokenId(first + i));
    const SamplingState sampling(request.asked.sampling, prompt);
    for (std::uint32_t i = 0; i < sequences; ++i) {
      auto seq = std::make_unique<OpenSequence>(sampling.fork(i));
      seq->request = &request;
      seq->index = i;
      seq->prompt_tokens = prompt_tokens;
      request.sequences.push_back(std::move(seq));
    }
    OpenSequence& leader = *request.sequences.front();
    leader.tokens = prompt;
    leader.sequence_count = sequences;
    leader.scope = cache_.scope("test", "").value();
    auto opened = cache_.open(*leader.scope, {}, prompt);
    leader.sequence.emplace(std::move(std::get<kv::Opened>(opened).sequence));
    EXPECT_EQ(cache_.reserve(*leader.sequence, prompt_tokens + 1).index(), 0u);
    return request;
  }

  static sched::ScheduledChunk chunk(OpenRequest& request, std::uint64_t first,
                                     std::uint32_t tokens, bool samples = false) {
    return {.task = request.sequences.front().get(),
            .first = first,
            .tokens = tokens,
            .samples = samples};
  }

  Launch assemble(std::vector<sched::ScheduledChunk> chunks) {
    step_.chunks = std::move(chunks);
    return assembler_.assemble(step_);
  }

  kv::Cache cache_{{.blocks = 400, .block_tokens = kBlockTokens, .groups = {{}, {.window = 8}}}};
  LaunchAssembler assembler_{cache_.options().groups.size(), 1};
  std::vector<std::unique_ptr<OpenRequest>> requests_;
  sched::Step step_;
};

TEST_F(LaunchAssemblerTest, AChunkHasItsTokensItsPositionAndATableForEveryGroup) {
  OpenRequest& request = add(100, 10);
  const OpenSequence& seq = *request.sequences.front();
  const Launch launch = assemble({chunk(request, 4, 3)});
  ASSERT_EQ(launch.rows.size(), 1u);
  const LaunchRows& rows = launch.rows.front();
  EXPECT_EQ(rows.handle, &seq);
  EXPECT_EQ(rows.rows, 3u);
  EXPECT_EQ(rows.first_position, 4u);
  EXPECT_EQ(std::vector(rows.tokens.begin(), rows.tokens.end()),
            (std::vector{TokenId(104), TokenId(105), TokenId(106)}));
  ASSERT_EQ(rows.tables.size(), 2u);
  EXPECT_EQ(rows.tables[0], seq.sequence->table(0).data());
  EXPECT_EQ(rows.tables[1], seq.sequence->table(1).data());
  EXPECT_TRUE(launch.samples.empty() && launch.scores.empty());
}

TEST_F(LaunchAssemblerTest, ATokenThatIsStillBeingSampledIsLeftOut) {
  OpenRequest& request = add(100, 5);
  request.sequences.front()->samples_in_flight = 1;
  const Launch launch = assemble({chunk(request, 5, 1, true)});
  EXPECT_EQ(launch.rows.front().rows, 1u);
  EXPECT_TRUE(launch.rows.front().tokens.empty());
  EXPECT_EQ(launch.samples.front().position, 6u);
}

TEST_F(LaunchAssemblerTest, TablesStayWhereTheyAreHoweverManyChunksThereAre) {
  std::vector<sched::ScheduledChunk> chunks;
  for (std::uint32_t i = 0; i < 40; ++i) chunks.push_back(chunk(add(1000 * i, 4), 0, 4));
  const Launch launch = assemble(std::move(chunks));
  ASSERT_EQ(launch.rows.size(), 40u);
  for (std::size_t i = 0; i < launch.rows.size(); ++i) {
    const kv::Sequence& sequence = *requests_[i]->sequences.front()->sequence;
    EXPECT_EQ(launch.rows[i].tables[0], sequence.table(0).data()) << i;
    EXPECT_EQ(launch.rows[i].tables[1], sequence.table(1).data()) << i;
  }
  EXPECT_EQ(assembler_.tokens(), 160u);
}

TEST_F(LaunchAssemblerTest, SequencesThatForkSampleByOneRow) {
  OpenRequest& before = add(100, 7);
  OpenRequest& forks = add(200, 6, 3);
  const Launch launch = assemble({chunk(before, 0, 7, true), chunk(forks, 2, 4, true)});
  ASSERT_EQ(launch.samples.size(), 4u);
  EXPECT_EQ(launch.samples[0].row, 6u);
  EXPECT_EQ(launch.samples[0].position, 7u);
  for (std::size_t i = 0; i < 3; ++i) {
    OpenSequence& seq = *forks.sequences[i];
    const LaunchSample& sample = launch.samples[1 + i];
    EXPECT_EQ(sample.handle, &seq);
    EXPECT_EQ(sample.sampling, &seq.sampling);
    EXPECT_EQ(sample.row, 10u);
    EXPECT_EQ(sample.position, 6u);
  }
}

TEST_F(LaunchAssemblerTest, EveryPromptTokenButTheFirstIsScoredOnceByTheRowBeforeIt) {
  OpenRequest& before = add(100, 2);
  OpenRequest& scored = add(200, 6, 1, 5);
  Launch launch = assemble({chunk(before, 0, 2, true), chunk(scored, 0, 4)});
  ASSERT_EQ(launch.scores.size(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(launch.scores[i].row, 2 + i);
    EXPECT_EQ(launch.scores[i].token, TokenId(201 + i));
    EXPECT_EQ(launch.scores[i].top, 5u);
  }
  launch = assemble({chunk(scored, 0, 4)});
  EXPECT_TRUE(launch.scores.empty()) << "computed again after a preemption";
  launch = assemble({chunk(scored, 4, 2, true)});
  ASSERT_EQ(launch.scores.size(), 1u) << "what follows the prompt is sampled";
  EXPECT_EQ(launch.scores.front().row, 0u);
  EXPECT_EQ(launch.scores.front().token, TokenId(205));
}

TEST_F(LaunchAssemblerTest, AStepLeavesNothingToTheNext) {
  OpenRequest& request = add(100, 6, 1, 0);
  assemble({chunk(request, 0, 6, true)});
  step_.copies = {{}};
  const Launch launch = assemble({});
  EXPECT_TRUE(launch.rows.empty() && launch.samples.empty() && launch.scores.empty());
  EXPECT_EQ(launch.copies.size(), 1u);
  EXPECT_EQ(assembler_.tokens(), 0u);
}

}  // namespace
}  // namespace pagoda::engine
