// Descriptions of the spaces of a store, for people.
#include "store/disk/space_names.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "temporary_folder.h"

namespace pagoda::store {
namespace {

TEST(SpaceNames, TheNewestDescriptionOfASpaceIsKept) {
  const TemporaryFolder folder;
  EXPECT_TRUE(read_space_names(folder.path()).empty());
  const kv::SpaceId one = kv::space_id("one");
  const kv::SpaceId other = kv::space_id("other");
  ASSERT_TRUE(note_space(folder.path(), one, "neon.4 bf16").ok());
  ASSERT_TRUE(note_space(folder.path(), other, "neon.4 int8").ok());
  ASSERT_TRUE(note_space(folder.path(), one, "neon.5 bf16").ok());
  ASSERT_TRUE(note_space(folder.path(), one, "neon.5 bf16").ok()) << "known already";
  EXPECT_EQ(read_space_names(folder.path()),
            (SpaceNames{{one, "neon.5 bf16"}, {other, "neon.4 int8"}}));
}

TEST(SpaceNames, LinesThatAreNoneAreLeftOut) {
  const TemporaryFolder folder;
  const std::string id(32, '7');
  kv::SpaceId space;
  space.digest.fill(std::byte{0x77});
  std::ofstream(folder.path() + "/spaces") << "x\n"
                                           << id << "\n"
                                           << id << " \x01\n"
                                           << id << " " << std::string(600, 'a') << "\n"
                                           << std::string(32, 'g') << " text\n"
                                           << id << " y";
  EXPECT_EQ(read_space_names(folder.path()), (SpaceNames{{space, "y"}}));
}

TEST(SpaceNames, TheOldestAreForgottenBeyondTheirNumber) {
  const TemporaryFolder folder;
  for (std::size_t i = 0; i < kSpaceNamesMax + 3; ++i) {
    ASSERT_TRUE(note_space(folder.path(), kv::space_id(std::to_string(i)), "z").ok());
  }
  const SpaceNames names = read_space_names(folder.path());
  EXPECT_EQ(names.size(), kSpaceNamesMax);
  EXPECT_FALSE(names.contains(kv::space_id("2")));
  EXPECT_TRUE(names.contains(kv::space_id("3")));
}

TEST(SpaceNames, AFolderThatCannotBeWrittenIsAnError) {
  EXPECT_FALSE(note_space("/nowhere", kv::space_id("one"), "z").ok());
}

}  // namespace
}  // namespace pagoda::store
