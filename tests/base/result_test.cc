#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/strong_id.h"

namespace pagoda {
namespace {

Result<int> half_of(int value) {
  if (value % 2 != 0) return Error{ErrorCode::kInvalidArgument, std::to_string(value) + " is odd"};
  return value / 2;
}

Result<std::string> quarter_text(int value) {
  ASSIGN_OR_RETURN(const int half, half_of(value));
  ASSIGN_OR_RETURN(const int quarter, half_of(half));
  return std::to_string(quarter);
}

Status check_even(int value) {
  RETURN_IF_ERROR(half_of(value));
  return ok_status();
}

TEST(Result, CarriesAValueOrAnErrorThroughCallers) {
  EXPECT_EQ(quarter_text(12).value(), "3");
  ASSERT_FALSE(quarter_text(6).ok());
  EXPECT_EQ(quarter_text(6).error().message, "3 is odd");
  EXPECT_EQ(quarter_text(6).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(check_even(2).ok());
  EXPECT_FALSE(check_even(3).ok());
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 5);
}

TEST(Result, AskingForWhatIsNotThereIsABugAndStops) {
  EXPECT_DEATH((void)half_of(3).value(), "Result holds an error");
  EXPECT_DEATH((void)half_of(2).error(), "Result holds a value");
}

TEST(StrongId, ComparesAndHashesLikeItsNumber) {
  using Id = StrongId<struct TestTag>;
  EXPECT_EQ(Id(3), Id(3));
  EXPECT_LT(Id(3), Id(4));
  EXPECT_EQ(std::hash<Id>{}(Id(3)), std::hash<Id>{}(Id(3)));
  static_assert(!std::is_convertible_v<int, Id>);
  static_assert(!std::is_convertible_v<Id, StrongId<struct OtherTag>>);
  static_assert(sizeof(Id) == 4);
}

}  // namespace
}  // namespace pagoda
