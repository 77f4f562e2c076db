#include "kv/hash/block_hash.h"
#include "test_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

namespace pagoda::kv {
namespace {

using testing::HasSubstr;

std::vector<TokenId> to_tokens(const std::vector<std::uint32_t>& values) {
  return {values.begin(), values.end()};
}

std::vector<TokenId> tokens_from_to(std::uint32_t first, std::uint32_t last) {
  std::vector<std::uint32_t> values(last - first + 1);
  std::iota(values.begin(), values.end(), first);
  return to_tokens(values);
}

BlockHash from_hex(const std::string& hex) {
  BlockHash name = {};
  EXPECT_EQ(hex.size(), 2 * name.digest.size());
  for (std::size_t i = 0; i < name.digest.size(); ++i) {
    name.digest[i] = static_cast<std::byte>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  return name;
}

nlohmann::json read_cases(const std::string& file) {
  std::ifstream stream(test_data() + "/block_names/" + file);
  return nlohmann::json::parse(stream);
}

std::vector<std::string> hex_of(const std::vector<BlockHash>& names) {
  std::vector<std::string> texts;
  for (const BlockHash& name : names) texts.push_back(name.hex());
  return texts;
}

BlockHash hash_of(const BlockHash& parent, const std::vector<TokenId>& tokens,
                  const ExtraKeys& extra = {}) {
  BlockHasher hasher;
  return hasher.hash(parent, tokens, extra).value();
}

// Names that vLLM's own function gave.
constexpr const char* kOneToSixteen =
    "cd7c51bc5a8fc8643f383a2b9e01522fba7473c669e9270c7b0bf7bf7fd01682";
constexpr const char* kSeventeenToThirtyTwo =
    "2533ea50426b36e9e4d68296cac6bce8cf602e46957d0fe40b368b33d87bf3bf";
constexpr const char* kOneToSixteenOfTenantA =
    "84ab0ef3dc094fc39519521dd81c13715e990c1d39795a4e040cfbeb178d35b6";

TEST(BlockHash, TheRootIsVllmsSeed) {
  EXPECT_EQ(root_hash().hex(), "9bd96a485ad84efdafb72ee48a1d7a69bcead0f8f0433173941b276b9581eef0");
}

TEST(BlockHash, ABlockAndTheOneAfterItHaveVllmsHashes) {
  const BlockHash first = hash_of(root_hash(), tokens_from_to(1, 16));
  EXPECT_EQ(first.hex(), kOneToSixteen);
  EXPECT_EQ(hash_of(first, tokens_from_to(17, 32)).hex(), kSeventeenToThirtyTwo);
}

TEST(BlockHash, TokensOfAllWidthsHaveVllmsHash) {
  const std::vector<TokenId> tokens =
      to_tokens({0, 23, 24, 255, 256, 65535, 65536, 128255, 1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(hash_of(root_hash(), tokens).hex(),
            "d57ecf9a0139752bea9cb4b628294ee193f74b78ddaa2a4739039629c1208dbe");
}

TEST(BlockHash, AnAdapterAndASaltOfTheSameTextGiveOneHashAsInVllm) {
  const std::vector<TokenId> tokens = tokens_from_to(1, 16);
  EXPECT_EQ(hash_of(root_hash(), tokens, {.adapter = "tenant-a", .salt = {}}).hex(),
            kOneToSixteenOfTenantA);
  EXPECT_EQ(hash_of(root_hash(), tokens, {.adapter = {}, .salt = "tenant-a"}).hex(),
            kOneToSixteenOfTenantA);
}

TEST(BlockHash, TheEventHashIsTheLowEndOfTheDigest) {
  EXPECT_EQ(from_hex(kOneToSixteen).event_hash(), 8866452693264111234u);
}

TEST(BlockHash, HashesAreOrderedAsTheirHexadecimalTexts) {
  const BlockHash low = from_hex("7f" + std::string(62, '0'));
  const BlockHash high = from_hex("80" + std::string(62, '0'));
  EXPECT_LT(low, high);
  EXPECT_NE(low, high);
  EXPECT_EQ(low, from_hex(low.hex()));
}

TEST(BlockHash, RandomBlocksHaveTheHashesAnotherImplementationGivesThem) {
  const nlohmann::json cases = read_cases("blocks.json");
  ASSERT_EQ(cases.size(), 38u);
  BlockHasher hasher;
  for (const auto& block : cases) {
    std::vector<TokenId> tokens;
    for (int round = 0; round < block["repeat"].get<int>(); ++round) {
      for (const auto& token : block["tokens"]) tokens.emplace_back(token.get<std::uint32_t>());
    }
    const auto adapter = block["adapter"].get<std::string>();
    const auto salt = block["salt"].get<std::string>();
    const auto name = hasher.hash(from_hex(block["parent"].get<std::string>()), tokens,
                                  {.adapter = adapter, .salt = salt});
    ASSERT_TRUE(name.ok()) << name.error().message;
    EXPECT_EQ(name.value().hex(), block["name"].get<std::string>())
        << tokens.size() << " tokens, adapter '" << adapter << "', salt '" << salt << "'";
    EXPECT_EQ(name.value().event_hash(), block["event_hash"].get<std::uint64_t>());
  }
}

TEST(HashChain, ChainsHaveTheHashesAnotherImplementationGivesThem) {
  const nlohmann::json cases = read_cases("chains.json");
  ASSERT_EQ(cases.size(), 7u);
  BlockHasher hasher;
  for (const auto& chain : cases) {
    const auto tokens = to_tokens(chain["tokens"].get<std::vector<std::uint32_t>>());
    const auto adapter = chain["adapter"].get<std::string>();
    const auto salt = chain["salt"].get<std::string>();
    std::vector<BlockHash> names;
    const Status status = hash_chain(hasher, from_hex(chain["seed"].get<std::string>()), tokens,
                                     chain["block_tokens"].get<std::size_t>(),
                                     {.adapter = adapter, .salt = salt}, names);
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(hex_of(names), chain["names"].get<std::vector<std::string>>())
        << tokens.size() << " tokens, adapter '" << adapter << "', salt '" << salt << "'";
  }
}

TEST(HashChain, AChainGoesOnFromItsLastHashWithoutTheSalt) {
  const std::vector<TokenId> tokens = tokens_from_to(1, 80);
  const ExtraKeys extra = {.adapter = "translate", .salt = "tenant-a"};
  BlockHasher hasher;
  std::vector<BlockHash> whole;
  ASSERT_TRUE(hash_chain(hasher, root_hash(), tokens, 16, extra, whole).ok());
  ASSERT_EQ(whole.size(), 5u);

  std::vector<BlockHash> parts;
  const std::span<const TokenId> all = tokens;
  ASSERT_TRUE(hash_chain(hasher, root_hash(), all.first(32), 16, extra, parts).ok());
  ASSERT_EQ(parts.size(), 2u);
  const Status rest = hash_chain(hasher, parts.back(), all.subspan(32), 16,
                                 {.adapter = "translate", .salt = {}}, parts);
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ(hex_of(parts), hex_of(whole));
}

void expect_refused(const Result<BlockHash>& name, ErrorCode code,
                    std::initializer_list<const char*> words) {
  ASSERT_FALSE(name.ok());
  EXPECT_EQ(name.error().code, code);
  for (const char* word : words) EXPECT_THAT(name.error().message, HasSubstr(word));
}

TEST(BlockHasher, RefusesWhatIsBeyondItsLimitsAndNamesThem) {
  BlockHasher hasher;
  const BlockHash root = root_hash();
  const std::vector<TokenId> tokens = tokens_from_to(1, 4097);
  const std::span<const TokenId> sixteen = std::span(tokens).first(16);
  const std::string text(513, 'x');
  expect_refused(hasher.hash(root, tokens, {}), ErrorCode::kOutOfRange, {"tokens", "4097", "4096"});
  expect_refused(hasher.hash(root, sixteen, {.adapter = text, .salt = {}}), ErrorCode::kOutOfRange,
                 {"adapter", "513", "512"});
  expect_refused(hasher.hash(root, sixteen, {.adapter = {}, .salt = text}), ErrorCode::kOutOfRange,
                 {"salt", "513", "512"});
  expect_refused(hasher.hash(root, {}, {}), ErrorCode::kInvalidArgument, {"0 tokens", "1"});
  EXPECT_EQ(hasher.hash(root, sixteen, {}).value().hex(), kOneToSixteen) << "still of use";
}

TEST(HashChain, AnErrorLeavesTheHashesAsTheyWere) {
  BlockHasher hasher;
  const std::vector<TokenId> tokens = tokens_from_to(1, 16);
  const std::string text(513, 'x');
  std::vector<BlockHash> names = {root_hash()};
  const auto chain = [&](std::size_t block_tokens, const ExtraKeys& extra) {
    return hash_chain(hasher, root_hash(), tokens, block_tokens, extra, names);
  };
  EXPECT_FALSE(chain(0, {}).ok());
  EXPECT_FALSE(chain(4097, {}).ok()) << "though the prompt has no whole block of that size";
  EXPECT_FALSE(chain(8, {.adapter = text, .salt = {}}).ok());
  EXPECT_FALSE(chain(8, {.adapter = {}, .salt = text}).ok());
  EXPECT_EQ(names, std::vector<BlockHash>{root_hash()});
}

}  // namespace
}  // namespace pagoda::kv
