// Tests a store that is a cluster of real redis-servers, or one that a sentinel watches.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "store/page_record.h"
#include "store/remote/cluster_map.h"
#include "store/remote/page_keys.h"
#include "store/remote/redis_servers.h"
#include "store/remote/server_process.h"
#include "store/remote/store_driver.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;
using namespace std::chrono_literals;

std::uint16_t slot_of_page(std::uint64_t number) {
  return slot_of(page_key(sample_label(number).key, KeyForm::kTagged));
}

// Waits until as many nodes are on.
bool has_nodes(StoreDriver& driver, std::uint64_t nodes, std::uint64_t nodes_on) {
  for (int i = 0; i < 4000; ++i) {
    const kv::StoreStats stats = driver.store().stats();
    if (stats.nodes == nodes && stats.nodes_on == nodes_on) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

// One cluster for all tests: three primaries, three replicas.
class ClusterStore : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (ServerProcess::has_redis()) servers_ = new RedisServers({"cluster"});
  }
  static void TearDownTestSuite() { delete std::exchange(servers_, nullptr); }
  void SetUp() override {
    REQUIRE_SERVER(ServerProcess::has_redis(), "redis-server");
    ASSERT_EQ(servers_->size(), 6u);
    for (const int node : {0, 1, 2}) servers_->ask("redis " + std::to_string(node) + " FLUSHALL");
  }
  static RemoteOptions options(const std::vector<std::size_t>& seeds = {0, 1, 2}) {
    std::string url = "redis-cluster://";
    for (const std::size_t seed : seeds) {
      url += (url.back() == '/' ? "" : ",") + servers_->host_and_port(seed);
    }
    return quick_options(url);
  }
  static std::size_t keys_at(std::size_t node) {
    return std::stoul(servers_->ask("redis " + std::to_string(node) + " DBSIZE"));
  }
  // Returns which of the first nodes has the page's slot.
  static std::size_t node_of_page(std::uint64_t number) {
    const int port = std::stoi(servers_->ask("owner " + std::to_string(slot_of_page(number))));
    for (std::size_t node = 0; node < servers_->size(); ++node) {
      if (servers_->port(node) == port) return node;
    }
    return servers_->size();
  }

  static RedisServers* servers_;
};
RedisServers* ClusterStore::servers_ = nullptr;

TEST_F(ClusterStore, SpreadsPagesOverItsNodesAndFindsThemFromAnyAddress) {
  StoreDriver one(options());
  StoreDriver two(options({5}));  // a replica knows the others as well
  ASSERT_TRUE(one.connect() && two.connect());
  ASSERT_TRUE(has_nodes(one, 3, 3) && has_nodes(two, 3, 3));
  std::vector<kv::PageKey> keys;
  for (std::uint64_t number = 0; number < 300; ++number) {
    ASSERT_EQ(one.write(number, sample_owner(number % 2)), StoreFault::kNone);
    keys.push_back(sample_label(number).key);
  }
  for (const std::size_t node : {0, 1, 2}) EXPECT_GT(keys_at(node), 50u);
  EXPECT_EQ(keys_at(0) + keys_at(1) + keys_at(2), 300u);
  EXPECT_EQ(two.find(keys), 300u);
  keys.insert(keys.begin() + 260, sample_label(1000).key);
  EXPECT_EQ(two.find(keys), 260u);
  for (std::uint64_t number = 0; number < 300; ++number) {
    EXPECT_EQ(two.read(number, sample_owner(number % 2)), StoreFault::kNone);
  }
  EXPECT_EQ(two.store().stats().redirections, 0u);

  const auto removal = two.store().remove(sample_owner(1));
  ASSERT_TRUE(removal.ok()) << removal.error().message;
  EXPECT_EQ(removal.value().pages, 150u);
  EXPECT_EQ(removal.value().bytes, 150 * record_bytes(16, StoreDriver::kPageBytes));
  for (std::uint64_t number = 0; number < 300; ++number) {
    EXPECT_EQ(one.read(number, sample_owner(number % 2)),
              number % 2 == 1 ? StoreFault::kAbsent : StoreFault::kNone);
  }
  EXPECT_EQ(one.store().remove_all().value().pages, 150u);
  EXPECT_EQ(keys_at(0) + keys_at(1) + keys_at(2), 0u);
}

