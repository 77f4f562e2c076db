// Tests slots of keys, maps of slots and redirections, without a socket.
#include "store/remote/cluster_map.h"

#include <gtest/gtest.h>

#include "store/page_samples.h"
#include "store/remote/page_keys.h"

namespace pagoda::store {
namespace {

const NodeAddress kAsked = {"10.0.0.9", "7000"};

Reply number(std::uint64_t value) { return {.kind = ReplyKind::kNumber, .number = value}; }
Reply text(const std::string& value) { return {.kind = ReplyKind::kValue, .text = value}; }
Reply list(std::vector<Reply> parts) {
  return {.kind = ReplyKind::kList, .parts = std::move(parts)};
}
Reply node(const std::string& host, std::uint64_t port) {
  return list({text(host), number(port), text("0123456789abcdef0123456789abcdef01234567")});
}
Reply range(std::uint64_t first, std::uint64_t last, Reply primary) {
  return list({number(first), number(last), std::move(primary), node("10.0.0.8", 7009)});
}

// From the cluster specification, and CLUSTER KEYSLOT of a redis-server 7.0.15.
TEST(SlotOf, IsTheCrc16OfTheHashTag) {
  EXPECT_EQ(slot_of("123456789"), 0x31C3);
  EXPECT_EQ(slot_of(""), 0);
  EXPECT_EQ(slot_of("somekey"), 11058);
  EXPECT_EQ(slot_of("foo{hash_tag}"), 2515);
  EXPECT_EQ(slot_of("bar{hash_tag}"), 2515);
  EXPECT_EQ(slot_of("hash_tag"), 2515);
  EXPECT_EQ(slot_of("foo{}{bar}"), 8363);  // the first tag is empty: the whole key counts
  EXPECT_EQ(slot_of("foo{{bar}}zap"), 4015);
  EXPECT_EQ(slot_of("foo{{bar}}zap"), slot_of("{bar"));
  EXPECT_EQ(slot_of("foo{bar}{zap}"), slot_of("bar"));
  EXPECT_EQ(slot_of("a{b"), 13340);
}

TEST(SlotOf, IsTheSameForAllPartsOfAPage) {
  for (std::uint64_t page = 0; page < 50; ++page) {
    const std::string key = page_key(sample_label(page).key, KeyForm::kTagged);
    for (const std::size_t part : {1, 2, 255}) {
      EXPECT_EQ(slot_of(part_key(key, part, 6000)), slot_of(key));
    }
    EXPECT_NE(key, page_key(sample_label(page).key));
  }
}

TEST(ClusterMap, IsReadAsANodeTellsIt) {
  const auto map = read_cluster_slots(
      list({range(0, 100, node("10.0.0.1", 7001)), range(102, 16383, node("cache-2.example", 7002)),
            range(101, 101, node("", 7003))}),
      kAsked);
  ASSERT_TRUE(map.ok()) << map.error().message;
  EXPECT_EQ(map.value().nodes,
            (std::vector<NodeAddress>{
                {"10.0.0.1", "7001"}, {"cache-2.example", "7002"}, {"10.0.0.9", "7003"}}));
  EXPECT_EQ(map.value().owner[100], 0);
  EXPECT_EQ(map.value().owner[101], 2);
  EXPECT_EQ(map.value().owner[102], 1);
  EXPECT_EQ(map.value().owner[16383], 1);
}

TEST(ClusterMap, SlotsMayBeNobodys) {
  const auto map = read_cluster_slots(list({range(5, 5, node("h", 1))}), kAsked);
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map.value().owner[5], 0);
  EXPECT_EQ(map.value().owner[4], ClusterMap::kNobody);
}

TEST(ClusterMap, ThatCannotBeIsAnError) {
  const Reply fine = node("h", 1);
  const std::vector<std::pair<const char*, Reply>> cases = {
      {"no list", text("x")},
      {"no node", list({})},
      {"no range", list({text("x")})},
      {"no range", list({list({number(0), number(1)})})},
      {"that is none", list({range(5, 4, fine)})},
      {"that is none", list({range(0, 16384, fine)})},
      {"that is none", list({range(0, UINT64_MAX, fine)})},
      {"that is none", list({list({text("0"), number(1), fine})})},
      {"two nodes'", list({range(0, 5, fine), range(5, 6, node("i", 1))})},
      {"two nodes'", list({range(0, 5, fine), range(3, 3, fine)})},
      {"without an address", list({range(0, 5, node("h", 0))})},
      {"without an address", list({range(0, 5, node("h", 65536))})},
      {"without an address", list({range(0, 5, node("?", 1))})},
      {"without an address", list({range(0, 5, node("a b", 1))})},
      {"without an address", list({range(0, 5, node("a\r\nSET", 1))})},
      {"without an address", list({range(0, 5, node(std::string(300, 'a'), 1))})},
      {"without an address", list({range(0, 5, list({text("h")}))})},
      {"without an address", list({range(0, 5, list({number(1), number(1)}))})},
      {"cluster support", {.kind = ReplyKind::kRefused, .text = "ERR cluster support disabled"}}};
  for (const auto& [words, reply] : cases) {
    const auto map = read_cluster_slots(reply, kAsked);
    ASSERT_FALSE(map.ok()) << words;
    EXPECT_NE(map.error().message.find(words), std::string::npos) << map.error().message;
  }
  std::vector<Reply> many;
  for (std::uint64_t i = 0; i <= kNodesMax; ++i) many.push_back(range(i, i, node("h", i + 1)));
  EXPECT_NE(read_cluster_slots(list(many), kAsked).error().message.find("1000 nodes"),
            std::string::npos);
  many.pop_back();
  EXPECT_TRUE(read_cluster_slots(list(many), kAsked).ok());
}

TEST(SentinelReply, IsTheAddressOfTheServer) {
  const auto map = read_sentinel_reply(list({text("10.0.0.1"), text("6379")}), "kv");
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map.value().nodes, (std::vector<NodeAddress>{{"10.0.0.1", "6379"}}));
  EXPECT_NE(read_sentinel_reply({.kind = ReplyKind::kAbsent}, "kv").error().message.find("\"kv\""),
            std::string::npos);
  for (const Reply& wrong :
       {list({}), list({text("h")}), list({text("h"), text("x")}), list({text(""), text("1")}),
        list({number(1), number(2)}), text("h"), list({text("h"), text("1"), text("2")})}) {
    EXPECT_FALSE(read_sentinel_reply(wrong, "kv").ok());
  }
}

