// The cache names whole blocks as hash_chain() does, the salt entering the first private block.
#include <gtest/gtest.h>

#include "kv/cache_fixture.h"
#include "kv/hash/block_hash.h"

namespace pagoda::kv {
namespace {

CacheOptions naming(std::uint32_t blocks) {
  CacheOptions options = CacheFixture::small(blocks);
  options.hash_blocks = true;
  return options;
}

std::vector<BlockHash> hashes_of(CacheFixture& fixture, const CacheScope& scope,
                                 const Tokens& prompt) {
  std::vector<BlockHash> names;
  for (const NodeId node : fixture.cache().match(scope, prompt).nodes) {
    names.push_back(fixture.cache().hashes().of(node));
  }
  return names;
}

// Block by block, with the salt at the block it is said to enter.
std::vector<BlockHash> chain(const Tokens& tokens, std::string_view adapter, std::string_view salt,
                             std::size_t salt_block) {
  BlockHasher hasher;
  std::vector<BlockHash> names;
  for (std::size_t block = 0; (block + 1) * 4 <= tokens.size(); ++block) {
    const BlockHash parent = block == 0 ? root_hash() : names.back();
    names.push_back(
        hasher
            .hash(parent, std::span(tokens).subspan(block * 4, 4),
                  {.adapter = adapter, .salt = block == salt_block ? salt : std::string_view()})
            .value());
  }
  return names;
}

TEST(BlockHashes, AreThoseOfTheChainForPromptsAndForGeneratedBlocks) {
  CacheFixture fixture(naming(16));
  Sequence sequence = fixture.run(counting(1, 6));
  for (std::uint32_t token = 7; token <= 13; ++token) fixture.feed(sequence, tokens_of({token}));
  EXPECT_EQ(hashes_of(fixture, fixture.everyone(), counting(1, 13)),
            chain(counting(1, 12), "", "", 0));
}

TEST(BlockHashes, HaveTheAdapterInEveryBlock) {
  CacheFixture fixture(naming(16));
  const CacheScope scope = fixture.scope("model", "", "translate");
  fixture.serve(scope, counting(1, 9));
  EXPECT_EQ(hashes_of(fixture, scope, counting(1, 9)), chain(counting(1, 8), "translate", "", 0));
}

TEST(BlockHashes, HaveTheSaltInTheFirstPrivateBlock) {
  for (const std::uint64_t public_tokens : {0, 4, 7, 8, 100}) {
    CacheFixture fixture(naming(16));
    const CacheScope scope = fixture.tenant("secret", public_tokens);
    fixture.serve(scope, counting(1, 13));
    EXPECT_EQ(hashes_of(fixture, scope, counting(1, 13)),
              chain(counting(1, 12), "", "secret", public_tokens / 4));
  }
}

TEST(BlockHashes, ThatTheCallerComputedAreTheSame) {
  for (const std::uint64_t public_tokens : {0, 4, 100}) {
    const Tokens prompt = counting(1, 13);
    BlockHasher hasher;
    std::vector<BlockHash> computed;
    ASSERT_TRUE(
        hash_prompt(hasher, "translate", "secret", public_tokens, prompt, 4, computed).ok());
    EXPECT_EQ(computed, chain(prompt, "translate", "secret", public_tokens / 4));

    CacheFixture fixture(naming(16));
    CacheScope scope = fixture.scope("model", "secret", "translate");
    scope.public_tokens = public_tokens;
    auto outcome = fixture.cache().open(scope, {}, prompt, computed);
    Sequence& sequence = std::get<Opened>(outcome).sequence;
    ASSERT_TRUE(fixture.feed(sequence, prompt));
    EXPECT_EQ(hashes_of(fixture, scope, prompt), computed);
  }
}

TEST(BlockHashes, OfAPromptReplaceWhatTheListHeld) {
  BlockHasher hasher;
  std::vector<BlockHash> names = chain(counting(900, 4), "", "", 0);
  ASSERT_TRUE(hash_prompt(hasher, "", "secret", 0, counting(1, 9), 4, names).ok());
  EXPECT_EQ(names, chain(counting(1, 8), "", "secret", 0));
  const Status refused =
      hash_prompt(hasher, "", std::string(513, 's'), 8, counting(1, 9), 4, names);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "bytes of a cache salt: 513, more than the 512 a block's hash can cover");
  EXPECT_TRUE(names.empty());
}

TEST(BlockHashes, OfAForkAreThoseOfWhatItGoesOnWith) {
  const Tokens prompt = counting(1, 9);
  CacheFixture fixture(naming(16));
  BlockHasher hasher;
  std::vector<BlockHash> computed;
  ASSERT_TRUE(hash_prompt(hasher, "", "", 0, prompt, 4, computed).ok());
  auto outcome = fixture.cache().open(fixture.everyone(), {}, prompt, computed);
  Sequence& sequence = std::get<Opened>(outcome).sequence;
  ASSERT_TRUE(fixture.feed(sequence, counting(1, 4)));
  Sequence forked = fixture.cache().fork(sequence);
  ASSERT_TRUE(fixture.feed(forked, counting(70, 4)));
  const Tokens other = counting(1, 4) + counting(70, 5);
  EXPECT_EQ(hashes_of(fixture, fixture.everyone(), other), chain(other, "", "", 0));
}

// The caller had another split in mind than the blocks that the request goes on from.
TEST(BlockHashes, AreThoseOfTheChainThatIsThereWhateverTheCallerComputed) {
  const Tokens prompt = counting(1, 13);
  CacheFixture fixture(naming(16));
  fixture.serve(fixture.tenant("secret", 0), counting(1, 4));  // the salt is in block 0
  const CacheScope later = fixture.tenant("secret", 8);
  BlockHasher hasher;
  std::vector<BlockHash> computed;
  ASSERT_TRUE(hash_prompt(hasher, "", "secret", 8, prompt, 4, computed).ok());
  const Match match = fixture.cache().match(later, prompt);
  ASSERT_EQ(match.tokens, 4u);
  auto outcome = fixture.cache().open(later, match, prompt, computed);
  Sequence& sequence = std::get<Opened>(outcome).sequence;
  ASSERT_TRUE(fixture.feed(sequence, counting(5, 9)));
  EXPECT_EQ(hashes_of(fixture, later, prompt), chain(counting(1, 12), "", "secret", 0));
}

}  // namespace
}  // namespace pagoda::kv
