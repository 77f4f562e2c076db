// Servers misbehave in ways that are seldom or never seen, and the store copes.
#include "store/remote/remote_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <thread>

#include "store/page_record.h"
#include "store/remote/fake_server.h"
#include "store/remote/store_driver.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

constexpr std::size_t kBytes = StoreDriver::kPageBytes;

// A server's thread waits at a Gate until the test's thread opens it.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 10s, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

TEST(RemoteStore, WorksWhateverPacketsAServerCutsItsRepliesInto) {
  for (const std::size_t piece : {1, 2, 3, 7, 100}) {
    std::map<std::string, std::string> values;
    FakeServer server(fake_redis(
        [&](const Words& words) -> std::string {
          if (words[0] == "SET") {
            values[words[1]] = words[2];
            return "+OK\r\n";
          }
          const auto found = values.find(words[1]);
          if (words[0] == "EXISTS") return found == values.end() ? ":0\r\n" : ":1\r\n";
          return found == values.end() ? "$-1\r\n" : bulk(found->second);
        },
        piece));
    StoreDriver driver(quick_options(server.redis_url()));
    ASSERT_TRUE(driver.connect());
    EXPECT_EQ(driver.write(1), StoreFault::kNone);
    EXPECT_EQ(driver.find({sample_label(1).key, sample_label(2).key}), 1u);
    EXPECT_EQ(driver.read(1), StoreFault::kNone);
    EXPECT_EQ(driver.read(2), StoreFault::kAbsent);
  }
}

TEST(RemoteStore, ReadsNothingOutOfWrongReplies) {
  std::string cut = record_of(1);
  cut.pop_back();
  std::string flipped = record_of(1);
  flipped[200] = static_cast<char>(flipped[200] ^ 4);
  struct Case {
    std::string reply;
    StoreFault read;
  };
  for (const Case& each : std::vector<Case>{{bulk(record_of(1)), StoreFault::kNone},
                                            {bulk(record_of(2)), StoreFault::kForeign},
                                            {bulk(cut), StoreFault::kDamaged},
                                            {bulk(flipped), StoreFault::kDamaged},
                                            {bulk(""), StoreFault::kDamaged},
                                            {":5\r\n", StoreFault::kDamaged},
                                            {"+OK\r\n", StoreFault::kDamaged},
                                            {"$-1\r\n", StoreFault::kAbsent},
                                            {"-ERR no\r\n", StoreFault::kIo},
                                            {"-LOADING Redis is loading\r\n", StoreFault::kIo},
                                            {"-NOAUTH Authentication\r\n", StoreFault::kIo},
                                            {"*1\r\n$1\r\na\r\n", StoreFault::kDamaged},
                                            {"nonsense\r\n", StoreFault::kIo},
                                            {"$500000000\r\n", StoreFault::kTimeout},
                                            {"*2000000000\r\n", StoreFault::kIo}}) {
    FakeServer server(fake_redis([&](const Words&) { return each.reply; }));
    RemoteOptions options = quick_options(server.redis_url());
    options.request_timeout_ns = 1'000'000'000;
    StoreDriver driver(options);
    ASSERT_TRUE(driver.connect());
    EXPECT_EQ(driver.read(1), each.read) << each.reply.substr(0, 40);
    EXPECT_EQ(driver.store().stats().faults[static_cast<std::size_t>(each.read)],
              each.read == StoreFault::kNone ? 0u : 1u);
  }
}

