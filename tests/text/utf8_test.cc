#include "text/utf8.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "text/random_text.h"

namespace pagoda::text {
namespace {

TEST(Utf8, EveryCodePointIsOneCharacter) {
  for (std::uint32_t code = 0; code < 0x110000; ++code) {
    std::string text;
    append_utf8(text, code);
    if (code >= 0xD800 && code < 0xE000) {
      ASSERT_EQ(utf8_char_bytes(text), 0U) << code;
      continue;
    }
    ASSERT_EQ(utf8_char_bytes(text), text.size()) << code;
    ASSERT_EQ(static_cast<std::uint32_t>(utf8_code_point(text, text.size())), code);
    ASSERT_EQ(utf8_incomplete_tail(text), 0U) << code;
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      ASSERT_EQ(utf8_incomplete_tail(std::string_view(text).substr(0, cut)), cut) << code;
    }
  }
}

TEST(Utf8, MalformedFormsAreNoCharacters) {
  for (const char* text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xED\xA0\x80",
        "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3", "\xC3(",
        "\xE2\x82", "\xE2(\xA1", "\xF0\x9F\x98"}) {
    EXPECT_EQ(utf8_char_bytes(text), 0U) << text;
    EXPECT_EQ(utf8_valid_prefix(std::string("good text ") + text), 10U) << text;
  }
  EXPECT_EQ(utf8_char_bytes(""), 0U);
  EXPECT_EQ(utf8_valid_prefix(""), 0U);
}

TEST(Utf8, TailsThatNoByteCanCompleteAreNotHeldBack) {
  EXPECT_EQ(utf8_incomplete_tail(""), 0U);
  EXPECT_EQ(utf8_incomplete_tail("a\xFF"), 0U);
  EXPECT_EQ(utf8_incomplete_tail("a\x80"), 0U);
  EXPECT_EQ(utf8_incomplete_tail("\xE0\x80"), 0U);
  EXPECT_EQ(utf8_incomplete_tail("\xED\xA0"), 0U);
  EXPECT_EQ(utf8_incomplete_tail("\xE2\x82"), 2U);
  EXPECT_EQ(utf8_incomplete_tail("\x80\x80\x80\x80"), 0U);
}

TEST(Utf8, ValidPrefixIsTheCharactersOneByOne) {
  std::mt19937 random(10);
  for (int i = 0; i < 2000; ++i) {
    std::string text = random_unicode(random, random() % 20);
    if (i % 2 == 0) text += random_bytes(random, random() % 5);
    std::size_t expected = 0;
    while (expected < text.size()) {
      const std::size_t bytes = utf8_char_bytes(std::string_view(text).substr(expected));
      if (bytes == 0) break;
      expected += bytes;
    }
    EXPECT_EQ(utf8_valid_prefix(text), expected);
  }
}

}  // namespace
}  // namespace pagoda::text
