// A launch arrives as it was sent; what was not sent by this program is refused.
#include "engine/backends/launch_message.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace pagoda::engine {
namespace {

constexpr LaunchLimits kLimits = {
    .rows_max = 16, .pages = 50, .groups = 2, .block_tokens = 4, .vocabulary = 100};

// Two sequences, one with drafts and a mask.
struct Sent {
  Sent() {
    for (std::uint32_t i = 0; i < 4; ++i) blocks.push_back(kv::BlockId(40 + i));
    tables = {blocks.data(), blocks.data() + 1};
    rows = {{.rows = 3, .first_position = 5, .tokens = tokens, .tables = tables},
            {.rows = 3,
             .first_position = 0,
             .tokens = std::span(tokens).first(1),
             .tables = tables,
             .policy = {.window = 9, .sinks = 2},
             .drafts = std::span(tokens).last(2)}};
    const Launch launch = {
        .copies = copies, .rows = rows, .samples = {}, .scores = {}, .hidden_rows = hidden};
    write_launch(launch, logits, kLimits.block_tokens, message);
  }

  std::vector<kv::Copy> copies = {
      {.from = kv::BlockId(1), .to = kv::BlockId(2), .tokens = 3, .group = 1}};
  std::vector<TokenId> tokens = {TokenId(7), TokenId(99), TokenId(0)};
  std::vector<kv::BlockId> blocks;
  std::vector<kv::memory::BlockTable> tables;
  std::vector<LaunchRows> rows;
  std::vector<std::uint32_t> hidden = {1};
  std::vector<std::uint32_t> logits = {2, 3, 4, 5};
  std::vector<std::byte> message;
};

TEST(LaunchMessage, ArrivesAsItWasSent) {
  const Sent sent;
  ReadLaunch read;
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(read.read(sent.message, kLimits).ok());
    ASSERT_EQ(read.copies().size(), 1u);
    EXPECT_EQ(read.copies()[0].to, kv::BlockId(2));
    const model::Batch batch = read.batch();
    ASSERT_EQ(batch.sequences.size(), 2u);
    EXPECT_EQ(batch.tokens.size(), 6u);
    EXPECT_EQ(batch.tokens[1], TokenId(99));
    EXPECT_EQ(batch.tokens[3], TokenId(7));
    EXPECT_EQ(batch.tokens[5], TokenId(0));
    EXPECT_EQ(batch.sequences[0].first_position, 5u);
    EXPECT_EQ(batch.sequences[0].tables[1][1], kv::BlockId(42));
    EXPECT_EQ(batch.sequences[1].policy, (kv::memory::AttentionSpec{.window = 9, .sinks = 2}));
    EXPECT_EQ(read.hidden_rows()[0], 1u);
    EXPECT_EQ(read.logit_rows().size(), 4u);
  }
}

TEST(LaunchMessage, IsRefusedWhenCutOffOrTooLong) {
  const Sent sent;
  ReadLaunch read;
  for (std::size_t bytes = 0; bytes < sent.message.size(); ++bytes) {
    EXPECT_FALSE(read.read(std::span(sent.message).first(bytes), kLimits).ok()) << bytes;
  }
  std::vector<std::byte> longer = sent.message;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(read.read(longer, kLimits).ok());
}

// Whatever is accepted is within the limits.
TEST(LaunchMessage, RandomBytesNeverLeadOutsideOfTheLimits) {
  const Sent sent;
  ReadLaunch read;
  for (std::uint64_t turn = 0; turn < 20'000; ++turn) {
    std::vector<std::byte> message = sent.message;
    for (std::uint64_t change = 0; change <= turn % 3; ++change) {
      message[random_bits(turn, 1, change) % message.size()] =
          std::byte(random_bits(turn, 2, change));
    }
    if (!read.read(message, kLimits).ok()) continue;
    std::size_t rows = 0;
    for (const model::SequenceRows& sequence : read.batch().sequences) {
      rows += sequence.rows;
      const std::uint64_t blocks = (sequence.first_position + sequence.rows + 3) / 4;
      for (const kv::memory::BlockTable table : sequence.tables) {
        for (std::uint64_t b = 0; b < blocks; ++b) ASSERT_LT(table[b].value(), kLimits.pages);
      }
    }
    ASSERT_EQ(rows, read.batch().tokens.size());
    for (const TokenId token : read.batch().tokens) ASSERT_LT(token.value(), kLimits.vocabulary);
    for (const std::uint32_t row : read.logit_rows()) ASSERT_LT(row, rows);
  }
}

}  // namespace
}  // namespace pagoda::engine
