// A tenant's private pages leave the pool and its tiers, wherever they were on their way.
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "engine/engine.h"
#include "engine/null_runner.h"
#include "engine/tiers/toy_fixture.h"
#include "kv/hash/block_hash.h"

namespace pagoda::engine {
namespace {

constexpr kv::OwnerId kAnna{1};
const kv::OwnerTag kAnnasTag{{std::byte{2}}};

struct Situation {
  std::string name;
  bool holds_writes = false;
  std::uint32_t writes_running_max = 32;
  int steps = 1000;  // steps of her request before the removal
  bool is_loading = false;
};

class RemovedTenant : public testing::TestWithParam<Situation> {
 protected:
  static std::size_t pages_of_anna(const ScriptedStore& store) {
    std::size_t pages = 0;
    for (const auto& [key, page] : store.pages) pages += page.label.owner == kAnnasTag ? 1 : 0;
    return pages;
  }
  static Request annas() {
    Request request = toy_request(34, 12);
    request.tenant = TenantId(1);
    request.cache_salt = "anna's";
    return request;
  }
};

TEST_P(RemovedTenant, IsFoundNowhereAndWrittenNoMore) {
  const Situation& situation = GetParam();
  ToyFixture fixture(
      {.load = LoadMode::kAlways, .writes_running_max = situation.writes_running_max});
  fixture.tenants.add("anna", {});
  Request berts = toy_request(34, 3);
  berts.tenant = fixture.tenants.add("bert", {});
  berts.cache_salt = "bert's";
  fixture.submit(berts);
  fixture.run();
  const std::size_t pages_of_others = fixture.store.pages.size();
  ASSERT_GE(pages_of_others, 8u);
  if (situation.is_loading) {
    fixture.submit(annas());
    fixture.run();
    fixture.clear_pool();
  }
  fixture.store.holds_writes = situation.holds_writes;
  const auto before = fixture.submit(annas());
  fixture.run(situation.steps);
  ASSERT_EQ(situation.is_loading, !fixture.store.reads.empty());

  fixture.core().begin_removal(kAnna);
  EXPECT_FALSE(!fixture.store.writes.empty() && fixture.core().removal_may_go_on(kAnna));
  const auto meanwhile = fixture.submit(annas());
  fixture.run(3);
  fixture.store.end_writes();
  for (int i = 0; i < 100 && !fixture.core().removal_may_go_on(kAnna); ++i) fixture.run(1);
  ASSERT_TRUE(fixture.core().removal_may_go_on(kAnna));
  ASSERT_TRUE(fixture.store.remove(kAnnasTag).ok());
  fixture.run(2);
  fixture.core().end_removal(kAnna);
  EXPECT_EQ(pages_of_anna(fixture.store), 0u);
  const auto held = [&] {
    return fixture.cache().salts().blocks_charged(kAnna) -
           fixture.cache().salts().blocks_retired(kAnna);
  };
  EXPECT_EQ(held(), 0u) << "what is left is found by nobody";

  fixture.store.holds_writes = false;
  fixture.store.end_reads([](const kv::PageRead&) { return true; }, kv::StoreFault::kAbsent);
  fixture.run();
  fixture.store.end_writes();
  fixture.run();
  for (const auto& heard : {before, meanwhile}) {
    ASSERT_TRUE(heard->ended());
    EXPECT_EQ(heard->answers[0].tokens, fixture.alone(annas()));
  }
  fixture.core().offload_all();
  for (int i = 0; i < 200 && fixture.core().move_pages(); ++i) fixture.pass_ns(1000);
  EXPECT_EQ(pages_of_anna(fixture.store), 0u) << "at a stop, too";
  EXPECT_EQ(fixture.cache().salts().blocks_charged(kAnna), 0u);
  EXPECT_GE(fixture.store.pages.size(), pages_of_others);
  EXPECT_EQ(fixture.wrong_page(), "");
}

TEST_P(RemovedTenant, IsAsOneWhoNeverAskedAndNobodyElseNotices) {
  const Situation& situation = GetParam();
  ToyFixture fixture(
      {.load = LoadMode::kAlways, .writes_running_max = situation.writes_running_max});
  fixture.store.holds_reads = false;
  fixture.tenants.add("anna", {});
  Request berts = toy_request(34, 3);
  berts.tenant = fixture.tenants.add("bert", {});
  berts.cache_salt = "bert's";
  fixture.submit(berts);
  fixture.submit(annas());
  fixture.run();
  fixture.core().begin_removal(kAnna);
  ASSERT_TRUE(fixture.core().removal_may_go_on(kAnna));
  ASSERT_TRUE(fixture.store.remove(kAnnasTag).ok());
  fixture.core().end_removal(kAnna);
  const auto again = fixture.submit(annas());
  const auto others = fixture.submit(berts);
  fixture.run();
  EXPECT_EQ(again->answers[0].record.prompt_tokens_cached, 0u);
  EXPECT_EQ(others->answers[0].record.prompt_tokens_cached, 33u);
  EXPECT_GE(pages_of_anna(fixture.store), 8u) << "she is written again";
  const auto twice = fixture.submit(annas());
  fixture.run();
  EXPECT_EQ(twice->answers[0].record.prompt_tokens_cached, 33u);
}

INSTANTIATE_TEST_SUITE_P(
    Situations, RemovedTenant,
    testing::Values(Situation{"AtRest"}, Situation{.name = "BeingWritten", .holds_writes = true},
                    Situation{
                        .name = "QueuedToBeWritten", .holds_writes = true, .writes_running_max = 2},
                    Situation{.name = "Running", .steps = 4},
                    Situation{.name = "RunningAndWritten", .holds_writes = true, .steps = 4},
                    Situation{.name = "BeingLoaded", .steps = 2, .is_loading = true}),
    [](const auto& tested) { return tested.param.name; });

// SlowToRemove is a store whose removal takes as long as the test likes.
class SlowToRemove final : public kv::PageStore {
 public:
  std::string_view name() const override { return "slow"; }
  std::optional<std::size_t> find(kv::StoreTicket, std::span<const kv::PageKey>) override {
    return 0;
  }
  bool keeps(const kv::PageKey&) override { return true; }
  void read(kv::PageRead) override {}
  bool write(kv::PageWrite) override { return false; }
  bool takes_writes() const override { return true; }
  void cancel(std::span<const kv::StoreTicket>) override {}
  void poll(std::vector<kv::StoreReport>&) override {}
  void on_report(std::function<void()>) override {}
  Result<kv::Removal> remove(const kv::OwnerTag& owner) override {
    asked.set_value(owner);
    go_on.get_future().wait();
    return kv::Removal{.pages = 5};
  }
  Result<kv::Removal> remove_all() override { return kv::Removal{}; }
  Status flush(std::int64_t) override { return ok_status(); }
  kv::StoreStats stats() const override { return {}; }

