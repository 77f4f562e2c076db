// Divisions are whole: every head, column and expert is computed by one rank.
#include "model/division.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/select.h"
#include "model/kv_groups.h"
#include "model/test_model.h"

namespace pagoda::model {
namespace {

using Counts = std::vector<std::size_t>;

Counts counts_of(const Cut& cut) {
  Counts counts;
  for (std::size_t rank = 0; rank + 1 < cut.begins.size(); ++rank) {
    counts.push_back(cut.count(rank));
  }
  return counts;
}

TEST(Cut, FirstRanksHaveOneMoreWhereThingsDoNotDivide) {
  struct Row {
    std::size_t items;
    std::size_t ranks;
    std::size_t together;
    Counts counts;
  };
  for (const Row& row :
       {Row{3, 1, 1, {3}}, Row{3, 2, 1, {2, 1}}, Row{3, 4, 1, {1, 1, 1, 0}}, Row{0, 2, 1, {0, 0}},
        Row{576, 2, 32, {288, 288}}, Row{576, 4, 32, {160, 160, 128, 128}}, Row{70, 2, 32, {64, 6}},
        Row{64, 4, 32, {32, 32, 0, 0}}, Row{10, 2, 32, {10, 0}}}) {
    EXPECT_EQ(counts_of(cut_evenly(row.items, row.ranks, row.together)), row.counts)
        << row.items << " over " << row.ranks;
  }
}

// Nine heads over three KV heads, as the default model has them.
Config nine_heads() {
  Config config;
  config.layers = 1;
  config.width = 576;
  config.hidden_width = 1536;
  config.heads = 9;
  config.kv_heads = 3;
  config.key_dim = config.value_dim = 64;
  config.vocabulary = 49152;
  config.attention.resize(1);
  return config;
}

TEST(Division, HeadsGoWithTheirKvHeadAndARankMayHaveNone) {
  struct Row {
    std::uint32_t rank;
    std::uint32_t ranks;
    std::uint32_t first_head;
    std::uint32_t heads;
    std::uint32_t kv_heads;
  };
  for (const Row& row : {Row{0, 1, 0, 9, 3}, Row{0, 2, 0, 6, 2}, Row{1, 2, 6, 3, 1},
                         Row{2, 3, 6, 3, 1}, Row{3, 4, 9, 0, 0}}) {
    const Division division(nine_heads(), row.rank, row.ranks);
    const HeadShare& share = division.heads(0);
    EXPECT_EQ(share.first_head, row.first_head);
    EXPECT_EQ(share.heads, row.heads);
    EXPECT_EQ(share.group, 3u);
    EXPECT_EQ(share.shape.kv_heads, row.kv_heads);
  }
  EXPECT_EQ(counts_of(Division(nine_heads(), 0, 4).layer(0).mixed), (Counts{192, 192, 192, 0}));
  EXPECT_EQ(counts_of(Division(nine_heads(), 0, 3).layer(0).hidden), (Counts{512, 512, 512}));
}

TEST(Division, ALatentIsKeptByAllAndItsQueryHeadsAreDivided) {
  Config config = nine_heads();
  config.kv_heads = 1;
  config.latent = {.rank = 32, .query_rank = 0, .plain_dim = 16, .value_dim = 16};
  for (const std::uint32_t rank : {0u, 1u}) {
    const HeadShare share = Division(config, rank, 2).heads(0);
    EXPECT_EQ(share.shape.kv_heads, 1u);
    EXPECT_EQ(share.heads, rank == 0 ? 5u : 4u);
    EXPECT_EQ(share.group, share.heads);
    EXPECT_EQ(share.first_head, rank * 5);
  }
}

// Block ids name the same tokens of the same layers on all ranks.
TEST(Division, PagesOfAllRanksHaveTheGroupsOfTheModel) {
  for (const char* const name : {"arch_gemma4.gguf", "arch_gemma3.gguf", "tiny_mqa.gguf"}) {
    const TestModel model(test_model_path(name));
    const auto plan = plan_kv_groups(model.config(), kernels::ref_set(), {}, 16);
    for (const std::uint32_t ranks : {1u, 2u, 3u, 4u}) {
      std::size_t bytes = 0;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const auto own = Division(model.config(), rank, ranks).divide(plan);
        ASSERT_EQ(own.layouts.size(), plan.layouts.size());
        for (const auto& layout : own.layouts) {
          EXPECT_EQ(layout.page_bytes(), own.layouts.front().page_bytes());
        }
        bytes += own.layouts.front().page_bytes();
      }
      EXPECT_GE(bytes, ranks == 1 ? plan.layouts.front().page_bytes() : 0);
    }
  }
}

}  // namespace
}  // namespace pagoda::model