TEST(RemoteStore, CallsNoWriteDoneThatTheServerDidNotTake) {
  struct Case {
    std::string reply;
    StoreFault write;
  };
  for (const Case& each : std::vector<Case>{
           {"+OK\r\n", StoreFault::kNone},
           {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", StoreFault::kNoRoom},
           {"-READONLY You can't write against a read only replica.\r\n", StoreFault::kIo},
           {"-MISCONF snapshots\r\n", StoreFault::kIo},
           {"$-1\r\n", StoreFault::kIo},
           {":1\r\n", StoreFault::kIo},
           {bulk("OK"), StoreFault::kIo}}) {
    FakeServer server(fake_redis([&](const Words&) { return each.reply; }));
    StoreDriver driver(quick_options(server.redis_url()));
    ASSERT_TRUE(driver.connect());
    EXPECT_EQ(driver.write(1), each.write) << each.reply;
    EXPECT_EQ(driver.store().keeps(sample_label(1).key), each.write == StoreFault::kNone);
    const bool said = each.reply.starts_with('-');
    EXPECT_EQ(driver.store().stats().condition.find(each.reply.substr(1, 6)) != std::string::npos,
              said);
    EXPECT_TRUE(driver.store().stats().is_on);
  }
}

TEST(RemoteStore, TakesNoWritesForAWhileWhereTheServerRefusesThemAll) {
  std::atomic<bool> refuses = true;
  std::atomic<int> sets = 0;
  FakeServer server(fake_redis([&](const Words& words) -> std::string {
    if (words[0] != "SET") return ":0\r\n";
    ++sets;
    return refuses ? "-READONLY You can't write against a read only replica.\r\n" : "+OK\r\n";
  }));
  RemoteOptions options = quick_options(server.redis_url());
  options.write_refusals_max = 3;
  options.write_retry_ns = 200'000'000;
  StoreDriver driver(options);
  ASSERT_TRUE(driver.connect());
  EXPECT_TRUE(driver.store().takes_writes());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(driver.write(1), StoreFault::kIo);
  EXPECT_FALSE(driver.store().takes_writes());
  EXPECT_EQ(driver.write(1), StoreFault::kOff);
  EXPECT_EQ(sets, 3) << "nothing is sent";
  EXPECT_EQ(driver.find({sample_label(1).key}), 0u) << "and it is asked as ever";
  EXPECT_NE(driver.store().stats().condition.find("READONLY"), std::string::npos);
  EXPECT_TRUE(driver.store().flush(5'000'000'000).ok());
  refuses = false;
  std::this_thread::sleep_for(250ms);
  EXPECT_TRUE(driver.store().takes_writes());
  EXPECT_EQ(driver.write(1), StoreFault::kNone);
  EXPECT_EQ(driver.store().stats().condition, "");
}

TEST(RemoteStore, TakesOnePageHoweverLarge) {
  FakeServer server(fake_redis([](const Words&) { return "+OK\r\n"; }));
  RemoteOptions options = quick_options(server.redis_url());
  options.write_bytes_queued_max = kBytes - 1;
  StoreDriver driver(options);
  ASSERT_TRUE(driver.connect());
  EXPECT_EQ(driver.write(1), StoreFault::kNone);
}

TEST(RemoteStore, StaysOffWithAReasonWhereItIsNotLetIn) {
  for (const char* refusal :
       {"-WRONGPASS invalid username-password pair\r\n", "-NOAUTH Authentication required.\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n", "-ERR max number of clients\r\n"}) {
    FakeServer server([&](FakeServer::Peer& peer) {
      while (peer.redis_command()) peer.send(refusal);
    });
    StoreDriver driver(quick_options(server.redis_url()));
    EXPECT_TRUE(driver.is_off_because(std::string(refusal).substr(1, 6)));
    EXPECT_EQ(driver.read(1), StoreFault::kOff);
  }
}

TEST(RemoteStore, AuthenticatesWithPasswordAndSelectsItsDatabase) {
  std::vector<Words> heard;
  Gate greeted;
  FakeServer server([&](FakeServer::Peer& peer) {
    while (const auto words = peer.redis_command()) {
      heard.push_back(*words);
      peer.send("+OK\r\n");
      if (words->front() == "PING") greeted.open();
    }
  });
  RemoteOptions options = quick_options(server.redis_url());
  options.url.user = "me";
  options.url.password = "it's \"secret\"";
  options.url.database = 3;
  StoreDriver driver(options);
  ASSERT_TRUE(driver.connect());
  greeted.pass();
  EXPECT_EQ(heard,
            (std::vector<Words>{{"AUTH", "me", "it's \"secret\""}, {"SELECT", "3"}, {"PING"}}));
}

TEST(RemoteStore, IsOffInTimeWhereAHandshakeIsNeverAnswered) {
  FakeServer server([](FakeServer::Peer& peer) { peer.wait_until_closed(); });
  RemoteOptions options = quick_options(server.redis_url());
  options.connect_timeout_ns = 100'000'000;
  const auto begin = std::chrono::steady_clock::now();
  {
    StoreDriver driver(options);
    EXPECT_TRUE(driver.is_off_because("handshake"));
    EXPECT_EQ(driver.read(1), StoreFault::kOff);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
}

TEST(RemoteStore, ALateReplyIsDroppedAndThoseAfterItAreTheirOwners) {
  Gate late;
  std::atomic<int> reads = 0;
  FakeServer server(fake_redis([&](const Words& words) {
    if (reads++ == 0) late.pass();
    for (const std::uint64_t number : {1, 2}) {
      if (words[1].find(sample_label(number).key.hash.hex()) != std::string::npos) {
        return bulk(record_of(number));
      }
    }
    return std::string("$-1\r\n");
  }));
  RemoteOptions options = quick_options(server.redis_url());
  options.request_timeout_ns = 100'000'000;
  options.timeouts_max = 1000;
  StoreDriver driver(options);
  ASSERT_TRUE(driver.connect());
  std::vector<std::byte> page(kBytes);
  EXPECT_EQ(driver.read(sample_label(1), page), StoreFault::kTimeout);
  const std::vector<std::byte> mark(kBytes, std::byte{0x5A});
  page = mark;  // the memory is ours again
  late.open();
  EXPECT_EQ(driver.read(2), StoreFault::kNone);
  EXPECT_EQ(driver.read(1), StoreFault::kNone);
  EXPECT_EQ(page, mark);
}

TEST(RemoteStore, ALateReplyBeforeAWriteNeverReadsThePageAgain) {
  // Memcached: the page is encoded when the generation is known.
  Gate late;
  std::atomic<bool> written = false;
  FakeServer server([&](FakeServer::Peer& peer) {
    while (const auto line = peer.line()) {
      if (*line == "stats settings") {
        peer.send("STAT item_size_max 1048576\r\nEND\r\n");
      } else if (*line == "mn") {
        peer.send("MN\r\n");
      } else if (line->starts_with("ma ")) {
        late.pass();
        peer.send("VA 1\r\n7\r\n");
      } else {
        written = true;
      }
    }
  });
  RemoteOptions options = quick_options(server.memcached_url());
  options.request_timeout_ns = 100'000'000;
  options.timeouts_max = 1000;
  StoreDriver driver(options);
  ASSERT_TRUE(driver.connect());
  {
    const std::vector<std::byte> page = sample_page(1, kBytes);
    EXPECT_EQ(driver.write(sample_label(1), page), StoreFault::kTimeout);
  }
  late.open();
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(written);
}

TEST(RemoteStore, IsConnectedAgainAfterTheServerHungUpInTheMiddleOfAValue) {
  const std::string reply = bulk(record_of(1));
  std::atomic<int> connections = 0;
  FakeServer server([&](FakeServer::Peer& peer) {
    const bool first = connections++ == 0;
    while (const auto words = peer.redis_command()) {
      if (words->front() != "GET") {
        peer.send("+OK\r\n");
      } else if (first) {
        peer.send(reply.substr(0, reply.size() / 2));
        return;
      } else {
        peer.send(reply);
      }
    }
  });
  StoreDriver driver(quick_options(server.redis_url()));
  ASSERT_TRUE(driver.connect());
  EXPECT_EQ(driver.read(1), StoreFault::kIo);
  ASSERT_TRUE(driver.goes_off() && driver.connect());
  EXPECT_EQ(driver.read(1), StoreFault::kNone);
}

TEST(RemoteStore, HangsUpOnRepliesThatNobodyAskedFor) {
  FakeServer server(fake_redis([](const Words&) { return "$-1\r\n$-1\r\n"; }));
  RemoteOptions options = quick_options(server.redis_url());
  options.retry_first_ns = options.retry_last_ns = 10'000'000'000;
  StoreDriver driver(options);
  ASSERT_TRUE(driver.connect());
  EXPECT_EQ(driver.read(1), StoreFault::kAbsent);
  EXPECT_TRUE(driver.is_off_because("no request asked for"));
}

TEST(RemoteStore, TakesNoMoreThanItsLimitsWhileAServerIsStuck) {
  Gate stuck;
  FakeServer server([&](FakeServer::Peer& peer) {
    while (const auto words = peer.redis_command()) {
      if (words->front() != "PING") break;
      peer.send("+PONG\r\n");
    }
    stuck.pass();
  });
  RemoteOptions options = quick_options(server.redis_url());
  options.write_bytes_queued_max = 10 * kBytes;
  options.reads_queued_max = 7;
  options.request_timeout_ns = 2'000'000'000;
  StoreDriver driver(options);
  ASSERT_TRUE(driver.connect());
  const std::vector<std::byte> from = sample_page(1, kBytes);
  std::vector<std::byte> into(kBytes);
  std::size_t taken = 0;
  for (int i = 0; i < 50; ++i) {
    if (driver.store().write({driver.next_ticket(), sample_label(1), from})) ++taken;
  }
  EXPECT_EQ(taken, 10u);
  std::vector<kv::StoreTicket> reads;
  for (int i = 0; i < 20; ++i) {
    reads.push_back(driver.next_ticket());
    driver.store().read({reads.back(), sample_label(1), into});
  }
  EXPECT_EQ(driver.store().find(driver.next_ticket(), std::vector{sample_label(1).key}), 0u);
  for (std::size_t i = 7; i < reads.size(); ++i) {
    EXPECT_EQ(driver.await(reads[i]).fault, StoreFault::kNoRoom);
  }
  EXPECT_EQ(driver.store().stats().requests_queued, 17u);
  stuck.open();
  for (std::size_t i = 0; i < 7; ++i) EXPECT_NE(driver.await(reads[i]).fault, StoreFault::kNone);
  ASSERT_TRUE(driver.goes_off());
  EXPECT_EQ(driver.store().stats().requests_queued, 0u);
}

TEST(RemoteStore, CancelsReadsThatHaveNotBegunAndAnswersLookupsFirst) {
  Gate first;
  std::mutex mutex;
  std::vector<std::string> verbs;
  FakeServer server(fake_redis([&](const Words& words) -> std::string {
    {
      const std::lock_guard lock(mutex);
      verbs.push_back(words[0]);
    }
    if (words[0] == "GET") first.pass();
    return words[0] == "GET" ? "$-1\r\n" : words[0] == "SET" ? "+OK\r\n" : ":1\r\n";
  }));
  RemoteOptions options = quick_options(server.redis_url());
  options.bytes_in_flight_max = 1;  // one value at a time
  options.request_timeout_ns = 5'000'000'000;
  StoreDriver driver(options);
  ASSERT_TRUE(driver.connect());
  std::vector<std::byte> into(kBytes);
  const std::vector<std::byte> from = sample_page(1, kBytes);
  const auto read = [&] {
    const kv::StoreTicket ticket = driver.next_ticket();
    driver.store().read({ticket, sample_label(1), into});
    return ticket;
  };
  const kv::StoreTicket begun = read();
  while (true) {  // until the write is on its way
    std::this_thread::sleep_for(1ms);
    const std::lock_guard lock(mutex);
    if (!verbs.empty()) break;
  }
  const kv::StoreTicket write = driver.next_ticket();
  ASSERT_TRUE(driver.store().write({write, sample_label(1), from}));
  const kv::StoreTicket cancelled = read();
  const kv::StoreTicket kept = read();
  driver.store().cancel(std::vector{cancelled, begun});
  EXPECT_EQ(driver.await(cancelled).fault, StoreFault::kCancelled);
  const kv::StoreTicket lookup = driver.next_ticket();
  EXPECT_FALSE(driver.store().find(lookup, std::vector{sample_label(1).key}).has_value());
  first.open();
  EXPECT_EQ(driver.await(begun).fault, StoreFault::kAbsent);
  EXPECT_EQ(driver.await(kept).fault, StoreFault::kAbsent);
  EXPECT_EQ(driver.await(lookup).keys_found, 1u);
  EXPECT_EQ(driver.await(write).fault, StoreFault::kNone);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(verbs, (std::vector<std::string>{"GET", "EXISTS", "GET", "SET"}));
}

TEST(RemoteStore, ClosesWhileAServerIsSilent) {
  FakeServer server([](FakeServer::Peer& peer) {
    peer.redis_command();
    peer.send("+PONG\r\n");
    peer.wait_until_closed();
  });
  RemoteOptions options = quick_options(server.redis_url());
  options.request_timeout_ns = 60'000'000'000;
  std::vector<std::byte> into(kBytes);
  const auto begin = std::chrono::steady_clock::now();
  {
    StoreDriver driver(options);
    ASSERT_TRUE(driver.connect());
    driver.store().read({driver.next_ticket(), sample_label(1), into});
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
}

TEST(RemoteStore, SaysWhatAMemcachedLacks) {
  const auto says = [](const std::string& settings, const std::string& noop,
                       const std::string& reason) {
    FakeServer server([&](FakeServer::Peer& peer) {
      while (const auto line = peer.line()) peer.send(*line == "mn" ? noop : settings);
    });
    StoreDriver driver(quick_options(server.memcached_url()));
    return driver.is_off_because(reason);
  };
  EXPECT_TRUE(says("STAT item_size_max 2048\r\nEND\r\n", "MN\r\n", "items of 2048 bytes"));
  EXPECT_TRUE(says("END\r\n", "MN\r\n", "item_size_max"));
  EXPECT_TRUE(says("STAT item_size_max 1048576\r\nEND\r\n", "ERROR\r\n", "\"ERROR\""));
}

TEST(RemoteStore, ReadsNoPageWhoseGenerationIsUnknown) {
  std::atomic<bool> garbled = true;
  FakeServer server([&](FakeServer::Peer& peer) {
    while (const auto line = peer.line()) {
      if (*line == "stats settings") {
        peer.send("STAT item_size_max 1048576\r\nEND\r\n");
      } else if (*line == "mn") {
        peer.send("MN\r\n");
      } else if (line->starts_with("ma ")) {
        peer.send(garbled ? "VA 2\r\n0x\r\n" : "VA 1\r\n0\r\n");
      } else {
        const std::string record = record_of(1);
        peer.send("VA " + std::to_string(record.size()) + "\r\n" + record + "\r\n");
      }
    }
  });
  StoreDriver driver(quick_options(server.memcached_url()));
  ASSERT_TRUE(driver.connect());
  EXPECT_EQ(driver.read(1), StoreFault::kIo);
  EXPECT_EQ(driver.write(1), StoreFault::kIo);
  garbled = false;
  EXPECT_EQ(driver.read(1), StoreFault::kNone);
}

TEST(RemoteStore, OpensOnlyWithFilesThatCanBeUsed) {
  RemoteOptions options = quick_options("redis://127.0.0.1:1");
  options.key_file = "/does/not/exist.key";
  EXPECT_NE(RemoteStore::open(options).error().message.find("exist.key"), std::string::npos);
  options = quick_options("rediss://127.0.0.1:1");
  options.tls_ca_file = "/does/not/exist.pem";
  EXPECT_NE(RemoteStore::open(options).error().message.find("exist.pem"), std::string::npos);
  options = quick_options("redis://127.0.0.1:1");
  options.ttl_s = 0;
  EXPECT_NE(RemoteStore::open(options).error().message.find("0 s"), std::string::npos);
}

}  // namespace
}  // namespace pagoda::store
