#include "text/nfc.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "test_data.h"
#include "text/vocabularies.h"

namespace pagoda::text {
namespace {

nlohmann::json fixture() {
  std::ifstream file(test_data() + "/text/nfc.json");
  return nlohmann::json::parse(file);
}

// tests/data/make_nfc_fixtures.py made the rows with Python's unicodedata.
TEST(Nfc, IsThatOfUnicode) {
  const nlohmann::json rows = fixture();
  ASSERT_GT(rows.size(), 3000U);
  for (const auto& row : rows) {
    const auto text = row[0].get<std::string>();
    const NfcText made(text);
    EXPECT_EQ(made.bytes(), row[1].get<std::string>()) << row[0];
    EXPECT_LE(text.size(), made.bytes().size() * kNfcBytesMax);
    const NfcText again(made.bytes());
    EXPECT_EQ(again.bytes(), made.bytes()) << row[0];
  }
}

// A byte's place is where the letter that it is a part of began.
TEST(Nfc, PlacesAreThoseOfTheTextBefore) {
  NfcText made("ae\xCC\x81z\xE2\x84\xAB\xFF!");
  ASSERT_EQ(made.bytes(), "a\xC3\xA9z\xC3\x85\xFF!");
  const std::size_t expected[] = {0, 1, 1, 4, 5, 5, 8, 9};
  for (std::size_t i = 0; i < made.bytes().size(); ++i) EXPECT_EQ(made.place_of(i), expected[i]);
  NfcText same("plain \xE4\xB8\xAD");
  EXPECT_EQ(same.place_of(4), 4U);
}

TEST(Nfc, BytesThatAreNoTextStay) {
  for (const std::string text :
       {"\xCC", "\xFF\xCC\x81", "e\xCC", "\xE1\x84", "a\x80\x80\xCC\x81"}) {
    EXPECT_EQ(NfcText(text).bytes(), text);
  }
}

// Ordering marks takes time by the square of their number.
TEST(Nfc, ALetterWithAMillionMarksTakesNoLonger) {
  std::string text = "e";
  for (int i = 0; i < 500'000; ++i) text += i % 2 == 0 ? "\xCC\x81" : "\xCC\xA3";
  EXPECT_EQ(NfcText(text).bytes(), text);
}

TEST(Nfc, AVocabularyThatExpectsItGetsItWithOffsetsOfTheText) {
  for (const bool expects : {false, true}) {
    MadeVocabulary made;
    made.add("a");                 // 0
    made.add("\xC3\x83");          // 1, the byte C3
    made.add("\xC2\xA9");          // 2, the byte A9
    made.add("\xC3\x83\xC2\xA9");  // 3, é
    made.merges = {"\xC3\x83 \xC2\xA9"};
    made.more.add("pagoda.tokenizer.nfc", expects);
    const auto tokenizer = made.load_or_fail();
    const std::string text =
        "ae\xCC\x81"
        "a";
    const auto tokens = tokenizer->encode_with_offsets_within(text, {}, SIZE_MAX).value();
    EXPECT_EQ(numbers(tokens.ids),
              expects ? (std::vector<std::uint32_t>{0, 3, 0}) : (std::vector<std::uint32_t>{0, 0}));
    EXPECT_EQ(tokens.begins.back(), 4U);
    EXPECT_EQ(numbers(tokenizer->encode(text, {})), numbers(tokens.ids));
    // A text that fits by its tokens is never turned away by its bytes.
    EXPECT_TRUE(tokenizer->encode_within(text, {}, 3).has_value());
    EXPECT_FALSE(tokenizer->encode_within(text, {}, 1).has_value());
  }
}

}  // namespace
}  // namespace pagoda::text
