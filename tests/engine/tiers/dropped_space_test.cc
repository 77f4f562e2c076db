// Pages turn out to be another model's: nothing that was computed from them stays.
#include <atomic>
#include <cstring>

#include "engine/tiers/tier_fixture.h"
#include "store/host/host_store.h"

namespace pagoda::engine {
namespace {

// OtherModel copies pages as they are, or as those of another model, when the test lets it.
struct OtherModel {
  std::atomic<bool> is_other{false};
  std::atomic<bool> is_held{false};
};

class OtherModelCopier final : public kv::PageCopier {
 public:
  explicit OtherModelCopier(OtherModel& model) : model_(model) {}
  Result<kv::HostMemory> take_memory(std::uint64_t bytes) override {
    return inner_->take_memory(bytes);
  }
  Status order() override { return inner_->order(); }
  Status copy(std::span<const kv::PageCopy> moves) override {
    while (model_.is_held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!model_.is_other) return inner_->copy(moves);
    for (const kv::PageCopy& each : moves) std::memset(each.to, 0, each.bytes);
    return ok_status();
  }

 private:
  OtherModel& model_;
  std::unique_ptr<kv::PageCopier> inner_ = kv::memory_copier();
};

class DroppedSpace : public testing::Test {
 protected:
  DroppedSpace() {
    const std::uint64_t page_bytes = TierFixture(200).page_bytes();
    store_ = store::HostStore::open({.bytes_max = 512 * page_bytes, .page_bytes = page_bytes},
                                    std::make_unique<OtherModelCopier>(model_))
                 .value();
    TierFixture before(200);
    before.open({store_.get()}, WriteMode::kThrough);
    before.core->set_space(space_);
    for (std::uint64_t i = 0; i < 3; ++i) alone_.push_back(before.submit(tier_request(i)));
    EXPECT_TRUE(before.run());
    EXPECT_GE(store_->stats().pages, 18u);
    model_.is_other = true;
    fixture_.open({store_.get()}, WriteMode::kThrough);
  }
  ~DroppedSpace() override { model_.is_held = false; }

  const std::vector<TokenId>& tokens_alone(std::size_t i) { return alone_[i]->answers[0].tokens; }
  static std::uint64_t cached(const TestSink& heard) {
    return heard.answers[0].record.prompt_tokens_cached;
  }

  OtherModel model_;
  const kv::SpaceId space_ = kv::space_id("stories");
  std::unique_ptr<store::HostStore> store_;
  TierFixture fixture_{200};
  std::vector<std::shared_ptr<TestSink>> alone_;
};

TEST_F(DroppedSpace, LeavesMemoryAndIsNeitherReadNorWrittenAnyMore) {
  fixture_.core->set_space(space_, false);
  const auto misled = fixture_.submit(tier_request(0));
  ASSERT_TRUE(fixture_.run());
  ASSERT_EQ(cached(*misled), 96u);
  ASSERT_NE(misled->answers[0].tokens, tokens_alone(0)) << "the test's pages mislead";
  const auto misled_too = fixture_.submit(tier_request(0));
  ASSERT_TRUE(fixture_.run());
  ASSERT_NE(misled_too->answers[0].tokens, tokens_alone(0)) << "from memory by now";

  fixture_.core->drop_space("another model's");
  const kv::StoreStats before = store_->stats();
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < 3; ++i) {
      const auto heard = fixture_.submit(tier_request(i));
      EXPECT_TRUE(fixture_.core->step()) << "it waits for no page";
      ASSERT_TRUE(fixture_.run());
      EXPECT_EQ(heard->answers[0].tokens, tokens_alone(i));
      EXPECT_EQ(cached(*heard), round == 0 ? 0u : 99u) << "memory is used as ever";
    }
  }
  fixture_.core->offload_all();
  ASSERT_TRUE(fixture_.run());
  EXPECT_EQ(store_->stats().pages_read, before.pages_read);
  EXPECT_EQ(store_->stats().pages_written, before.pages_written);
}

TEST_F(DroppedSpace, EndsRequestsThatAreOpen) {
  fixture_.core->set_space(space_, false);
  Request endless = tier_request(0);
  endless.end.max_tokens = 100;
  const auto running = fixture_.submit(endless);
  for (int i = 0; i < 5000 && running->answers[0].tokens.empty(); ++i) {
    if (!fixture_.core->step()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  ASSERT_FALSE(running->answers[0].tokens.empty());
  fixture_.core->drop_space("another model's");
  ASSERT_TRUE(running->ended());
  EXPECT_EQ(running->answers[0].reason, FinishReason::kError);
  EXPECT_EQ(running->answers[0].message, "another model's");
  ASSERT_TRUE(fixture_.run());
  const auto heard = fixture_.submit(tier_request(0));
  ASSERT_TRUE(fixture_.run());
  EXPECT_EQ(heard->answers[0].tokens, tokens_alone(0));
  EXPECT_EQ(cached(*heard), 0u);
}

TEST_F(DroppedSpace, TakesPagesThatAreOnTheirWayWithIt) {
  model_.is_held = true;
  fixture_.core->set_space(space_, false);
  const auto waiting = fixture_.submit(tier_request(0));
  for (int i = 0; i < 20; ++i) fixture_.core->step();
  ASSERT_TRUE(fixture_.core->awaits_pages());
  fixture_.core->drop_space("another model's");
  EXPECT_TRUE(waiting->ended());
  const auto meanwhile = fixture_.submit(tier_request(1));
  while (fixture_.core->step()) {
  }
  ASSERT_TRUE(meanwhile->ended()) << "nobody waits for what was dropped";
  EXPECT_EQ(meanwhile->answers[0].tokens, tokens_alone(1));
  model_.is_held = false;
  ASSERT_TRUE(fixture_.run());
  const auto heard = fixture_.submit(tier_request(0));
  ASSERT_TRUE(fixture_.run());
  EXPECT_EQ(heard->answers[0].tokens, tokens_alone(0));
  EXPECT_EQ(cached(*heard), 0u);
}

TEST_F(DroppedSpace, IsNotWrittenBeforeItIsSure) {
  model_.is_other = false;
  fixture_.core->set_space(space_, false);
  const std::uint64_t before = store_->stats().pages_written;
  for (int round = 0; round < 2; ++round) fixture_.submit(tier_request(7));
  ASSERT_TRUE(fixture_.run());
  EXPECT_EQ(store_->stats().pages_written, before);
  fixture_.core->set_space(space_);
  fixture_.submit(tier_request(7));
  ASSERT_TRUE(fixture_.run());
  EXPECT_EQ(store_->stats().pages_written, before + 6);
}

TEST_F(DroppedSpace, ThatWasNeverKnownCostsNobodyAnything) {
  const auto waiting = fixture_.submit(tier_request(0));
  fixture_.core->step();
  EXPECT_FALSE(waiting->ended()) << "it waits a moment for the space";
  fixture_.core->drop_space("no fingerprint");
  ASSERT_TRUE(fixture_.run());
  EXPECT_EQ(waiting->answers[0].tokens, tokens_alone(0));
  EXPECT_EQ(waiting->answers[0].reason, FinishReason::kLength);
}

}  // namespace
}  // namespace pagoda::engine
