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

TEST(ByteSize, RoundsDecimalsDownToWholeBytes) {
  EXPECT_EQ(parse_byte_size("1.1GiB").value(), 1'181'116'006u);  // .4
  EXPECT_EQ(parse_byte_size("272.2MiB").value(), 285'422'387u);  // .2
  EXPECT_EQ(parse_byte_size("0.3KiB").value(), 307u);            // .2
  EXPECT_EQ(parse_byte_size("1.9B").value(), 1u);
  EXPECT_EQ(parse_byte_size("12.3GB").value(), 12'300'000'000u);
  for (const char* const cents :
       {"0.29KB", "0.57KB", "0.58KB", "1.13KB", "1.15KB", "4.35KB", "9.95KB"}) {
    const std::string text(cents);
    const std::uint64_t expected =
        1000 * (text[0] - '0') + 100 * (text[2] - '0') + 10 * (text[3] - '0');
    EXPECT_EQ(parse_byte_size(text).value(), expected) << text;
  }
}

TEST(ByteSize, ACapitalLetterIsAPowerOf1024AndASmallOneIsAskedAbout) {
  EXPECT_EQ(parse_byte_size("2G").value(), 2'147'483'648u);
  EXPECT_EQ(parse_byte_size("24 G").value(), 25'769'803'776u);
  EXPECT_EQ(parse_byte_size("1.5M").value(), 1'572'864u);
  EXPECT_EQ(parse_byte_size("64K").value(), 65'536u);
  EXPECT_EQ(parse_byte_size("1T").value(), 1'099'511'627'776u);
  EXPECT_EQ(parse_byte_size("2Gi").value(), 2'147'483'648u);
  const auto small = parse_byte_size("2g");
  ASSERT_FALSE(small.ok());
  EXPECT_EQ(small.error().message, "'2g' is not a size: did you mean 2GiB or 2GB?");
}

TEST(ByteSize, RefusesWhatIsNotASizeAndNamesIt) {
  for (const char* text :
       {"", "-1", "-1GB", "12XB", "GB", "1.5", "0.3B", "0.0001KB", "1e3", "9223372036854775808",
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
