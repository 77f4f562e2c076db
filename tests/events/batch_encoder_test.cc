// The test decodes batches by nlohmann's MessagePack and compares them with vLLM's schema.
#include "events/batch_encoder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace pagoda::events {
namespace {

using Json = nlohmann::json;

// Makes a hash whose number in events is known: all bytes are zero but the last.
kv::BlockHash name_of(std::uint8_t number) {
  kv::BlockHash name = {};
  name.digest.back() = std::byte{number};
  return name;
}

kv::CacheEvent stored(std::uint8_t name, std::uint8_t parent, std::uint32_t group = 0) {
  return {.group = group,
          .hash = name_of(name),
          .parent = parent == 0 ? kv::root_hash() : name_of(parent)};
}

kv::CacheEvent removed(std::uint8_t name) {
  return {.kind = kv::CacheEventKind::kRemoved, .hash = name_of(name)};
}

class Encoded {
 public:
  explicit Encoded(EncoderOptions options = {}) : encoder_(with_small_blocks(options)) {}

  void add(const kv::CacheEvent& event) {
    const std::vector<TokenId> tokens = {TokenId(7), TokenId(300)};
    const bool tells = event.is_public && event.kind != kv::CacheEventKind::kRemoved;
    encoder_.add(event, tells ? std::span(tokens) : std::span<const TokenId>());
  }
  Json finish() { return Json::from_msgpack(encoder_.finish(12.5)); }

 private:
  static EncoderOptions with_small_blocks(EncoderOptions options) {
    options.block_tokens = 2;
    return options;
  }
  BatchEncoder encoder_;
};

TEST(BatchEncoder, WritesTimeEventsAndRank) {
  Encoded encoded;
  encoded.add({.kind = kv::CacheEventKind::kCleared});
  EXPECT_EQ(encoded.finish(), Json::parse(R"([12.5, [{"type": "AllBlocksCleared"}], 0])"));
}

TEST(BatchEncoder, ABatchBeginsAnewAfterTheLast) {
  Encoded encoded;
  encoded.add(stored(1, 0));
  encoded.finish();
  encoded.add(removed(1));
  EXPECT_EQ(encoded.finish()[1], Json::parse(R"([{"type": "BlockRemoved", "block_hashes": [1],
                                                  "medium": "GPU", "group_idx": 0}])"));
}

TEST(BatchEncoder, ARunOfChildrenIsOneEvent) {
  Encoded encoded;
  encoded.add(stored(1, 0));
  encoded.add(stored(2, 1));
  encoded.add(stored(3, 1));  // another child of the first
  EXPECT_EQ(encoded.finish()[1], Json::parse(R"([
      {"type": "BlockStored", "block_hashes": [1, 2], "parent_block_hash": null,
       "token_ids": [7, 300, 7, 300], "block_size": 2, "lora_id": null, "medium": "GPU",
       "lora_name": null, "extra_keys": [null, null], "group_idx": 0,
       "kv_cache_spec_kind": "full_attention"},
      {"type": "BlockStored", "block_hashes": [3], "parent_block_hash": 1,
       "token_ids": [7, 300], "block_size": 2, "lora_id": null, "medium": "GPU",
       "lora_name": null, "extra_keys": [null], "group_idx": 0,
       "kv_cache_spec_kind": "full_attention"}])"));
}

// A block that leaves between two that come stays between them.
TEST(BatchEncoder, OrderIsKeptAroundRemovals) {
  Encoded encoded;
  encoded.add(stored(1, 0));
  encoded.add(removed(1));
  encoded.add(stored(1, 0));
  const Json events = encoded.finish()[1];
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["type"], "BlockStored");
  EXPECT_EQ(events[1]["type"], "BlockRemoved");
  EXPECT_EQ(events[2]["type"], "BlockStored");
}