TEST_F(ClusterStore, PagesUnderKeysOfTheOtherFormAreMisses) {
  StoreDriver one(options());
  StoreDriver plain(quick_options("redis://" + servers_->host_and_port(0)));
  ASSERT_TRUE(one.connect() && plain.connect() && has_nodes(one, 3, 3));
  int written = 0;
  for (std::uint64_t number = 0; number < 30; ++number) {
    if (plain.write(number) != StoreFault::kNone) continue;  // another node's slot
    ++written;
    EXPECT_EQ(plain.read(number), StoreFault::kNone);
    EXPECT_EQ(one.read(number), StoreFault::kAbsent);
    EXPECT_EQ(one.find({sample_label(number).key}), 0u);
  }
  EXPECT_GT(written, 0);
}

TEST_F(ClusterStore, SlotsMoveWhileItIsUsedAndNothingIsLost) {
  StoreDriver one(options());
  ASSERT_TRUE(one.connect() && has_nodes(one, 3, 3));
  constexpr std::uint64_t kPages = 24;
  for (std::uint64_t number = 0; number < kPages; ++number) {
    ASSERT_EQ(one.write(number, sample_owner(1)), StoreFault::kNone);
  }
  std::atomic<bool> moved = false;
  std::thread moving([&] {
    for (std::uint64_t number = 0; number < kPages; ++number) {
      const std::string slot = std::to_string(slot_of_page(number));
      const std::size_t to = (node_of_page(number) + 1) % 3;
      EXPECT_EQ(servers_->ask("move " + slot + " " + slot + " " + std::to_string(to)), "true");
    }
    moved = true;
  });
  std::uint64_t reads = 0;
  for (std::uint64_t number = 0; !moved || number % kPages != 0; ++number, ++reads) {
    EXPECT_EQ(one.read(number % kPages, sample_owner(1)), StoreFault::kNone);
    if (number % 5 == 0) {
      EXPECT_EQ(one.write(number % kPages, sample_owner(1)), StoreFault::kNone);
    }
    if (number % 7 == 0) {
      EXPECT_EQ(one.find({sample_label(number % kPages).key}), 1u);
    }
  }
  moving.join();
  EXPECT_GT(reads, kPages);
  EXPECT_GT(one.store().stats().redirections, 0u);
  EXPECT_EQ(one.store().remove(sample_owner(1)).value().pages, kPages);
}

TEST_F(ClusterStore, APageOfPartsIsHereOrThereButNeverMixed) {
  RemoteOptions small = options();
  small.item_bytes_max = 3000;
  StoreDriver one(small);
  ASSERT_TRUE(one.connect() && has_nodes(one, 3, 3));
  ASSERT_EQ(one.write(1, sample_owner(1)), StoreFault::kNone);
  EXPECT_EQ(one.read(1, sample_owner(1)), StoreFault::kNone);
  const std::size_t from = node_of_page(1);
  const std::string slot = std::to_string(slot_of_page(1));
  const std::string to = std::to_string((from + 1) % 3);
  EXPECT_EQ(servers_->ask("redis " + std::to_string(from) + " CLUSTER COUNTKEYSINSLOT " + slot),
            "4");
  EXPECT_EQ(servers_->ask("half " + slot + " " + to), "2");
  EXPECT_EQ(one.read(1, sample_owner(1)), StoreFault::kAbsent);  // two parts of four moved
  // It goes where its missing parts are to be written, as a whole.
  EXPECT_EQ(one.write(1, sample_owner(1)), StoreFault::kNone);
  EXPECT_EQ(one.read(1, sample_owner(1)), StoreFault::kNone);
  // Both nodes have parts of it now. No page is left to be read, and parts are gone after the move.
  const auto removal = one.store().remove(sample_owner(1));
  ASSERT_TRUE(removal.ok()) << removal.error().message;
  EXPECT_NE(removal.value().note.find("ask again"), std::string::npos);
  EXPECT_EQ(one.read(1, sample_owner(1)), StoreFault::kAbsent);
  EXPECT_EQ(servers_->ask("move " + slot + " " + slot + " " + to), "true");
  const auto again = one.store().remove(sample_owner(1));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again.value().note, "");
  EXPECT_EQ(keys_at(0) + keys_at(1) + keys_at(2), 0u);
}

