#include "sched/context_class.h"

#include <gtest/gtest.h>

namespace pagoda::sched {
namespace {

TEST(ContextClasses, AreChosenByPromptLengthAndTheLastTakesTheRest) {
  const auto classes = ContextClasses::parse("4096:1,32768:0.5").value();
  EXPECT_EQ(classes.class_of(1), 0u);
  EXPECT_EQ(classes.class_of(4096), 0u);
  EXPECT_EQ(classes.class_of(4097), 1u);
  EXPECT_EQ(classes.class_of(1000000), 1u);
}

TEST(ContextClasses, TakeTheFloorOfTheirShareAndAtLeastOne) {
  const auto classes = ContextClasses::parse("10:0.5,max:0.01").value();
  EXPECT_EQ(ContextClasses::part(classes[0], 9), 4u);
  EXPECT_EQ(ContextClasses::part(classes[1], 9), 1u);
  EXPECT_EQ(classes[1].tokens_max, UINT64_MAX);
}

TEST(ContextClasses, RefuseWhatTheyDoNotUnderstandByName) {
  for (const char* const text : {"", "x:1", "10:0", "10:1.5", "10:nan", "0:1", "10:", "10:1,,20:1",
                                 "10:1,10:1", "20:1,10:1", "-5:1"}) {
    EXPECT_FALSE(ContextClasses::parse(text).ok()) << text;
  }
  EXPECT_NE(ContextClasses::parse("20:1,7:1").error().message.find("7:1"), std::string::npos);
}

}  // namespace
}  // namespace pagoda::sched
