#include "model/rows_description.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

namespace pagoda::model {
namespace {

// Stores of version 0.1 are read on (tests/server/wire/old_stores_test.py has one).
TEST(RowsDescription, WhatTheFirstVersionReadHasNone) {
  Config config;
  config.ropes = {{.dims = 8, .base = 5e5}};
  config.attention = {{.window = 7}};
  EXPECT_EQ(describe_rows(config), "");
  config.is_folder = true;
  EXPECT_NE(describe_rows(config), "");
  config.is_folder = false;
  config.ropes[0].scaling = RopeScaling::kYarn;  // which it read by other rules
  EXPECT_NE(describe_rows(config), "");
  config.ropes[0] = {.dims = 8, .pairing = kernels::RopePairing::kHalfSplit};
  EXPECT_NE(describe_rows(config), "");
  config.architecture = "qwen3";
  config.qk_norm = QkNormSpan::kHead;
  EXPECT_EQ(describe_rows(config), "");
}

TEST(RowsDescription, EveryWordThatChangesRowsChangesIt) {
  Config plain;
  plain.architecture = "gemma3";
  plain.ropes = {{.dims = 8}, {.dims = 8, .base = 1e6}};
  plain.rope_of_layer = {0, 1};
  plain.attention = {{.window = 7}, {}};
  const std::function<void(Config&)> changes[] = {
      [](Config& c) { c.architecture = "gemma2"; },
      [](Config& c) { c.layers = 3; },
      [](Config& c) { c.norm_epsilon = 1e-6f; },
      [](Config& c) { c.branch_norms = BranchNorms::kBoth; },
      [](Config& c) { c.qk_norm = QkNormSpan::kAllHeads; },
      [](Config& c) { c.gate = GateKind::kGeGlu; },
      [](Config& c) { c.experts.router.experts = 4; },
      [](Config& c) { c.experts.router.is_normalised = true; },
      [](Config& c) { c.experts.router.weight_scale = 2; },
      [](Config& c) { c.experts.first_layer = 1; },
      [](Config& c) { c.has_sinks = true; },
      [](Config& c) { c.embedding_scale = 2; },
      [](Config& c) { c.residual_scale = 2; },
      [](Config& c) { c.attention_scale = 0.5f; },
      [](Config& c) { c.score_cap = 50; },
      [](Config& c) {
        c.query_scale = QueryScale{0.1f, 64};
      },
      [](Config& c) {
        c.query_scale = QueryScale{0.1f, 65};
      },
      [](Config& c) { c.ropes[1].base = 1e5; },
      [](Config& c) { c.ropes[1].pairing = kernels::RopePairing::kHalfSplit; },
      [](Config& c) { c.ropes[0].factor = 8; },
      [](Config& c) { c.ropes[0].rounds_yarn_ramp = false; },
      [](Config& c) { c.ropes[0].has_long_factors = true; },
      [](Config& c) {
        c.rope_of_layer = {0, kNoRope};
      },
      [](Config& c) { c.attention[0].window = 8; },
      [](Config& c) { c.attention[1].window = 7; },
  };
  std::set<std::string> seen = {describe_rows(plain)};
  for (std::size_t i = 0; i < std::size(changes); ++i) {
    Config changed = plain;
    changes[i](changed);
    EXPECT_TRUE(seen.insert(describe_rows(changed)).second) << "change " << i;
  }
}

TEST(RowsDescription, ExpertsInALlamaFileAreNewToIt) {
  Config mixtral;
  mixtral.ropes = {{.dims = 8}};
  mixtral.experts.router = {.experts = 8, .chosen = 2};
  EXPECT_NE(describe_rows(mixtral), "");
}

}  // namespace
}  // namespace pagoda::model
