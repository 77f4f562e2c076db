#include "kv/tiers/tier_table.h"

#include <gtest/gtest.h>

#include "kv/tiers/host_mover.h"

namespace pagoda::kv {
namespace {

void write(TierTable& table, NodeId node, std::uint32_t slice, Tick now) {
  const auto target = table.begin_write();
  ASSERT_TRUE(target.has_value());
  table.end_write(target->slot, node, slice, now);
  table.check();
}

TEST(TierTable, ACopyIsFoundBySliceOnceItIsWritten) {
  TierTable table(4, 2);
  EXPECT_FALSE(table.find(NodeId(7), 1));
  const auto target = table.begin_write();
  EXPECT_FALSE(table.find(NodeId(7), 1)) << "not before";
  table.end_write(target->slot, NodeId(7), 1, 1);
  EXPECT_EQ(table.find(NodeId(7), 1), target->slot);
  EXPECT_FALSE(table.find(NodeId(7), 0));
  EXPECT_EQ(table.copies(NodeId(7)), 1u);
}

TEST(TierTable, TheCopyUsedLongestAgoMakesRoomAndItsNodeIsTold) {
  TierTable table(2, 1);
  write(table, NodeId(1), 0, 1);
  write(table, NodeId(2), 0, 2);
  const SlotId first = table.find(NodeId(1), 0).value();
  table.begin_read(first);
  table.end_read(first, 3);  // node 1 was used after node 2
  const auto target = table.begin_write();
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->displaced->node, NodeId(2));
  EXPECT_FALSE(table.find(NodeId(2), 0));
  table.abandon_write(target->slot);
  table.check();
}

TEST(TierTable, WhatIsBeingReadOrWrittenStays) {
  TierTable table(2, 1);
  write(table, NodeId(1), 0, 1);
  const SlotId slot = table.find(NodeId(1), 0).value();
  table.begin_read(slot);
  const auto second = table.begin_write();
  ASSERT_TRUE(second.has_value());
  EXPECT_FALSE(second->displaced);
  EXPECT_FALSE(table.begin_write().has_value()) << "one slot is read, the other written";
  table.forget(slot);
  EXPECT_TRUE(table.find(NodeId(1), 0)) << "a reader keeps even a bad copy";
  table.end_read(slot, 2);
  table.forget(slot);
  EXPECT_FALSE(table.find(NodeId(1), 0));
  table.abandon_write(second->slot);
  table.check();
}

TEST(HostMover, CarriesAPageOutAndBack) {
  const memory::PageLayout layout = {.element = memory::Element::kF16,
                                     .block_tokens = 2,
                                     .layers = 1,
                                     .kv_heads = 1,
                                     .key_dim = 3,
                                     .value_dim = 3};
  const memory::PageBuffer pages = std::move(memory::PageBuffer::allocate(layout, 2)).value();
  const memory::PageBuffer slots = std::move(memory::PageBuffer::allocate(layout, 3)).value();
  HostMover mover(pages, slots);
  pages.page(BlockId(1))[5] = std::byte{42};
  Move move = {.direction = Direction::kOut, .block = BlockId(1), .slot = SlotId(2)};
  mover.start(move);
  ASSERT_EQ(mover.poll().size(), 1u);
  EXPECT_TRUE(mover.poll().empty()) << "every move is reported once";
  EXPECT_EQ(slots.page(BlockId(2))[5], std::byte{42});
  move.direction = Direction::kIn;
  move.block = BlockId(0);
  mover.start(move);
  EXPECT_TRUE(mover.poll().front().done);
  EXPECT_EQ(pages.page(BlockId(0))[5], std::byte{42});
}

}  // namespace
}  // namespace pagoda::kv