TEST(Redirection, SaysWhereAKeyIs) {
  const auto moved = read_redirection("MOVED 3999 127.0.0.1:6381", kAsked);
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->kind, Redirection::Kind::kMoved);
  EXPECT_EQ(moved->slot, 3999);
  EXPECT_EQ(moved->address, (NodeAddress{"127.0.0.1", "6381"}));
  const auto ask = read_redirection("ASK 0 ::1:6381", kAsked);
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->kind, Redirection::Kind::kAsk);
  EXPECT_EQ(ask->address, (NodeAddress{"::1", "6381"}));
  EXPECT_EQ(read_redirection("MOVED 1 :6381", kAsked)->address, (NodeAddress{"10.0.0.9", "6381"}));
  EXPECT_EQ(read_redirection("TRYAGAIN Multiple keys", kAsked)->kind, Redirection::Kind::kTryAgain);
  for (const char* down : {"CLUSTERDOWN The cluster is down", "LOADING Redis is loading"}) {
    EXPECT_EQ(read_redirection(down, kAsked)->kind, Redirection::Kind::kDown);
  }
  for (const char* none : {"", "ERR MOVED 1 h:1", "MOVED", "MOVED 1", "MOVED x h:1", "MOVED -1 h:1",
                           "MOVED 16384 h:1", "MOVED 1 h", "MOVED 1 h:0", "MOVED 1 h:99999",
                           "MOVED 1 ?:1", "MOVED 1 a b:1", "ASK 1 h:1 x", "MOVEDX 1 h:1"}) {
    EXPECT_FALSE(read_redirection(none, kAsked)) << none;
  }
}

}  // namespace
}  // namespace pagoda::store
