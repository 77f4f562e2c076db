#include "base/byte_size.h"

#include <gtest/gtest.h>

namespace pagoda {
namespace {

TEST(ByteSize, ReadsPlainBytesAndBothFamiliesOfUnits) {
  EXPECT_EQ(parse_byte_size("4096").value(), 4096u);
  EXPECT_EQ(parse_byte_size("1KB").value(), 1000u);
  EXPECT_EQ(parse_byte_size("1KiB").value(), 1024u);
  EXPECT_EQ(parse_byte_size("512 MB").value(), 512'000'000u);
  EXPECT_EQ(parse_byte_size("1.5gib").value(), 1'610'612'736u);
  EXPECT_EQ(parse_byte_size("2TiB").value(), 2'199'023'255'552u);
  EXPECT_EQ(parse_byte_size("0").value(), 0u);
}

TEST(ByteSize, RefusesWhatIsNotASizeAndNamesIt) {
  for (const char* text :
       {"", "-1", "-1GB", "12XB", "GB", "1.5", "0.3KiB", "1e3", "9223372036854775808",
        "99999999999999999999", "9000000TiB", "nan", "inf", "1GB1"}) {
    const auto result = parse_byte_size(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_NE(result.error().message.find("'" + std::string(text) + "'"), std::string::npos);
  }
}

TEST(ByteSize, PrintsTheLargestUnitThatLeavesAtLeastOne) {
  EXPECT_EQ(format_byte_size(0), "0 B");
  EXPECT_EQ(format_byte_size(1023), "1023 B");
  EXPECT_EQ(format_byte_size(1024), "1.00 KiB");
  EXPECT_EQ(format_byte_size(68'719'476'736.0), "64.00 GiB");
}

TEST(ByteSize, GroupsDigitsByThree) {
  EXPECT_EQ(format_grouped(0), "0");
  EXPECT_EQ(format_grouped(999), "999");
  EXPECT_EQ(format_grouped(1000), "1,000");
  EXPECT_EQ(format_grouped(68'719'476'736), "68,719,476,736");
}

}  // namespace
}  // namespace pagoda
