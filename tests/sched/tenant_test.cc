#include "sched/tenant.h"

#include <gtest/gtest.h>

namespace pagoda::sched {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(Tenant, MinuteRefillsWithTimeAndRefusalsNameTheLimit) {
  TenantTable table;
  const TenantId id = table.add("acme", {.tokens_per_minute = 600});
  EXPECT_TRUE(table.admit(id, 600, 0).ok());
  table.enter(id, 600);
  const Status refused = table.admit(id, 1, 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  EXPECT_NE(refused.error().message.find("600 tokens per minute"), std::string::npos);
  EXPECT_TRUE(table.admit(id, 10, 1 * kSecond).ok());  // the limit refills 10 tokens per second
  EXPECT_FALSE(table.admit(id, 11, 1 * kSecond).ok());
}

TEST(Tenant, AnswersMayOverdrawTheMinuteAndPayItBack) {
  TenantTable table;
  const TenantId id = table.add("acme", {.tokens_per_minute = 60});
  table.enter(id, 60);
  table.charge_minute(id, 30);
  EXPECT_FALSE(table.admit(id, 1, 30 * kSecond).ok());  // the balance is back at 0
  EXPECT_TRUE(table.admit(id, 1, 31 * kSecond).ok());
}

TEST(Tenant, APromptBeyondAWholeMinuteIsNeverGoingToWork) {
  TenantTable table;
  const TenantId id = table.add("acme", {.tokens_per_minute = 60});
  const Status refused = table.admit(id, 61, 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfRange);
}

TEST(Tenant, AFullQueueIsRefused) {
  TenantTable table;
  const TenantId id = table.add("acme", {.requests_queued = 2});
  table[id].requests_queued = 2;
  EXPECT_FALSE(table.admit(id, 1, 0).ok());
  table[id].requests_queued = 1;
  EXPECT_TRUE(table.admit(id, 1, 0).ok());
}

TEST(Tenant, ChangedLimitsHoldFromThenOn) {
  TenantTable table;
  const TenantId id = table.add("acme", {});
  table.enter(id, 1000);  // the prompt does not count: no limit is set yet
  table.change(id, {.requests_queued = 1, .tokens_per_minute = 60});
  EXPECT_TRUE(table.admit(id, 60, 0).ok());
  EXPECT_FALSE(table.admit(id, 61, 0).ok());
  table.enter(id, 50);
  table.change(id, {.tokens_per_minute = 600});
  EXPECT_FALSE(table.admit(id, 11, 0).ok()) << "a change refills nothing";
  table.change(id, {});
  EXPECT_TRUE(table.admit(id, 1'000'000, 0).ok());
}

TEST(Tenant, IdlingEarnsNothing) {
  TenantTable table;
  const TenantId busy = table.add("busy", {});
  const TenantId late = table.add("late", {});
  table.enter(busy, 1);
  table[busy].requests_queued = 1;
  table.charge_tokens(busy, 1000);
  table.enter(late, 1);
  EXPECT_EQ(table[late].clock, 1000.0);
}

TEST(Tenant, WhatOneHadWhileNobodyElseWantedItIsNotHeldAgainstIt) {
  TenantTable table;
  const TenantId alone = table.add("alone", {});
  const TenantId late = table.add("late", {});
  table.enter(alone, 1);
  table.charge_tokens(alone, 1000);  // the tenant is idle afterwards
  table.enter(late, 1);
  EXPECT_EQ(table[late].clock, table[alone].clock);
}

TEST(Tenant, WeightSlowsTheClock) {
  TenantTable table;
  const TenantId heavy = table.add("heavy", {.weight = 4});
  table.charge_tokens(heavy, 1000);
  EXPECT_EQ(table[heavy].clock, 250.0);
}

}  // namespace
}  // namespace pagoda::sched
