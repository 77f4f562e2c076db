#include "base/lru_map.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace pagoda {
namespace {

TEST(LruMapTest, WhatWasUsedLeastRecentlyMakesRoom) {
  LruMap<int, std::string> map(2);
  map.put(1, "one");
  map.put(2, "two");
  ASSERT_NE(map.find(1), nullptr);  // 2 is now the least recently used
  EXPECT_EQ(map.put(3, "three"), "three");
  EXPECT_EQ(map.size(), 2u);
  EXPECT_EQ(map.find(2), nullptr);
  ASSERT_NE(map.find(1), nullptr);
  EXPECT_EQ(*map.find(1), "one");
  EXPECT_EQ(*map.find(3), "three");
}

TEST(LruMapTest, ADroppedValueIsDestroyedAndOthersStayWhereTheyAre) {
  LruMap<int, std::shared_ptr<int>> map(3);
  const std::weak_ptr<int> first = map.put(1, std::make_shared<int>(1));
  const std::shared_ptr<int>* const second = &map.put(2, std::make_shared<int>(2));
  map.put(3, std::make_shared<int>(3));
  map.put(4, std::make_shared<int>(4));
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(map.find(2), second);
  map.clear();
  EXPECT_EQ(map.size(), 0u);
  EXPECT_EQ(map.find(4), nullptr);
}

}  // namespace
}  // namespace pagoda
