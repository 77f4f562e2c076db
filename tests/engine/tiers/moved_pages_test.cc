// Pages that a mover took out of the pool and brought back, late and sometimes not at all: every
// answer is that of its request alone. What a GPU does with streams, without one.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "engine/engine_desk.h"
#include "engine/tiers/tier_desk.h"
#include "engine/tiers/tiers.h"
#include "store/host/host_store.h"
#include "store/staged/staged_store.h"
#include "store/test_mover.h"

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

struct Desk {
  Desk(std::uint32_t blocks, bool staged) {
    machine = CpuMachine::create(stories().config(), stories().weights(), kernels::ref_set(),
                                 tier_machine_options(blocks))
                  .value();
    const std::uint64_t page_bytes = machine->page_layout().page_bytes();
    const store::HostStoreOptions sizes = {.bytes_max = 512 * page_bytes, .page_bytes = page_bytes};
    auto mover = std::make_unique<store::TestMover>(control);
    if (staged) {
      store = store::StagedStore::open(store::HostStore::open(sizes, kv::memory_mover()).value(),
                                       std::move(mover), {.page_bytes = page_bytes, .slots = 4})
                  .value();
    } else {
      store = store::HostStore::open(sizes, std::move(mover)).value();
    }
    TierOptions tiers;
    tiers.stores = {store.get()};
    tiers.write = WriteMode::kThrough;
    tiers.load = LoadMode::kAlways;
    tiers.owner_tag = tag_of;
    machine->use_tiers(tiers);
    core = std::make_unique<Core>(machine->core_options(), machine->cache(), tenants,
                                  machine->runner(), clock);
    core->set_space(kv::space_id("stories"));
  }

  static kv::OwnerTag tag_of(kv::OwnerId owner) {
    return {{static_cast<std::byte>(owner.value() + 1)}};
  }

  std::shared_ptr<Heard> submit(const Request& request) {
    auto heard = std::make_shared<Heard>(request.sampling.n);
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

  std::shared_ptr<store::MoverControl> control = std::make_shared<store::MoverControl>();
  std::unique_ptr<CpuMachine> machine;
  std::unique_ptr<kv::PageStore> store;
  sched::TenantTable tenants;
  SteadyClock clock;
  std::unique_ptr<Core> core;
  std::uint64_t requests = 0;
};

class MovedPages : public testing::TestWithParam<bool> {
 protected:
  MovedPages() {
    EngineDesk alone(stories(), tier_machine_options(200), kernels::ref_set());
    for (const Request& request : requests_) {
      alone_.push_back(alone.submit(request));
      alone.run();
    }
  }
  void expect_same(const std::vector<std::shared_ptr<Heard>>& heard) const {
    ASSERT_EQ(heard.size(), alone_.size());
    for (std::size_t i = 0; i < heard.size(); ++i) {
      for (std::size_t a = 0; a < heard[i]->answers.size(); ++a) {
        ASSERT_EQ(heard[i]->answers[a].tokens, alone_[i]->answers[a].tokens) << i << ", " << a;
      }
    }
  }

  const std::vector<Request> requests_ = draw_requests();
  std::vector<std::shared_ptr<Heard>> alone_;
};

TEST_P(MovedPages, GiveTheSameAnswersWhenTheyComeBack) {
  Desk desk(32, GetParam());
  std::uint64_t loaded = 0;
  for (int round = 0; round < 4; ++round) {
    std::vector<std::shared_ptr<Heard>> heard;
    for (const Request& request : requests_) {
      heard.push_back(desk.submit(request));
      if (round % 2 == 1) desk.run();
    }
    desk.run();
    expect_same(heard);
    for (const auto& each : heard) loaded += each->answers[0].record.load.tokens_loaded();
  }
  EXPECT_GT(loaded, 500u);
  EXPECT_EQ(desk.control->unordered, 0u);
}

TEST_P(MovedPages, ThatFailOnTheWayAreComputed) {
  Desk desk(32, GetParam());
  for (int round = 0; round < 6; ++round) {
    std::vector<std::shared_ptr<Heard>> heard;
    for (const Request& request : requests_) {
      desk.control->fail_calls = round % 3;
      heard.push_back(desk.submit(request));
      desk.run();
    }
    expect_same(heard);
  }
  const auto faults = desk.store->stats().faults;
  EXPECT_GT(faults[static_cast<std::size_t>(kv::StoreFault::kIo)], 0u);
}

TEST_P(MovedPages, ThatAreHeldUpStopNobodyElse) {
  Desk desk(200, GetParam());
  desk.submit(requests_[0]);
  desk.run();
  desk.machine->cache().clear();
  desk.control->hold(true);
  const auto waiting = desk.submit(requests_[0]);  // its pages do not come
  const auto other = desk.submit(requests_[1]);
  for (int i = 0; i < 2000 && !other->ended(); ++i) desk.core->step();
  EXPECT_TRUE(other->ended());
  EXPECT_FALSE(waiting->ended());
  desk.control->hold(false);
  desk.run();
  EXPECT_EQ(other->answers[0].tokens, alone_[1]->answers[0].tokens);
  EXPECT_EQ(waiting->answers[0].tokens, alone_[0]->answers[0].tokens);
}

// A page that is still on its way out of the pool is in no store that could remove it.
TEST_P(MovedPages, ThatAreOnTheirWayOutAreWaitedForBeforeATenantIsRemoved) {
  Desk desk(200, GetParam());
  const kv::OwnerId owner(desk.tenants.add("anna", {}).value());
  Request request = requests_[0];
  request.tenant = TenantId(owner.value());
  request.cache_salt = "anna's";
  desk.control->hold(true);
  const auto heard = desk.submit(request);
  for (int i = 0; i < 2000 && !heard->ended(); ++i) desk.core->step();
  ASSERT_TRUE(heard->ended());
  desk.core->move_pages();
  desk.core->begin_removal(owner);
  EXPECT_FALSE(desk.core->removal_may_go_on(owner));
  desk.control->hold(false);
  desk.run();
  ASSERT_TRUE(desk.core->removal_may_go_on(owner));
  EXPECT_GT(desk.store->remove(desk.tag_of(owner)).value().pages, 0u);
  desk.core->end_removal(owner);
  desk.core->keep_all();
  desk.run();
  EXPECT_EQ(desk.store->stats().pages, 0u);
  EXPECT_EQ(desk.machine->cache().salts().blocks_charged(owner), 0u);
}

INSTANTIATE_TEST_SUITE_P(Ways, MovedPages, testing::Values(false, true),
                         [](const auto& tested) { return tested.param ? "Staged" : "Host"; });

}  // namespace
}  // namespace pagoda::engine