TEST(BatchEncoder, GroupsAreNumbered) {
  EncoderOptions options;
  options.groups = {{0}, {6}};
  Encoded encoded(options);
  encoded.add(stored(1, 0, 0));
  encoded.add(stored(1, 0, 1));
  encoded.add(stored(2, 1, 0));
  encoded.add(stored(2, 1, 1));
  const Json events = encoded.finish()[1];
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["block_hashes"], Json::parse("[1, 2]"));
  EXPECT_EQ(events[0]["kv_cache_spec_kind"], "full_attention");
  EXPECT_FALSE(events[0].contains("kv_cache_spec_sliding_window"));
  EXPECT_EQ(events[1]["block_hashes"], Json::parse("[1, 2]"));
  EXPECT_EQ(events[1]["group_idx"], 1);
  EXPECT_EQ(events[1]["kv_cache_spec_kind"], "sliding_window");
  EXPECT_EQ(events[1]["kv_cache_spec_sliding_window"], 6);
}

TEST(BatchEncoder, APrivateBlockIsItsHashAlone) {
  Encoded encoded;
  encoded.add(stored(1, 0));
  kv::CacheEvent event = stored(2, 1);
  event.is_public = false;
  encoded.add(event);
  const Json events = encoded.finish()[1];
  ASSERT_EQ(events.size(), 2u) << "not in one run with what is public";
  EXPECT_EQ(events[1], Json::parse(R"({
      "type": "BlockStored", "block_hashes": [2], "parent_block_hash": 1, "token_ids": [],
      "block_size": 0, "lora_id": null, "medium": "GPU", "lora_name": null, "group_idx": 0,
      "kv_cache_spec_kind": "full_attention"})"));
}

TEST(BatchEncoder, TokensOfAPrivateBlockAreToldAsThoseOfASaltedOne) {
  BatchEncoder encoder({.block_tokens = 2});
  const std::vector<TokenId> tokens = {TokenId(7), TokenId(300)};
  encoder.add(stored(1, 0), tokens);
  for (std::uint8_t name = 2; name <= 4; ++name) {
    kv::CacheEvent event = stored(name, static_cast<std::uint8_t>(name - 1));
    event.is_public = false;
    // The last is under a KV policy: its tokens are not told.
    encoder.add(event, name == 4 ? std::span<const TokenId>() : std::span(tokens));
  }
  const Json events = Json::from_msgpack(encoder.finish(0))[1];
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1], Json::parse(R"({
      "type": "BlockStored", "block_hashes": [2, 3], "parent_block_hash": 1,
      "token_ids": [7, 300, 7, 300], "block_size": 2, "lora_id": null, "medium": "GPU",
      "lora_name": null, "extra_keys": [["salted"], ["salted"]], "group_idx": 0,
      "kv_cache_spec_kind": "full_attention"})"));
  EXPECT_EQ(events[2]["block_hashes"], Json::parse("[4]"));
  EXPECT_EQ(events[2]["token_ids"], Json::array());
  EXPECT_EQ(events[2]["block_size"], 0);
}

TEST(BatchEncoder, ArraysHaveEveryFieldInOrder) {
  EncoderOptions options;
  options.encoding = Encoding::kArrays;
  options.incarnation = "0123456789abcdef";
  options.groups = {{0}, {6}};
  Encoded encoded(options);
  encoded.add(stored(1, 0));
  encoded.add(removed(1));
  kv::CacheEvent event = stored(2, 0, 1);
  event.is_public = false;
  encoded.add(event);
  encoded.add({.kind = kv::CacheEventKind::kCleared});
  EXPECT_EQ(encoded.finish(), Json::parse(R"([12.5, [
      ["BlockStored", [1], null, [7, 300], 2, null, "GPU", null, [null], 0, "full_attention", null,
       null],
      ["BlockRemoved", [1], "GPU", 0, null],
      ["BlockStored", [2], null, [], 0, null, "GPU", null, null, 1, "sliding_window", 6, null],
      ["AllBlocksCleared"]], 0, "0123456789abcdef"])"));
}

TEST(BatchEncoder, HashesMayHaveAllTheirBytes) {
  EncoderOptions options;
  options.int_block_hashes = false;
  Encoded encoded(options);
  encoded.add(stored(9, 0));
  const Json hash = encoded.finish()[1][0]["block_hashes"][0];
  ASSERT_TRUE(hash.is_binary());
  EXPECT_EQ(hash.get_binary().size(), 32u);
  EXPECT_EQ(hash.get_binary().back(), 9);
}

}  // namespace
}  // namespace pagoda::events
