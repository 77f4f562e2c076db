// Measurements as they are kept, and the bounds of verdicts.
#include "eval/measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace pagoda::eval {
namespace {

using testing::HasSubstr;

Measurement good() {
  return {.bits_per_token = 11520,
          .perplexity_windows = {22.5, 0.5},
          .perplexity_depth = {19.25, 0.75},
          .divergence =
              {.rows = 2000, .kl_mean = 0.001, .kl_p99 = 0.01, .kl_max = 0.25, .same_top = 0.995},
          .tasks = {{.task = "needle",
                     .right = 11,
                     .asked = 12,
                     .right_baseline = 12,
                     .cells = {{"512 tokens, depth 10 %", 1, 1}}}}};
}

TEST(Measurement, IsReadAsItWasWritten) {
  const nlohmann::ordered_json json = measurement_json(good());
  const auto read = read_measurement(json);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(measurement_json(*read), json);
  EXPECT_EQ(read->divergence.rows, 2000u);
  EXPECT_EQ(read->tasks.at(0).cells.at(0).name, "512 tokens, depth 10 %");
}

TEST(Measurement, WhatLacksAMemberOrHasAnotherTypeIsNone) {
  const nlohmann::ordered_json whole = measurement_json(good());
  const auto without = [&](const char* pointer, const nlohmann::ordered_json& other) {
    nlohmann::ordered_json changed = whole;
    changed[nlohmann::ordered_json::json_pointer(pointer)] = other;
    return read_measurement(changed);
  };
  for (const char* const pointer :
       {"/bits_per_token", "/bounded_share", "/perplexity_windows", "/perplexity_depth/value",
        "/divergence", "/divergence/kl_mean", "/divergence/positions", "/tasks", "/tasks/0",
        "/tasks/0/task", "/tasks/0/right", "/tasks/0/cells", "/tasks/0/cells/0/asked"}) {
    EXPECT_TRUE(read_measurement(whole)) << pointer;
    EXPECT_FALSE(without(pointer, nullptr)) << pointer;
    EXPECT_FALSE(without(pointer, true)) << pointer;
  }
  EXPECT_FALSE(without("/tasks/0/right", -1));
  EXPECT_FALSE(without("/tasks/0/right", 1.5));
  for (const char* const text : {"null", "[]", "3", "{}", "\"bits\""}) {
    EXPECT_FALSE(read_measurement(nlohmann::ordered_json::parse(text))) << text;
  }
}

TEST(Measurement, PassesWithinAllBounds) {
  EXPECT_EQ(reason_against(good()), "");
  Measurement far = good();
  far.divergence.kl_mean = 0.0101;
  EXPECT_THAT(reason_against(far), HasSubstr("mean KL 0.01"));
  far.divergence.kl_mean = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(reason_against(far), "");
  Measurement other_top = good();
  other_top.divergence.same_top = 0.9799;
  EXPECT_THAT(reason_against(other_top), HasSubstr("97.99 % of positions, less than 98 %"));
  Measurement few = good();
  few.divergence.rows = 100;
  EXPECT_EQ(reason_against(few), "");
  few.divergence.rows = 99;
  EXPECT_EQ(reason_against(few), "99 positions were measured, a verdict needs 100");
  Measurement unbounded = good();
  unbounded.bounded_share = 0.5;
  EXPECT_EQ(reason_against(unbounded), "");
  unbounded.bounded_share = 0.49;
  EXPECT_THAT(reason_against(unbounded), HasSubstr("from 49 % of the positions measured"));
}

TEST(Measurement, ATaskCountsWhereTheBaselineHasHalfOfItRight) {
  struct Case {
    std::uint32_t right;
    std::uint32_t baseline;
    bool passes;
  };
  // Of 12 questions 1 may be lost.
  for (const Case& c : {Case{11, 12, true}, Case{10, 12, false}, Case{12, 6, true},
                        Case{0, 6, false}, Case{0, 5, true}, Case{5, 6, true}}) {
    Measurement measured = good();
    measured.tasks[0].right = c.right;
    measured.tasks[0].right_baseline = c.baseline;
    EXPECT_EQ(reason_against(measured).empty(), c.passes) << c.right << " and " << c.baseline;
  }
}

}  // namespace
}  // namespace pagoda::eval
