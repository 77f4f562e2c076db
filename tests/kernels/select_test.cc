#include "kernels/select.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace pagoda::kernels {
namespace {

TEST(Select, TheReferenceSetIsAlwaysThereAndFirst) {
  ASSERT_FALSE(available_sets().empty());
  EXPECT_EQ(available_sets().front()->name, "ref");
  EXPECT_EQ(select_set("ref").value(), &ref_set());
}

TEST(Select, EveryAvailableSetIsFoundByItsName) {
  for (const KernelSet* const set : available_sets()) {
    EXPECT_EQ(select_set(set->name).value(), set);
  }
}

// They have one numerics id but for the name: what changes the bits of one changes those of all.
TEST(Select, SetsOfOneNumericsHaveOneVersion) {
  for (const KernelSet* const set : compiled_sets()) {
    EXPECT_EQ(set->version, ref_set(set->numerics).version) << set->name;
  }
}

TEST(Select, TheEnvironmentForcesASetAndTheFastestIsTheDefault) {
  unsetenv("PAGODA_KERNELS");
  EXPECT_EQ(select_set().value(), available_sets().back());
  setenv("PAGODA_KERNELS", "ref", 1);
  EXPECT_EQ(select_set().value(), &ref_set());
  setenv("PAGODA_KERNELS", "abacus", 1);
  const auto unknown = select_set();
  unsetenv("PAGODA_KERNELS");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("'abacus'"), std::string::npos);
  EXPECT_NE(unknown.error().message.find("ref"), std::string::npos);
}

}  // namespace
}  // namespace pagoda::kernels
