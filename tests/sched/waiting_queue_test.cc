#include "sched/waiting_queue.h"

#include <gtest/gtest.h>

#include <memory>

namespace pagoda::sched {
namespace {

class WaitingQueueTest : public testing::Test {
 protected:
  SequenceTask& add(TenantId tenant, std::int32_t priority = 0, std::size_t context_class = 0) {
    SequenceTask& task = *tasks_.emplace_back(std::make_unique<SequenceTask>());
    task.tenant = tenant;
    task.context_class = context_class;
    task.priority = priority;
    task.arrival = tasks_.size();
    queue_.push(task);
    return task;
  }
  std::vector<const SequenceTask*> order(std::uint64_t tokens_each = 0) {
    std::vector<const SequenceTask*> visited;
    WaitingQueue::Walk walk;
    walk.start(queue_, tenants_);
    while (const SequenceTask* const task = walk.next()) {
      visited.push_back(task);
      walk.count_tokens(tokens_each);
    }
    return visited;
  }

  TenantTable tenants_;
  WaitingQueue queue_;
  std::vector<std::unique_ptr<SequenceTask>> tasks_;
};

using Tasks = std::vector<const SequenceTask*>;

TEST_F(WaitingQueueTest, WithinATenantPriorityThenArrivalDecide) {
  const SequenceTask& first = add(TenantId(0));
  const SequenceTask& urgent = add(TenantId(0), -1);
  const SequenceTask& second = add(TenantId(0));
  EXPECT_EQ(order(), (Tasks{&urgent, &first, &second}));
}

TEST_F(WaitingQueueTest, TheTenantWhoseClockIsBehindGoesFirst) {
  const TenantId a = tenants_.add("a", {});
  const TenantId b = tenants_.add("b", {});
  const SequenceTask& of_a = add(a);
  const SequenceTask& of_b = add(b);
  tenants_.charge_tokens(a, 10);
  EXPECT_EQ(order(), (Tasks{&of_b, &of_a}));
}

TEST_F(WaitingQueueTest, PreferredTenantsComeBeforeOthersOfTheSamePriority) {
  const TenantId a = tenants_.add("a", {});
  const TenantId b = tenants_.add("b", {});
  tenants_.charge_tokens(b, 10);
  const SequenceTask& of_a = add(a);
  const SequenceTask& of_b = add(b);
  const SequenceTask& urgent = add(a, -1);
  WaitingQueue::Walk walk;
  walk.start(queue_, tenants_);
  walk.prefer([&](TenantId tenant) { return tenant == b; });
  EXPECT_EQ(walk.next(), &urgent);
  EXPECT_EQ(walk.next(), &of_b);
  EXPECT_EQ(walk.next(), &of_a);
  EXPECT_EQ(walk.next(), nullptr);
}

TEST_F(WaitingQueueTest, PriorityStandsAboveFairness) {
  const TenantId a = tenants_.add("a", {});
  const TenantId b = tenants_.add("b", {});
  tenants_.charge_tokens(a, 10);
  const SequenceTask& of_b = add(b);
  const SequenceTask& urgent_of_a = add(a, -5);
  EXPECT_EQ(order(), (Tasks{&urgent_of_a, &of_b}));
}

TEST_F(WaitingQueueTest, TokensGivenOnAWalkCountOnThatWalk) {
  const TenantId a = tenants_.add("a", {});
  const TenantId b = tenants_.add("b", {});
  const SequenceTask& a1 = add(a);
  const SequenceTask& a2 = add(a);
  const SequenceTask& b1 = add(b);
  EXPECT_EQ(order(), (Tasks{&a1, &a2, &b1}));
  EXPECT_EQ(order(100), (Tasks{&a1, &b1, &a2}));
}

TEST_F(WaitingQueueTest, LengthClassesOfATenantShareItsClockAndKeepItsOrder) {
  const TenantId a = tenants_.add("a", {});
  const TenantId b = tenants_.add("b", {});
  const SequenceTask& a1 = add(a, 0, 1);
  const SequenceTask& a2 = add(a, 0, 0);
  const SequenceTask& a3 = add(a, 0, 1);
  const SequenceTask& b1 = add(b, 0, 1);
  EXPECT_EQ(order(), (Tasks{&a1, &a2, &a3, &b1}));
  EXPECT_EQ(order(100), (Tasks{&a1, &b1, &a2, &a3}));
}

TEST_F(WaitingQueueTest, WhatIsClosedIsVisitedNoMoreOnThatWalk) {
  const TenantId a = tenants_.add("a", {});
  const TenantId b = tenants_.add("b", {});
  const SequenceTask& a1 = add(a, 0, 0);
  add(a, 0, 1);
  add(a, 0, 0);
  const SequenceTask& b1 = add(b, 0, 1);
  const SequenceTask& b2 = add(b, 0, 0);
  add(b, 0, 1);
  WaitingQueue::Walk walk;
  walk.start(queue_, tenants_);
  EXPECT_EQ(walk.next(), &a1);
  walk.close_tenant();
  EXPECT_EQ(walk.next(), &b1);
  walk.close_class();
  EXPECT_EQ(walk.next(), &b2);
  EXPECT_EQ(walk.next(), nullptr);
  EXPECT_EQ(order().size(), 6u) << "the next walk sees them all";
}

TEST_F(WaitingQueueTest, WhatIsRemovedIsGone) {
  SequenceTask& first = add(TenantId(0));
  const SequenceTask& second = add(TenantId(0));
  queue_.remove(first);
  EXPECT_EQ(order(), (Tasks{&second}));
  EXPECT_EQ(queue_.size(), 1u);
}

}  // namespace
}  // namespace pagoda::sched
