// Free text that ends at a marker, values with quotes of their own, and control tokens.
#include "structured/text_nodes.h"

#include "structured/grammar_cases.h"

namespace pagoda::structured {
namespace {

struct MarkerCase {
  std::string marker;
  std::vector<std::string> taken;  // before "!"
  std::vector<std::string> refused;
};

TEST(TextTest, ATextEndsAtItsFirstMarker) {
  for (const MarkerCase& one : std::vector<MarkerCase>{
           {"</think>",
            {"</think>", "a</think>", "</</think>", "é<</thin</think>", "\n</think>"},
            {"", "a", "</think", "</think></think>", "</think>a</think>"}},
           {"aab", {"aab", "aaab", "abaab", "aaaaaab"}, {"aa", "aabaab", "ab"}},
           {"abab", {"abab", "aabab", "abaabab", "abbabab"}, {"ababab", "aba"}},
           {"｜é｜", {"｜é｜", "｜｜é｜", "é｜é｜"}, {"｜é", "é｜"}}}) {
    GrammarBuilder builder;
    const auto grammar = builder.finish(builder.text_until(one.marker, builder.literal("!")));
    ASSERT_TRUE(grammar.ok()) << grammar.error().message;
    for (const std::string& text : one.taken) {
      EXPECT_TRUE(matches_text(*grammar.value(), text + "!")) << one.marker << " takes " << text;
      EXPECT_FALSE(matches_text(*grammar.value(), text)) << one.marker << ": " << text;
    }
    for (const std::string& text : one.refused) {
      EXPECT_FALSE(matches_text(*grammar.value(), text + "!")) << one.marker << ": " << text;
    }
  }
}

// Free text takes no stack: it may be as long as it likes.
TEST(TextTest, LongTextsAreTaken) {
  GrammarBuilder builder;
  const auto grammar = builder.finish(builder.text_until("</x>", builder.empty(), true)).value();
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += i % 7 == 0 ? "</" : "ab";
  EXPECT_TRUE(matches_text(*grammar, text));
  EXPECT_TRUE(matches_text(*grammar, text + "</x>"));
  EXPECT_FALSE(matches_text(*grammar, text + "</x>a"));
}

TEST(TextTest, ATextThatDoesNotBeginSo) {
  GrammarBuilder builder;
  const auto grammar = builder.finish(builder.text_not_beginning({"{\"n", "<t>"})).value();
  for (const char* const text :
       {"", " ", "{", "{\"", "{\"m", "a{\"n", "{ \"n", "x", " <", "<u>", "<<t>"}) {
    EXPECT_TRUE(matches_text(*grammar, text)) << text;
  }
  for (const char* const text : {"{\"n", "{\"name\"", " \n{\"n", "<t>", "\t<t>a"})
    EXPECT_FALSE(matches_text(*grammar, text));
}

TEST(TextTest, ValuesMayHaveQuotesOfTheirOwn) {
  const auto schema = nlohmann::ordered_json::parse(
      R"({"type":"object","properties":{"city":{"type":"string"},
          "kind":{"enum":["a\"b",2]},"code":{"type":"string","pattern":"^[a-z]\"$"},
          "deep":{"type":"object","properties":{"list":{"type":"array","items":{"type":"string",
          "maxLength":2}}}}},"required":["city"]})");
  for (const std::string& quote : {std::string("<|\"|>"), control_bytes(TokenId(7))}) {
    const auto in_quotes = [&](const std::string& text) { return quote + text + quote; };
    GrammarBuilder builder;
    const auto node = builder.schema(schema, {.quote = {quote}});
    ASSERT_TRUE(node.ok());
    const auto grammar = builder.finish(node.value()).value();
    for (const std::string& text :
         {"{city:" + in_quotes("Ro\"me\n") + "}",
          "{city:" + in_quotes("") + ",kind:" + in_quotes("a\"b") + "}",
          "{city:" + in_quotes("x") + ",kind:2,code:" + in_quotes("a\"") + ",deep:{list:[" +
              in_quotes("ab") + "," + in_quotes("") + "]}}"}) {
      EXPECT_TRUE(matches_text(*grammar, text)) << text;
    }
    for (const std::string& text :
         {std::string("{city:\"Rome\"}"), "{\"city\":" + in_quotes("Rome") + "}", std::string("{}"),
          "{city:" + in_quotes("x") + ",deep:{list:[" + in_quotes("abc") + "]}}",
          "{city:" + in_quotes("x" + quote) + "}"}) {
      EXPECT_FALSE(matches_text(*grammar, text)) << text;
    }
  }
}

// A byte that no UTF-8 has names no control token, and a control token is in no text.
TEST(TextTest, ControlTokensAreAllowedWhereAGrammarNamesThem) {
  constexpr std::uint32_t kMark = 300;
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  bytes.resize(kMark + 1);
  bytes[kMark] = control_bytes(TokenId(kMark));
  const std::vector<TokenId> ends = {TokenId(256)};
  const auto vocabulary = MaskVocabulary::build(std::move(bytes), ends, kMark + 1);
  GrammarBuilder builder;
  const auto grammar = builder.finish(builder.sequence(
      {builder.literal("a" + control_bytes(TokenId(kMark))), builder.json_object()}));
  Matcher matcher(grammar.value(), vocabulary);
  std::vector<MaskWord> mask(vocabulary->words());
  const auto allowed = [&] {
    EXPECT_TRUE(matcher.fill_mask(mask).ok());
    std::vector<std::uint32_t> tokens;
    for (std::uint32_t i = 0; i <= kMark; ++i) {
      if (has_mask_bit(mask, i)) tokens.push_back(i);
    }
    return tokens;
  };
  EXPECT_EQ(allowed(), std::vector<std::uint32_t>{'a'});
  ASSERT_TRUE(matcher.accept(TokenId('a')).ok());
  EXPECT_EQ(allowed(), std::vector<std::uint32_t>{kMark});
  EXPECT_FALSE(matcher.accept(TokenId(0xFF)).ok());
  ASSERT_TRUE(matcher.accept(TokenId(kMark)).ok());
  for (const char byte : std::string("{\"")) {
    ASSERT_TRUE(matcher.accept(TokenId(static_cast<unsigned char>(byte))).ok());
  }
  allowed();
  EXPECT_FALSE(has_mask_bit(mask, kMark)) << "it is in no string";
  EXPECT_TRUE(has_mask_bit(mask, 'x'));
}

}  // namespace
}  // namespace pagoda::structured
