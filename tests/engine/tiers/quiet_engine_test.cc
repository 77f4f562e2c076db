// While stores have pages to move and nothing can be done, the engine waits for their notification.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "engine/tiers/tier_fixture.h"
#include "store/host/host_store.h"

namespace pagoda::engine {
namespace {

using std::chrono::milliseconds;

// UnreadyStore is like a disk whose index is being read: it takes no write and answers no lookup
// until it is ready.
class UnreadyStore final : public kv::PageStore {
 public:
  explicit UnreadyStore(std::uint64_t page_bytes)
      : behind_(store::HostStore::open({.bytes_max = 512 * page_bytes, .page_bytes = page_bytes},
                                       kv::memory_copier())
                    .value()) {}

  std::string_view name() const override { return "unready"; }
  std::optional<std::size_t> find(kv::StoreTicket ticket,
                                  std::span<const kv::PageKey> keys) override {
    if (is_ready_) return behind_->find(ticket, keys);
    asked_ = ticket;
    return std::nullopt;
  }
  bool keeps(const kv::PageKey& key) override { return is_ready_ && behind_->keeps(key); }
  void read(kv::PageRead read) override { behind_->read(std::move(read)); }
  bool write(kv::PageWrite write) override { return is_ready_ && behind_->write(std::move(write)); }
  bool takes_writes() const override { return true; }
  void cancel(std::span<const kv::StoreTicket> tickets) override { behind_->cancel(tickets); }
  void poll(std::vector<kv::StoreReport>& reports) override {
    ++polls;
    if (is_ready_ && asked_) reports.push_back({.ticket = *std::exchange(asked_, std::nullopt)});
    behind_->poll(reports);
  }
  void on_report(std::function<void()> notify) override {
    notify_ = notify;
    behind_->on_report(std::move(notify));
  }
  Result<kv::Removal> remove(const kv::OwnerTag& owner) override { return behind_->remove(owner); }
  Result<kv::Removal> remove_all() override { return behind_->remove_all(); }
  Status flush(std::int64_t timeout_ns) override { return behind_->flush(timeout_ns); }
  kv::StoreStats stats() const override { return behind_->stats(); }

  void become_ready() {
    is_ready_ = true;
    notify_();
  }

  std::atomic<std::uint64_t> polls = 0;

 private:
  std::atomic<bool> is_ready_ = false;
  std::optional<kv::StoreTicket> asked_;  // used by the engine's thread
  std::function<void()> notify_;
  std::unique_ptr<store::HostStore> behind_;
};

// A store that is polled again and again would never be left alone for so long.
bool is_left_alone(const UnreadyStore& store) {
  for (int tries = 0; tries < 200; ++tries) {
    const std::uint64_t before = store.polls;
    std::this_thread::sleep_for(milliseconds(150));
    if (store.polls == before) return true;
  }
  return false;
}

TEST(QuietEngine, WaitsForAStoreThatIsNotReadyWithoutAskingItAgainAndAgain) {
  TierFixture fixture(200);
  UnreadyStore store(fixture.page_bytes());
  const std::unique_ptr<Engine> engine = fixture.make_engine(store, WriteMode::kThrough);
  const auto heard = std::make_shared<TestSink>(1);
  ASSERT_TRUE(engine->submit(tier_request(1), heard).ok());
  for (int i = 0; i < 30000 && engine->snapshot().requests_finished == 0; ++i) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_TRUE(is_left_alone(store));
  EXPECT_EQ(store.stats().pages, 0u);
  store.become_ready();
  EXPECT_TRUE(engine->drain(std::chrono::seconds(60)));
  EXPECT_GE(store.stats().pages, 6u) << "what waited was written when it rang";
}

// A store closes after its engine, and notifies of requests that it ends then: sanitizers see what
// the notification touches.
TEST(QuietEngine, MayBeGoneWhenAStoreNotifies) {
  TierFixture fixture(200);
  UnreadyStore store(fixture.page_bytes());
  fixture.make_engine(store).reset();
  store.become_ready();
  const std::unique_ptr<Engine> engine = fixture.make_engine(store, WriteMode::kThrough);
  ASSERT_TRUE(engine->submit(tier_request(1), std::make_shared<TestSink>(1)).ok());
  EXPECT_TRUE(engine->drain(std::chrono::seconds(60)));
  EXPECT_GE(store.stats().pages, 6u);
}

// LateStore reports what has been written when it is asked for the n-th time since.
class LateStore final : public kv::PageStore {
 public:
  explicit LateStore(int polls_before_reports) : polls_before_reports_(polls_before_reports) {}

  std::string_view name() const override { return "late"; }
  std::optional<std::size_t> find(kv::StoreTicket /*ticket*/,
                                  std::span<const kv::PageKey> /*keys*/) override {
    return 0;
  }
  bool keeps(const kv::PageKey& key) override { return kept_.contains(key); }
  void read(kv::PageRead /*read*/) override { ADD_FAILURE() << "find() finds nothing"; }
  bool write(kv::PageWrite write) override {
    kept_.insert(write.label.key);
    written_.push_back({.ticket = write.ticket});
    polls_left_ = polls_before_reports_;
    return true;
  }
  bool takes_writes() const override { return true; }
  void cancel(std::span<const kv::StoreTicket> /*tickets*/) override {}
  void poll(std::vector<kv::StoreReport>& reports) override {
    if (--polls_left_ > 0) {
      if (!written_.empty()) notify_();  // soon
      return;
    }
    reports.insert(reports.end(), written_.begin(), written_.end());
    written_.clear();
  }
  void on_report(std::function<void()> notify) override { notify_ = std::move(notify); }
  Result<kv::Removal> remove(const kv::OwnerTag& /*owner*/) override { return kv::Removal{}; }
  Result<kv::Removal> remove_all() override { return kv::Removal{}; }
  Status flush(std::int64_t /*timeout_ns*/) override { return ok_status(); }
  kv::StoreStats stats() const override {
    kv::StoreStats stats;
    stats.pages = kept_.size();
    return stats;
  }

 private:
  int polls_before_reports_;
  int polls_left_ = 0;
  std::set<kv::PageKey> kept_;
  std::vector<kv::StoreReport> written_;
  std::function<void()> notify_;
};

// Whichever look takes the last report, what a sleeping engine shows is what it left. The engine
// looks several times a step, and so often only after the answer's end.
TEST(QuietEngine, ShowsNoPageAsHeldThatHasBeenWritten) {
  TierFixture fixture(200);
  for (int polls = 41; polls <= 60; ++polls) {
    LateStore store(polls);
    const std::unique_ptr<Engine> engine = fixture.make_engine(store, WriteMode::kThrough);
    ASSERT_TRUE(engine->submit(tier_request(polls), std::make_shared<TestSink>(1)).ok());
    EXPECT_TRUE(engine->drain(std::chrono::seconds(60)));
    EXPECT_GE(store.stats().pages, 6u);
    EXPECT_EQ(engine->snapshot().blocks_active(), 0u) << polls << " polls before reports";
  }
}

}  // namespace
}  // namespace pagoda::engine
