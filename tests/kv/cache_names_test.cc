// The cache names whole blocks as name_chain() does, the salt entering the first private block.
#include <gtest/gtest.h>

#include "kv/cache_desk.h"
#include "kv/names/block_name.h"

namespace pagoda::kv {
namespace {

CacheOptions naming(std::uint32_t blocks) {
  CacheOptions options = Desk::small(blocks);
  options.name_blocks = true;
  return options;
}

std::vector<BlockName> names_of(Desk& desk, const Domain& domain, const Tokens& prompt) {
  std::vector<BlockName> names;
  for (const NodeId node : desk.cache().match(domain, prompt).nodes) {
    names.push_back(desk.cache().name(node));
  }
  return names;
}

// Block by block, with the salt at the block it is said to enter.
std::vector<BlockName> chain(const Tokens& tokens, std::string_view adapter, std::string_view salt,
                             std::size_t salt_block) {
  BlockNamer namer;
  std::vector<BlockName> names;
  for (std::size_t block = 0; (block + 1) * 4 <= tokens.size(); ++block) {
    const BlockName parent = block == 0 ? root_name() : names.back();
    names.push_back(
        namer
            .name(parent, std::span(tokens).subspan(block * 4, 4),
                  {.adapter = adapter, .salt = block == salt_block ? salt : std::string_view()})
            .value());
  }
  return names;
}

TEST(CacheNames, AreThoseOfTheChainForPromptsAndForGeneratedBlocks) {
  Desk desk(naming(16));
  Sequence sequence = desk.run(counting(1, 6));
  for (std::uint32_t token = 7; token <= 13; ++token) desk.feed(sequence, tokens_of({token}));
  EXPECT_EQ(names_of(desk, desk.everyone(), counting(1, 13)), chain(counting(1, 12), "", "", 0));
}

TEST(CacheNames, HaveTheAdapterInEveryBlock) {
  Desk desk(naming(16));
  const Domain domain = desk.domain("model", "", "translate");
  desk.serve(domain, counting(1, 9));
  EXPECT_EQ(names_of(desk, domain, counting(1, 9)), chain(counting(1, 8), "translate", "", 0));
}

TEST(CacheNames, HaveTheSaltInTheFirstPrivateBlock) {
  for (const std::uint64_t public_tokens : {0, 4, 7, 8, 100}) {
    Desk desk(naming(16));
    const Domain domain = desk.tenant("secret", public_tokens);
    desk.serve(domain, counting(1, 13));
    EXPECT_EQ(names_of(desk, domain, counting(1, 13)),
              chain(counting(1, 12), "", "secret", public_tokens / 4));
  }
}

TEST(CacheNames, ThatTheAskerComputedAreTheSame) {
  for (const std::uint64_t public_tokens : {0, 4, 100}) {
    const Tokens prompt = counting(1, 13);
    BlockNamer namer;
    std::vector<BlockName> computed;
    ASSERT_TRUE(name_prompt(namer, "translate", "secret", public_tokens, prompt, 4, computed).ok());
    EXPECT_EQ(computed, chain(prompt, "translate", "secret", public_tokens / 4));

    Desk desk(naming(16));
    Domain domain = desk.domain("model", "secret", "translate");
    domain.public_tokens = public_tokens;
    auto outcome = desk.cache().open(domain, {}, prompt, computed);
    Sequence& sequence = std::get<Opened>(outcome).sequence;
    ASSERT_TRUE(desk.feed(sequence, prompt));
    EXPECT_EQ(names_of(desk, domain, prompt), computed);
  }
}

TEST(CacheNames, OfAPromptReplaceWhatTheListHeld) {
  BlockNamer namer;
  std::vector<BlockName> names = chain(counting(900, 4), "", "", 0);
  ASSERT_TRUE(name_prompt(namer, "", "secret", 0, counting(1, 9), 4, names).ok());
  EXPECT_EQ(names, chain(counting(1, 8), "", "secret", 0));
  const Status refused = name_prompt(namer, "", std::string(513, 's'), 8, counting(1, 9), 4, names);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "bytes of a cache salt: 513, more than the 512 a block's name can hold");
  EXPECT_TRUE(names.empty());
}

TEST(CacheNames, OfAForkAreThoseOfWhatItGoesOnWith) {
  const Tokens prompt = counting(1, 9);
  Desk desk(naming(16));
  BlockNamer namer;
  std::vector<BlockName> computed;
  ASSERT_TRUE(name_prompt(namer, "", "", 0, prompt, 4, computed).ok());
  auto outcome = desk.cache().open(desk.everyone(), {}, prompt, computed);
  Sequence& sequence = std::get<Opened>(outcome).sequence;
  ASSERT_TRUE(desk.feed(sequence, counting(1, 4)));
  Sequence twin = desk.cache().fork(sequence);
  ASSERT_TRUE(desk.feed(twin, counting(70, 4)));
  const Tokens other = counting(1, 4) + counting(70, 5);
  EXPECT_EQ(names_of(desk, desk.everyone(), other), chain(other, "", "", 0));
}

// The asker had another split in mind than the blocks that the request goes on from.
TEST(CacheNames, AreThoseOfTheChainThatIsThereWhateverTheAskerComputed) {
  const Tokens prompt = counting(1, 13);
  Desk desk(naming(16));
  desk.serve(desk.tenant("secret", 0), counting(1, 4));  // the salt is in block 0
  const Domain later = desk.tenant("secret", 8);
  BlockNamer namer;
  std::vector<BlockName> computed;
  ASSERT_TRUE(name_prompt(namer, "", "secret", 8, prompt, 4, computed).ok());
  const Match match = desk.cache().match(later, prompt);
  ASSERT_EQ(match.tokens, 4u);
  auto outcome = desk.cache().open(later, match, prompt, computed);
  Sequence& sequence = std::get<Opened>(outcome).sequence;
  ASSERT_TRUE(desk.feed(sequence, counting(5, 9)));
  EXPECT_EQ(names_of(desk, later, prompt), chain(counting(1, 12), "", "secret", 0));
}

}  // namespace
}  // namespace pagoda::kv