  std::promise<kv::OwnerTag> asked;
  std::promise<void> go_on;
};

class Ended final : public ReplySink {
 public:
  void on_token(std::uint32_t, const OutputToken&) override {}
  void on_finish(std::uint32_t, FinishReason why, const SequenceRecord&,
                 const std::string&) override {
    reason.set_value(why);
  }
  std::promise<FinishReason> reason;
};

TEST(EngineRemoval, StopsNobodyWhileAStoreTakesItsTime) {
  SlowToRemove store;
  kv::Cache cache({.blocks = 64, .hash_blocks = true, .on_deduplicate = {}});
  std::vector<std::byte> page(16);
  NullRunner runner;
  SteadyClock clock;
  EngineOptions options;
  options.core.limits = {.vocabulary = 100, .context_tokens = 1000, .sequences_max = 16};
  options.core.space = "null";
  options.core.tiers.stores = {&store};
  options.core.tiers.page_at = [&](kv::BlockId) { return std::span(page); };
  options.core.tiers.owner_tag = [](kv::OwnerId) { return kAnnasTag; };
  options.tenants = {{"anna", {}}};
  Engine engine(options, cache, runner, clock);
  engine.set_space({});

  std::promise<TenantRemoval> removed;
  std::atomic<bool> is_done = false;
  engine.remove_tenant(TenantId(1), [&](TenantRemoval removal) {
    is_done = true;
    removed.set_value(std::move(removal));
  });
  EXPECT_EQ(store.asked.get_future().get(), kAnnasTag);
  for (int i = 0; i < 3; ++i) {
    Request request = toy_request(20);
    request.tenant = TenantId(1);
    const auto ended = std::make_shared<Ended>();
    ASSERT_TRUE(engine.submit(request, ended).ok());
    EXPECT_EQ(ended->reason.get_future().get(), FinishReason::kLength);
  }
  EXPECT_FALSE(is_done);
  store.go_on.set_value();
  const TenantRemoval told = removed.get_future().get();
  ASSERT_EQ(told.tiers.size(), 2u);
  EXPECT_EQ(told.tiers[0].tier, "pool");
  EXPECT_EQ(told.tiers[1].outcome.value().pages, 5u);
  EXPECT_EQ(told.pages_held, 0u);
}

}  // namespace
}  // namespace pagoda::engine
