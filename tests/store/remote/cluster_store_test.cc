// Nodes of a cluster lie, contradict each other and never come to an end: that costs time, and
// nothing else.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>

#include "store/page_record.h"
#include "store/remote/cluster_map.h"
#include "store/remote/fake_server.h"
#include "store/remote/node_set.h"
#include "store/remote/page_keys.h"
#include "store/remote/store_driver.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

std::string range(int first, int last, const std::string& host, int port) {
  return "*3\r\n:" + std::to_string(first) + "\r\n:" + std::to_string(last) + "\r\n*2\r\n" +
         bulk(host) + ":" + std::to_string(port) + "\r\n";
}

std::string all_slots(int port) { return "*1\r\n" + range(0, 16383, "127.0.0.1", port); }

std::uint16_t slot_of_page(std::uint64_t number) {
  return slot_of(page_key(sample_label(number).key, KeyForm::kTagged));
}

// A node: what it says of slots, and of everything else; both may be changed.
class FakeNode {
 public:
  FakeNode()
      : server_(fake_redis([this](const Words& words) { return answer(words); })),
        slots_(all_slots(server_.port())) {}

  int port() const { return server_.port(); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
  RemoteOptions options() const { return quick_options("redis-cluster://" + address()); }
  void say_slots(std::string text) {
    const std::lock_guard lock(mutex_);
    slots_ = std::move(text);
  }
  void say(std::function<std::string(const Words& words)> answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  std::size_t heard(const std::string& verb) {
    const std::lock_guard lock(mutex_);
    return heard_[verb];
  }

 private:
  std::string answer(const Words& words) {
    const std::lock_guard lock(mutex_);
    ++heard_[words[0]];
    if (words[0] == "CLUSTER") return slots_;
    if (words[0] == "ASKING") return "+OK\r\n";
    return answer_ ? answer_(words) : "$-1\r\n";
  }

  std::mutex mutex_;
  std::map<std::string, std::size_t> heard_;
  std::function<std::string(const Words& words)> answer_;
  FakeServer server_;
  std::string slots_;
};

TEST(LyingCluster, NodesThatSendAPageToEachOtherAreLeftSoon) {
  FakeNode one;
  FakeNode two;
  const std::string slots = "*2\r\n" + range(0, 8000, "127.0.0.1", one.port()) +
                            range(8001, 16383, "127.0.0.1", two.port());
  one.say_slots(slots);
  two.say_slots(slots);
  const auto to = [](const char* verb, FakeNode& node) {
    return [verb, address = node.address()](const Words& words) {
      return "-" + std::string(verb) + " " + std::to_string(slot_of(words[1])) + " " + address +
             "\r\n";
    };
  };
  for (const char* verb : {"MOVED", "ASK"}) {
    one.say(to(verb, two));
    two.say(to(verb, one));
    StoreDriver driver(one.options());
    ASSERT_TRUE(driver.connect());
    const std::size_t before = one.heard("GET") + two.heard("GET");
    EXPECT_EQ(driver.read(1), StoreFault::kIo) << verb;
    EXPECT_LE(one.heard("GET") + two.heard("GET") - before, 6u);
    EXPECT_EQ(driver.write(1), StoreFault::kIo) << verb;
    EXPECT_LE(one.heard("SET") + two.heard("SET"), verb == std::string("ASK") ? 12u : 6u);
    EXPECT_EQ(driver.find({sample_label(1).key}), 0u);
    EXPECT_GT(driver.store().stats().redirections, 10u);
    EXPECT_TRUE(driver.store().stats().is_on);
  }
  EXPECT_GT(one.heard("ASKING") + two.heard("ASKING"), 0u);
}

TEST(LyingCluster, MapsAreNotAskedForFasterThanTheirPauseHoweverOftenTheyAreWrong) {
  FakeNode node;
  node.say([&](const Words& words) {
    return "-MOVED " + std::to_string(slot_of(words[1])) + " " + node.address() + "\r\n";
  });
  StoreDriver driver(node.options());
  ASSERT_TRUE(driver.connect());
  const auto begin = std::chrono::steady_clock::now();
  const std::size_t before = node.heard("CLUSTER");
  for (int i = 0; i < 2000; ++i) driver.read(1);
  const double passed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::size_t asked = node.heard("CLUSTER") - before;
  EXPECT_LE(static_cast<double>(asked), passed * 1e9 / static_cast<double>(kMapPauseNs) + 2);
}

TEST(LyingCluster, NobodyIsContactedWhomNoMapNames) {
  FakeNode node;
  FakeServer stranger([](FakeServer::Peer&) {});
  const std::string address = "127.0.0.1:" + std::to_string(stranger.port());
  for (const char* verb : {"MOVED", "ASK"}) {
    node.say([&](const Words& words) {
      return "-" + std::string(verb) + " " + std::to_string(slot_of(words[1])) + " " + address +
             "\r\n";
    });
    StoreDriver driver(node.options());
    ASSERT_TRUE(driver.connect());
    EXPECT_EQ(driver.read(1), StoreFault::kIo);
    EXPECT_EQ(driver.find({sample_label(1).key}), 0u);
  }
  EXPECT_EQ(stranger.visits_until_now(), 0u);
}

TEST(LyingCluster, ARedirectionForAnotherSlotOrWithoutSenseIsNotFollowed) {
  FakeNode node;
  for (const std::string& reply :
       {"MOVED " + std::to_string((slot_of_page(1) + 1) % 16384) + " " + node.address(),
        std::string("MOVED"), std::string("MOVED 99999 h:1"), std::string("ASK x y:z"),
        std::string("CLUSTERDOWN The cluster is down"), std::string("LOADING soon")}) {
    node.say([&](const Words&) { return "-" + reply + "\r\n"; });
    StoreDriver driver(node.options());
    ASSERT_TRUE(driver.connect());
    const std::size_t before = node.heard("GET");
    EXPECT_EQ(driver.read(1), StoreFault::kIo) << reply;
    EXPECT_EQ(node.heard("GET"), before + 1) << reply;
    EXPECT_EQ(driver.find({sample_label(1).key}), 0u);
  }
}

TEST(LyingCluster, WhoeverAnswersForASlotAPageIsReadOnlyIfItIsThePage) {
  FakeNode one;
  FakeNode liar;
  one.say_slots(all_slots(liar.port()));
  liar.say([](const Words&) { return bulk(record_of(2)); });
  StoreDriver driver(one.options());
  ASSERT_TRUE(driver.connect());
  EXPECT_EQ(driver.read(1), StoreFault::kForeign);
  EXPECT_EQ(driver.read(2), StoreFault::kNone);
  EXPECT_EQ(one.heard("GET"), 0u);
}

TEST(LyingCluster, ThatCannotMakeUpItsMindIsAskedAgainAWhile) {
  FakeNode node;
  int refusals = 2;
  node.say([&](const Words&) {
    return refusals-- > 0 ? "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"
                          : bulk(record_of(1));
  });
  StoreDriver driver(node.options());
  ASSERT_TRUE(driver.connect());
  EXPECT_EQ(driver.read(1), StoreFault::kNone);
  refusals = 1000;
  EXPECT_EQ(driver.read(1), StoreFault::kIo);
  EXPECT_GT(refusals, 980);
}

TEST(LyingCluster, WhoseMapCannotBeIsOffAndSaysWhyUntilANodeKnowsBetter) {
  FakeNode node;
  FakeNode other;
  for (const auto& [slots, words] : std::vector<std::pair<std::string, std::string>>{
           {"*0\r\n", "no node has any"},
           {"+OK\r\n", "no list"},
           {"-ERR This instance has cluster support disabled\r\n", "support disabled"},
           {"*2\r\n" + range(0, 9, "127.0.0.1", 1) + range(9, 10, "127.0.0.1", 2), "two nodes'"},
           {"*1\r\n" + range(9, 8, "127.0.0.1", 1), "a range that is none"},
           {"*1\r\n" + range(0, 9, "no host", 1), "without an address"}}) {
    node.say_slots(slots);
    StoreDriver driver(node.options());
    EXPECT_TRUE(driver.is_off_because(words)) << words;
    EXPECT_EQ(driver.read(1), StoreFault::kOff);
  }
  other.say([](const Words&) { return bulk(record_of(1)); });
  StoreDriver driver(quick_options("redis-cluster://" + node.address() + "," + other.address()));
  ASSERT_TRUE(driver.connect());
  EXPECT_EQ(driver.read(1), StoreFault::kNone);
}

TEST(LyingCluster, AMapOfNodesThatAreNotThereLeavesTheSeedsToBeAsked) {
  FakeNode node;
  const std::string fine = all_slots(node.port());
  node.say_slots(all_slots(1));  // nobody listens there
  node.say([](const Words&) { return bulk(record_of(1)); });
  StoreDriver driver(node.options());
  EXPECT_TRUE(driver.is_off_because("127.0.0.1:1"));
  node.say_slots(fine);
  ASSERT_TRUE(driver.connect());
  EXPECT_EQ(driver.read(1), StoreFault::kNone);
}

TEST(LyingCluster, TheSeedsAreAskedAgainWhenEveryNodeIsGone) {
  FakeNode seed;
  const std::string itself = all_slots(seed.port());
  seed.say([](const Words&) { return bulk(record_of(1)); });
  auto node = std::make_unique<FakeNode>();
  node->say([](const Words&) { return bulk(record_of(1)); });
  seed.say_slots(all_slots(node->port()));
  StoreDriver driver(seed.options());
  ASSERT_TRUE(driver.connect());
  EXPECT_EQ(driver.read(1), StoreFault::kNone);  // the seed keeps no slots: its link is gone
  seed.say_slots(itself);
  node.reset();
  for (int i = 0; i < 2000 && driver.read(1) != StoreFault::kNone; ++i) {
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(driver.read(1), StoreFault::kNone);
  EXPECT_GE(seed.heard("GET"), 2u);
}

TEST(LyingCluster, AListOfKeysThatNeverEndsEndsTheRemoval) {
  FakeNode node;
  node.say([](const Words& words) {
    return words[0] == "SCAN" ? "*2\r\n" + bulk("7") + "*0\r\n" : std::string(":0\r\n");
  });
  RemoteOptions options = node.options();
  options.removal_timeout_ns = 300'000'000;
  StoreDriver driver(options);
  ASSERT_TRUE(driver.connect());
  EXPECT_FALSE(driver.store().remove(sample_owner(1)).ok());
  // It has ended once the node hears no more for a while.
  bool ended = false;
  for (int i = 0; i < 20 && !ended; ++i) {
    const std::size_t before = node.heard("SCAN");
    std::this_thread::sleep_for(500ms);
    ended = node.heard("SCAN") == before;
  }
  EXPECT_TRUE(ended);
}

TEST(LyingSentinel, ThatNamesItselfOrNobodyIsNotFollowed) {
  for (const std::string& named : {std::string("127.0.0.1"), std::string("")}) {
    int port = 0;
    FakeServer sentinel(fake_redis(
        [&](const Words&) { return "*2\r\n" + bulk(named) + bulk(std::to_string(port)); }));
    port = sentinel.port();
    StoreDriver driver(quick_options("redis-sentinel://127.0.0.1:" + std::to_string(port) + "/kv"));
    EXPECT_TRUE(driver.is_off_because(named.empty() ? "no address" : "names a sentinel"));
  }
}

TEST(LyingSentinel, HearsTheLoginOnlyIfItAsksForOne) {
  for (const bool asks : {false, true}) {
    std::atomic<int> logins = 0;
    FakeServer sentinel([&](FakeServer::Peer& peer) {
      bool is_in = !asks;
      while (const auto words = peer.redis_command()) {
        if (words->front() == "AUTH") {
          ++logins;
          is_in = true;
        }
        const bool sentence = words->front() == "SENTINEL";
        if (!peer.send(!is_in     ? "-NOAUTH Authentication required.\r\n"
                       : sentence ? "$-1\r\n"
                                  : "+OK\r\n")) {
          return;
        }
      }
    });
    StoreDriver driver(quick_options(
        "redis-sentinel://:s3cret@127.0.0.1:" + std::to_string(sentinel.port()) + "/kv"));
    EXPECT_TRUE(driver.is_off_because("knows no service"));
    EXPECT_EQ(logins, asks ? 1 : 0);
  }
}

}  // namespace
}  // namespace pagoda::store
