// A copier takes pages out of the pool and brings them back, late and sometimes not at all: every
// sequence is that of its request alone. The tests do what a GPU does with streams, without a GPU.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "engine/engine_fixture.h"
#include "engine/tiers/tier_fixture.h"
#include "engine/tiers/tiers.h"
#include "store/host/host_store.h"
#include "store/staged/staged_store.h"
#include "store/test_page_copier.h"

namespace pagoda::engine {
namespace {

std::vector<Request> draw_requests() {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < 10; ++i) {
    Request request;
    request.prompt = model::random_tokens(stories().config(), 100 + i * 13 % 60, 3 + i);
    request.end.max_tokens = 8;
    request.end.ignore_eos = true;
    request.sampling.temperature = i % 2 == 0 ? 0.0f : 0.9f;
    request.sampling.seed = i;
    request.sampling.n = i % 5 == 4 ? 2 : 1;
    requests.push_back(request);
  }
  return requests;
}

struct Fixture {
  Fixture(std::uint32_t blocks, bool staged) {
    backend = CpuBackend::create(stories().config(), stories().weights(), kernels::ref_set(),
                                 tier_backend_options(blocks))
                  .value();
    const std::uint64_t page_bytes = backend->page_layout().page_bytes();
    const store::HostStoreOptions sizes = {.bytes_max = 512 * page_bytes, .page_bytes = page_bytes};
    auto copier = std::make_unique<store::TestCopier>(control);
    if (staged) {
      store = store::StagedStore::open(store::HostStore::open(sizes, kv::memory_copier()).value(),
                                       std::move(copier), {.page_bytes = page_bytes, .slots = 4})
                  .value();
    } else {
      store = store::HostStore::open(sizes, std::move(copier)).value();
    }
    TierOptions tiers;
    tiers.stores = {store.get()};
    tiers.write = WriteMode::kThrough;
    tiers.load = LoadMode::kAlways;
    tiers.owner_tag = tag_of;
    backend->use_tiers(tiers);
    core = std::make_unique<Core>(backend->core_options(), backend->cache(), tenants,
                                  backend->runner(), clock);
    core->set_space(kv::space_id("stories"));
  }

  static kv::OwnerTag tag_of(kv::OwnerId owner) {
    return {{static_cast<std::byte>(owner.value() + 1)}};
  }

  std::shared_ptr<TestSink> submit(const Request& request) {
    auto heard = std::make_shared<TestSink>(request.sampling.n);
    core->submit(RequestId(++requests), request, heard);
    return heard;
  }
  void run() {
    for (;;) {
      if (core->step()) continue;
      if (!core->move_pages() && core->requests_open() == 0) break;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    core->check();
  }

  std::shared_ptr<store::CopierControl> control = std::make_shared<store::CopierControl>();
  std::unique_ptr<CpuBackend> backend;
  std::unique_ptr<kv::PageStore> store;
  sched::TenantTable tenants;
  SteadyClock clock;
  std::unique_ptr<Core> core;
  std::uint64_t requests = 0;
};

class MovedPages : public testing::TestWithParam<bool> {
 protected:
  MovedPages() {
    EngineFixture alone(stories(), tier_backend_options(200), kernels::ref_set());
    for (const Request& request : requests_) {
      alone_.push_back(alone.submit(request));
      alone.run();
    }
  }
  void expect_same(const std::vector<std::shared_ptr<TestSink>>& heard) const {
    ASSERT_EQ(heard.size(), alone_.size());
    for (std::size_t i = 0; i < heard.size(); ++i) {
      for (std::size_t a = 0; a < heard[i]->answers.size(); ++a) {
        ASSERT_EQ(heard[i]->answers[a].tokens, alone_[i]->answers[a].tokens) << i << ", " << a;
      }
    }
  }

  const std::vector<Request> requests_ = draw_requests();
  std::vector<std::shared_ptr<TestSink>> alone_;
};

TEST_P(MovedPages, GiveTheSameOutputsWhenTheyComeBack) {
  Fixture fixture(32, GetParam());
  std::uint64_t loaded = 0;
  for (int round = 0; round < 4; ++round) {
    std::vector<std::shared_ptr<TestSink>> heard;
    for (const Request& request : requests_) {
      heard.push_back(fixture.submit(request));
      if (round % 2 == 1) fixture.run();
    }
    fixture.run();
    expect_same(heard);
    for (const auto& each : heard) loaded += each->answers[0].record.load.tokens_loaded();
  }
  EXPECT_GT(loaded, 500u);
  EXPECT_EQ(fixture.control->unordered, 0u);
}

TEST_P(MovedPages, ThatFailOnTheWayAreComputed) {
  Fixture fixture(32, GetParam());
  for (int round = 0; round < 6; ++round) {
    std::vector<std::shared_ptr<TestSink>> heard;
    for (const Request& request : requests_) {
      fixture.control->fail_calls = round % 3;
      heard.push_back(fixture.submit(request));
      fixture.run();
    }
    expect_same(heard);
  }
  const auto faults = fixture.store->stats().faults;
  EXPECT_GT(faults[static_cast<std::size_t>(kv::StoreFault::kIo)], 0u);
}

TEST_P(MovedPages, ThatAreHeldUpStopNobodyElse) {
  Fixture fixture(200, GetParam());
  fixture.submit(requests_[0]);
  fixture.run();
  fixture.backend->cache().clear();
  fixture.control->hold(true);
  const auto waiting = fixture.submit(requests_[0]);  // its pages do not come
  const auto other = fixture.submit(requests_[1]);
  for (int i = 0; i < 2000 && !other->ended(); ++i) fixture.core->step();
  EXPECT_TRUE(other->ended());
  EXPECT_FALSE(waiting->ended());
  fixture.control->hold(false);
  fixture.run();
  EXPECT_EQ(other->answers[0].tokens, alone_[1]->answers[0].tokens);
  EXPECT_EQ(waiting->answers[0].tokens, alone_[0]->answers[0].tokens);
}

// No store has a page that is still on its way out of the pool, so none could remove it.
TEST_P(MovedPages, ThatAreOnTheirWayOutAreWaitedForBeforeATenantIsRemoved) {
  Fixture fixture(200, GetParam());
  const kv::OwnerId owner(fixture.tenants.add("anna", {}).value());
  Request request = requests_[0];
  request.tenant = TenantId(owner.value());
  request.cache_salt = "anna's";
  fixture.control->hold(true);
  const auto heard = fixture.submit(request);
  for (int i = 0; i < 2000 && !heard->ended(); ++i) fixture.core->step();
  ASSERT_TRUE(heard->ended());
  fixture.core->move_pages();
  fixture.core->begin_removal(owner);
  EXPECT_FALSE(fixture.core->removal_may_go_on(owner));
  fixture.control->hold(false);
  fixture.run();
  ASSERT_TRUE(fixture.core->removal_may_go_on(owner));
  EXPECT_GT(fixture.store->remove(fixture.tag_of(owner)).value().pages, 0u);
  fixture.core->end_removal(owner);
  fixture.core->offload_all();
  fixture.run();
  EXPECT_EQ(fixture.store->stats().pages, 0u);
  EXPECT_EQ(fixture.backend->cache().salts().blocks_charged(owner), 0u);
}

INSTANTIATE_TEST_SUITE_P(Ways, MovedPages, testing::Values(false, true),
                         [](const auto& tested) { return tested.param ? "Staged" : "Host"; });

}  // namespace
}  // namespace pagoda::engine