TEST_F(ClusterStore, ANodeThatStopsAnsweringKeepsNobodyWaitingForTheOthers) {
  RemoteOptions hasty = options();
  hasty.request_timeout_ns = 500'000'000;
  hasty.connect_timeout_ns = 300'000'000;
  StoreDriver one(hasty);
  ASSERT_TRUE(one.connect() && has_nodes(one, 3, 3));
  std::vector<std::uint64_t> there;
  std::vector<std::uint64_t> elsewhere;
  for (std::uint64_t number = 0; number < 40; ++number) {
    ASSERT_EQ(one.write(number), StoreFault::kNone);
    (node_of_page(number) == 2 ? there : elsewhere).push_back(number);
  }
  ASSERT_GT(there.size(), 4u);
  ::kill(servers_->process(2), SIGSTOP);
  std::vector<std::vector<std::byte>> pages(4, std::vector<std::byte>(StoreDriver::kPageBytes));
  std::vector<kv::StoreTicket> late;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    late.push_back(one.next_ticket());
    one.store().read({late.back(), sample_label(there[i]), pages[i]});
  }
  for (const std::uint64_t number : elsewhere) EXPECT_EQ(one.read(number), StoreFault::kNone);
  for (const kv::StoreTicket ticket : late) {
    EXPECT_EQ(one.await(ticket).fault, StoreFault::kTimeout);
  }
  ASSERT_TRUE(has_nodes(one, 3, 2));
  EXPECT_EQ(one.read(there[0]), StoreFault::kOff);
  for (const std::uint64_t number : elsewhere) EXPECT_EQ(one.read(number), StoreFault::kNone);
  EXPECT_NE(one.store().stats().condition.find(std::to_string(servers_->port(2))),
            std::string::npos);
  EXPECT_TRUE(one.store().stats().is_on);
  const auto removal = one.store().remove(sample_owner(7));
  ASSERT_FALSE(removal.ok());
  EXPECT_NE(removal.error().message.find("nobody has looked"), std::string::npos);
  ::kill(servers_->process(2), SIGCONT);
  ASSERT_TRUE(has_nodes(one, 3, 3));
  EXPECT_EQ(one.read(there[0]), StoreFault::kNone);
  EXPECT_TRUE(one.store().remove(sample_owner(7)).ok());
}

// The last of this suite: it leaves the cluster with two nodes fewer.
TEST_F(ClusterStore, APrimaryKilledUnderLoadCostsMissesAndIsUsedAgainAfterFailover) {
  StoreDriver one(options());
  ASSERT_TRUE(one.connect() && has_nodes(one, 3, 3));
  constexpr std::uint64_t kPages = 60;
  std::vector<std::uint64_t> lost;
  for (std::uint64_t number = 0; number < kPages; ++number) {
    ASSERT_EQ(one.write(number), StoreFault::kNone);
    if (node_of_page(number) == 0) lost.push_back(number);
  }
  ASSERT_GT(lost.size(), 5u);
  servers_->ask("redis 0 WAIT 1 5000");
  servers_->ask("timeout 500");
  std::uint64_t reads = 0;
  std::thread killer([&] {
    std::this_thread::sleep_for(30ms);
    servers_->ask("kill 0");
  });
  const auto end = std::chrono::steady_clock::now() + 40s;
  std::uint64_t missed = 0;
  std::uint64_t good_in_a_row = 0;
  while (good_in_a_row < 3 * kPages && std::chrono::steady_clock::now() < end) {
    const std::uint64_t number = ++reads % kPages;
    const StoreFault fault = one.read(number);  // checks bytes
    const bool is_lost = std::find(lost.begin(), lost.end(), number) != lost.end();
    if (!is_lost) {
      EXPECT_EQ(fault, StoreFault::kNone);
    }
    if (fault != StoreFault::kNone) ++missed;
    good_in_a_row = fault == StoreFault::kNone && missed > 0 ? good_in_a_row + 1 : 0;
    EXPECT_TRUE(one.store().stats().is_on);
  }
  killer.join();
  EXPECT_GT(missed, 0u);
  EXPECT_EQ(good_in_a_row, 3 * kPages) << "not used again: " << one.store().stats().condition;
  for (const std::uint64_t number : lost) {
    EXPECT_EQ(one.write(number), StoreFault::kNone);
    EXPECT_EQ(one.read(number), StoreFault::kNone);
  }
  EXPECT_EQ(one.find({sample_label(lost[0]).key, sample_label(lost[1]).key}), 2u);
}

