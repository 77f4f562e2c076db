#include "gguf/printable.h"

#include <gtest/gtest.h>

namespace pagoda::gguf {
namespace {

TEST(Printable, PlainTextAndUtf8StayAsTheyAre) {
  EXPECT_EQ(printable("blk.0.attn_q.weight", 80), "blk.0.attn_q.weight");
  EXPECT_EQ(printable("\u2581t\u00e9 \U0001F600", 80), "\u2581t\u00e9 \U0001F600");
  EXPECT_EQ(printable("", 0), "");
}

TEST(Printable, ControlBytesCannotReachATerminal) {
  EXPECT_EQ(printable("a\x1b[31mb", 80), "a\\x1b[31mb");
  EXPECT_EQ(printable(std::string_view("a\0b", 3), 80), "a\\x00b");
  EXPECT_EQ(printable("x\ny\tz\\\x7f", 80), "x\\ny\\tz\\\\\\x7f");
  EXPECT_EQ(printable("\xc2\x9b", 80), "\\xc2\\x9b");  // U+009B, the 8-bit CSI
}

TEST(Printable, BytesThatAreNotUtf8AreEscapedOneByOne) {
  EXPECT_EQ(printable("\xff", 80), "\\xff");
  EXPECT_EQ(printable("\xe2\x96", 80), "\\xe2\\x96");                    // cut off
  EXPECT_EQ(printable("\xc0\x80", 80), "\\xc0\\x80");                    // overlong
  EXPECT_EQ(printable("\xed\xa0\x80", 80), "\\xed\\xa0\\x80");           // surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80", 80), "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
}

TEST(Printable, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdef", 5), "abcde\u2026");
  EXPECT_EQ(printable("ab\u2581cd", 4), "ab\u2026");
  EXPECT_EQ(printable("ab\u2581cd", 5), "ab\u2581\u2026");
}

}  // namespace
}  // namespace pagoda::gguf
