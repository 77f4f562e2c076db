// What the serving program makes of what ranks say, and of those that say nothing.
#include "ranks/rank_group.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace pagoda::ranks {
namespace {

constexpr std::span<const std::byte> kNothing = {};

// Two ranks, whose ends the test has.
struct Pair {
  explicit Pair(std::chrono::milliseconds limit = std::chrono::minutes(5)) {
    std::vector<Channel> own;
    for (int rank = 0; rank < 2; ++rank) {
      std::array<int, 2> sockets = {};
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
      own.emplace_back(sockets[0]);
      ranks.emplace_back(sockets[1]);
    }
    group.emplace(std::move(own), limit, [this] { ++failures; });
  }
  std::string text(const Result<std::span<const std::byte>>& received) const {
    if (!received.ok()) return "error: " + received.error().message;
    return {reinterpret_cast<const char*>(received.value().data()), received.value().size()};
  }

  std::vector<Channel> ranks;
  int failures = 0;
  std::optional<RankGroup> group;
};

TEST(RankGroup, HearsOneRankBesideTheSignsOfLifeOfAll) {
  Pair pair;
  ASSERT_TRUE(pair.group->send_to_all(MessageKind::kSetup, std::as_bytes(std::span("go", 2))).ok());
  for (const Channel& rank : pair.ranks) {
    EXPECT_EQ(rank.receive(MessageKind::kSetup).value().size(), 2u);
    ASSERT_TRUE(rank.send(MessageKind::kAlive, kNothing).ok());
  }
  ASSERT_TRUE(pair.ranks[1].send(MessageKind::kReady, "one").ok());
  ASSERT_TRUE(pair.ranks[1].send(MessageKind::kResult, "more").ok());
  ASSERT_TRUE(pair.ranks[0].send(MessageKind::kReady, "zero").ok());
  EXPECT_EQ(pair.text(pair.group->receive(0, MessageKind::kReady)), "zero");
  EXPECT_EQ(pair.text(pair.group->receive(1, MessageKind::kReady)), "one");
  EXPECT_EQ(pair.text(pair.group->receive(1, MessageKind::kResult)), "more");
  pair.group->check();
  EXPECT_FALSE(pair.group->failure());
}

TEST(RankGroup, TheFirstFailureStaysAndIsToldOnce) {
  Pair pair;
  ASSERT_TRUE(pair.ranks[1].send(MessageKind::kFailure, "no memory").ok());
  EXPECT_EQ(pair.text(pair.group->receive(0, MessageKind::kReady)), "error: rank 1: no memory");
  ASSERT_TRUE(pair.ranks[0].send(MessageKind::kReady, "late").ok());
  EXPECT_EQ(pair.text(pair.group->receive(0, MessageKind::kReady)), "error: rank 1: no memory");
  EXPECT_FALSE(pair.group->send_to_all(MessageKind::kLaunch, kNothing).ok());
  EXPECT_EQ(pair.failures, 1);
}

TEST(RankGroup, ARankThatEndedIsFoundWithoutAWait) {
  Pair pair;
  pair.group->check();
  EXPECT_FALSE(pair.group->failure());
  pair.ranks.pop_back();
  pair.group->check();
  ASSERT_TRUE(pair.group->failure());
  EXPECT_EQ(pair.group->failure()->message, "rank 1 ended");
}

TEST(RankGroup, SilenceHasALimit) {
  Pair pair(std::chrono::milliseconds(1));
  EXPECT_NE(pair.text(pair.group->receive(0, MessageKind::kReady)).find("silent"),
            std::string::npos);
}

TEST(RankGroup, BytesThatAreNoMessageFailIt) {
  struct Row {
    MessageHeader header;
    std::string what;
  };
  for (const Row& row :
       {Row{{.kind = MessageKind(99)}, "a kind that does not exist"},
        Row{{.kind = MessageKind::kReady, .bytes = kMessageBytesMax + 1}, "too many bytes"},
        Row{{.kind = MessageKind::kReady, .reserved = 1}, "a field that is not in use"},
        Row{{.kind = MessageKind::kLogits}, "a message out of turn"}}) {
    Pair pair;
    ASSERT_EQ(write(pair.ranks[0].socket(), &row.header, sizeof row.header),
              static_cast<ssize_t>(sizeof row.header));
    EXPECT_FALSE(pair.group->receive(0, MessageKind::kReady).ok()) << row.what;
    EXPECT_TRUE(pair.group->failure()) << row.what;
  }
}

}  // namespace
}  // namespace pagoda::ranks