TEST(SecuredCluster, SpeaksTlsAndLogsInAtEveryNode) {
  REQUIRE_SERVER(ServerProcess::has_redis(), "redis-server");
  const auto folder =
      std::filesystem::temp_directory_path() / ("pagoda_cluster_" + std::to_string(free_port()));
  std::filesystem::create_directories(folder);
  const std::string cert = folder / "cert.pem";
  const std::string key = folder / "key.pem";
  const std::string make =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
      "/CN=pagoda -addext subjectAltName=IP:127.0.0.1 -keyout " +
      key + " -out " + cert + " 2>/dev/null";
  ASSERT_EQ(std::system(make.c_str()), 0) << "openssl made no certificate";
  {
    RedisServers servers(
        {"cluster", "--replicas", "0", "--password", "s3cret", "--tls", cert, key});
    ASSERT_EQ(servers.size(), 3u);
    RemoteOptions options = quick_options("rediss-cluster://:s3cret@" + servers.host_and_port(1));
    options.tls_ca_file = cert;
    StoreDriver one(options);
    ASSERT_TRUE(one.connect()) << one.store().stats().condition;
    ASSERT_TRUE(has_nodes(one, 3, 3));
    for (std::uint64_t number = 0; number < 20; ++number) {
      EXPECT_EQ(one.write(number, {}, 100'000), StoreFault::kNone);
      EXPECT_EQ(one.read(number, {}, 100'000), StoreFault::kNone);
    }
    StoreDriver wrong(quick_options("rediss-cluster://:guess@" + servers.host_and_port(1)));
    EXPECT_TRUE(wrong.is_off_because("certificate"));
    options.url = parse_remote_url("rediss-cluster://:guess@" + servers.host_and_port(1)).value();
    StoreDriver guess(options);
    EXPECT_TRUE(guess.is_off_because("WRONGPASS"));
    EXPECT_EQ(guess.store().stats().condition.find("guess"), std::string::npos);
  }
  std::filesystem::remove_all(folder);
}

TEST(SentinelStore, FollowsTheServerThatItsSentinelNames) {
  REQUIRE_SERVER(ServerProcess::has_redis(), "redis-server");
  RedisServers servers({"sentinel", "--password", "s3cret"});
  ASSERT_EQ(servers.size(), 3u);
  const std::string sentinel = servers.host_and_port(2);
  StoreDriver stranger(quick_options("redis-sentinel://:s3cret@" + sentinel + "/other"));
  EXPECT_TRUE(stranger.is_off_because("knows no service \"other\""));
  StoreDriver one(quick_options("redis-sentinel://:s3cret@" + sentinel + "/kv"));
  ASSERT_TRUE(one.connect()) << one.store().stats().condition;
  ASSERT_EQ(one.write(1), StoreFault::kNone);
  EXPECT_EQ(one.read(1), StoreFault::kNone);
  servers.ask("redis 0 WAIT 1 5000");
  servers.ask("kill 0");
  StoreFault fault = StoreFault::kOff;
  for (int i = 0; i < 4000 && fault != StoreFault::kNone; ++i) {
    fault = one.read(1);
    if (fault != StoreFault::kNone) std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(fault, StoreFault::kNone) << one.store().stats().condition;
  for (int i = 0; i < 1000 && one.write(2) != StoreFault::kNone; ++i) {
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(one.read(2), StoreFault::kNone);
  EXPECT_EQ(servers.ask("primary"), std::to_string(servers.port(1)));
}

}  // namespace
}  // namespace pagoda::store
