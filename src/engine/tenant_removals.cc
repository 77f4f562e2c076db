#include "engine/tenant_removals.h"

#include <utility>

namespace pagoda::engine {

TenantRemovals::TenantRemovals(const TierOptions& tiers, Core& core, kv::Cache& cache,
                               std::function<void()> wake)
    : tiers_(tiers), core_(core), cache_(cache), wake_(std::move(wake)) {}

TenantRemovals::~TenantRemovals() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void TenantRemovals::begin(kv::OwnerId owner, Done done) {
  Removal removal = {.owner = owner, .done = std::move(done)};
  removal.pages_left = core_.begin_removal(owner);
  const bool in_pool_alone = tiers_.stores.empty() || !tiers_.owner_tag;
  if (in_pool_alone) return finish(std::move(removal));
  waiting_.push_back(std::move(removal));
  poll();
}

void TenantRemovals::poll() {
  if (waiting_.empty() && removing_ == 0) return;
  std::vector<Removal> ended;
  {
    const std::lock_guard lock(mutex_);
    ended.swap(ended_);
    for (std::size_t left = waiting_.size(); left > 0; --left) {
      Removal removal = std::move(waiting_.front());
      waiting_.pop_front();
      const bool goes_on = core_.removal_may_go_on(removal.owner);
      removing_ += goes_on ? 1 : 0;
      (goes_on ? queue_ : waiting_).push_back(std::move(removal));
    }
  }
  if (removing_ > 0 && !thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_one();
  removing_ -= ended.size();
  for (Removal& removal : ended) finish(std::move(removal));
}

void TenantRemovals::finish(Removal removal) {
  removal.pages_left += core_.end_removal(removal.owner);
  TenantRemoval told = {.tiers = {}, .pages_held = cache_.salts().blocks_retired(removal.owner)};
  told.tiers.push_back({"pool", kv::Removal{.pages = removal.pages_left}});
  for (TierRemoval& store : removal.stores) told.tiers.push_back(std::move(store));
  removal.done(std::move(told));
}

void TenantRemovals::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    Removal removal = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    const kv::OwnerTag tag = tiers_.owner_tag(removal.owner);
    for (kv::PageStore* const store : tiers_.stores) {
      removal.stores.push_back({std::string(store->name()), store->remove(tag)});
    }
    lock.lock();
    ended_.push_back(std::move(removal));
    lock.unlock();
    wake_();
    lock.lock();
  }
}

}  // namespace pagoda::engine
