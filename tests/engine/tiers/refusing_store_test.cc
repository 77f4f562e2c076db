// A store that refuses writes keeps nobody waiting: neither other stores nor the engine.
#include <chrono>

#include "engine/tiers/tier_fixture.h"
#include "store/host/host_store.h"

namespace pagoda::engine {
namespace {

enum class Refusal {
  kAlways,     // it takes no writes, and says so
  kLater,      // it takes a few writes, then none
  kBusyFirst,  // it is busy for a while, then takes no writes
  kFails,      // it takes writes, and every one fails
};

class RefusingStore final : public kv::PageStore {
 public:
  RefusingStore(Refusal refusal, std::uint64_t page_bytes) : refusal_(refusal) {
    behind_ = store::HostStore::open({.bytes_max = 512 * page_bytes, .page_bytes = page_bytes},
                                     kv::memory_copier())
                  .value();
  }

  std::string_view name() const override { return "refusing"; }
  std::optional<std::size_t> find(kv::StoreTicket ticket,
                                  std::span<const kv::PageKey> keys) override {
    return behind_->find(ticket, keys);
  }
  bool keeps(const kv::PageKey& key) override { return behind_->keeps(key); }
  void read(kv::PageRead read) override { behind_->read(std::move(read)); }
  bool write(kv::PageWrite write) override {
    ++writes_tried;
    if (refusal_ == Refusal::kFails) {
      failed_.push_back({.ticket = write.ticket, .fault = kv::StoreFault::kIo});
      return true;
    }
    return refusal_ == Refusal::kLater && writes_tried <= kTaken &&
           behind_->write(std::move(write));
  }
  bool takes_writes() const override {
    switch (refusal_) {
      case Refusal::kAlways:
        return false;
      case Refusal::kLater:
      case Refusal::kBusyFirst:
        return writes_tried < kTaken;
      case Refusal::kFails:
        return true;
    }
    return true;
  }
  void cancel(std::span<const kv::StoreTicket> tickets) override { behind_->cancel(tickets); }
  void poll(std::vector<kv::StoreReport>& reports) override {
    behind_->poll(reports);
    reports.insert(reports.end(), failed_.begin(), failed_.end());
    failed_.clear();
  }
  void on_report(std::function<void()> notify) override { behind_->on_report(std::move(notify)); }
  Result<kv::Removal> remove(const kv::OwnerTag& owner) override { return behind_->remove(owner); }
  Result<kv::Removal> remove_all() override { return behind_->remove_all(); }
  Status flush(std::int64_t timeout_ns) override { return behind_->flush(timeout_ns); }
  kv::StoreStats stats() const override { return behind_->stats(); }

  static constexpr std::uint64_t kTaken = 3;
  std::uint64_t writes_tried = 0;

 private:
  const Refusal refusal_;
  std::unique_ptr<kv::PageStore> behind_;
  std::vector<kv::StoreReport> failed_;
};

std::unique_ptr<store::HostStore> host_store(std::uint64_t page_bytes) {
  return store::HostStore::open({.bytes_max = 512 * page_bytes, .page_bytes = page_bytes},
                                kv::memory_copier())
      .value();
}

class RefusingStores : public testing::TestWithParam<std::tuple<Refusal, bool, WriteMode>> {};

TEST_P(RefusingStores, KeepNobodyWaiting) {
  const auto [refusal, is_first, mode] = GetParam();
  // All requests fit into the pool, and a clean stop keeps all of them.
  const auto pages_kept = [shown = static_cast<int>(mode)](TierFixture& fixture,
                                                           kv::PageStore& other) {
    fixture.core->set_space(kv::space_id("stories"));
    for (std::uint64_t i = 0; i < 6; ++i) {
      fixture.submit(tier_request(i));
      EXPECT_TRUE(fixture.run()) << "request " << i << ", mode " << shown;
    }
    fixture.core->offload_all();
    EXPECT_TRUE(fixture.run()) << "a clean stop";
    EXPECT_EQ(fixture.core->tiers()->writer().pages_pinned(), 0u);
    fixture.core.reset();  // the core ends before its stores
    return other.stats().pages;
  };
  TierFixture alone(200);
  const auto only = host_store(alone.page_bytes());
  alone.open({only.get()}, mode);
  const std::uint64_t wanted = pages_kept(alone, *only);
  EXPECT_GE(wanted, 6u * 6);

  TierFixture fixture(200);
  RefusingStore refusing(refusal, fixture.page_bytes());
  const auto other = host_store(fixture.page_bytes());
  fixture.open(is_first ? std::vector<kv::PageStore*>{&refusing, other.get()}
                        : std::vector<kv::PageStore*>{other.get(), &refusing},
               mode);
  EXPECT_EQ(pages_kept(fixture, *other), wanted);
  // An engine that asked again and again would have asked hundreds of times.
  const std::uint64_t most = refusal == Refusal::kAlways  ? 0
                             : refusal == Refusal::kFails ? 3 * wanted
                                                          : RefusingStore::kTaken;
  EXPECT_LE(refusing.writes_tried, most);
}

INSTANTIATE_TEST_SUITE_P(All, RefusingStores,
                         testing::Combine(testing::Values(Refusal::kAlways, Refusal::kLater,
                                                          Refusal::kBusyFirst, Refusal::kFails),
                                          testing::Bool(),
                                          testing::Values(WriteMode::kUse, WriteMode::kThrough)));

TEST(RefusingStore, AloneDelaysNoStop) {
  TierFixture fixture(200);
  RefusingStore refusing(Refusal::kAlways, fixture.page_bytes());
  const std::unique_ptr<Engine> engine = fixture.make_engine(refusing);
  const auto heard = std::make_shared<TestSink>(1);
  ASSERT_TRUE(engine->submit(tier_request(1), heard).ok());
  ASSERT_TRUE(engine->drain(std::chrono::seconds(60)));
  EXPECT_TRUE(engine->offload_all(std::chrono::seconds(20)))
      << "nothing can be kept, and that is known";
  EXPECT_EQ(refusing.writes_tried, 0u);
}

}  // namespace
}  // namespace pagoda::engine
