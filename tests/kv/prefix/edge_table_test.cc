#include "kv/prefix/edge_table.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "base/random.h"

namespace pagoda::kv {
namespace {

using Edges = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>;

Edges edges_of(const EdgeTable& table) {
  Edges edges;
  table.for_each([&](std::uint32_t from, std::uint32_t label, std::uint32_t to) {
    EXPECT_TRUE(edges.emplace(std::pair(from, label), to).second) << "an edge is there once";
  });
  return edges;
}

// A few ends and labels, so that the table is always nearly full of what was asked for before, and
// edges come and go across its end.
TEST(EdgeTable, AgreesWithAMapOverRandomSteps) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    EdgeTable table(seed);
    Edges edges;
    for (std::uint64_t step = 0; step < 3000; ++step) {
      const std::uint64_t dice = random_bits(seed, 1, step);
      const auto from = static_cast<std::uint32_t>(dice % 6);
      const auto label = static_cast<std::uint32_t>((dice >> 8) % (10 + 40 * seed));
      const auto known = edges.find({from, label});
      ASSERT_EQ(table.find(from, label), known == edges.end() ? EdgeTable::kNone : known->second)
          << "seed " << seed << ", step " << step;
      if (dice >> 32 & 1) {
        const auto to = static_cast<std::uint32_t>(dice >> 40);
        table.set(from, label, to);
        edges[{from, label}] = to;
      } else if (known != edges.end()) {
        table.erase(from, label);
        edges.erase(known);
      }
      ASSERT_EQ(table.size(), edges.size());
    }
    EXPECT_EQ(edges_of(table), edges);
  }
}

TEST(EdgeTable, ReservingKeepsEdges) {
  EdgeTable table(1);
  for (std::uint32_t i = 0; i < 5; ++i) table.set(i, 7 * i, i + 1);
  const Edges before = edges_of(table);
  table.reserve(100'000);
  EXPECT_EQ(edges_of(table), before);
  EXPECT_EQ(table.find(4, 28), 5u);
}

TEST(EdgeTable, OnlyAnEdgeThatExistsCanGo) {
  EdgeTable table(1);
  table.set(1, 2, 3);
  EXPECT_DEATH(table.erase(2, 1), "the edge exists");
  EXPECT_DEATH(table.set(1, 2, EdgeTable::kNone), "leads somewhere");
}

}  // namespace
}  // namespace pagoda::kv
