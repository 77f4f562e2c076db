#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "counted_allocations.h"
#include "structured/grammar_cases.h"
#include "structured/string_automaton.h"

namespace pagoda::structured {
namespace {

constexpr std::uint32_t kEnd = 0;
constexpr std::uint32_t kControl = 1;

// Bytes, pieces of JSON and of words, and texts that go over the end of a string.
std::shared_ptr<const MaskVocabulary> toy_vocabulary() {
  std::vector<std::string> bytes = {"", ""};
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  for (const char* text : {"{\"",
                           "\":",
                           "\": ",
                           "\",",
                           "\", \"",
                           "\"}",
                           "\"]",
                           "},",
                           "]}",
                           "ab",
                           "abc",
                           "the",
                           " the",
                           "a\"",
                           "ab\",",
                           "é",
                           "éa",
                           "\xC3\xA9\"",
                           "\\n",
                           "\\\"",
                           "\\u00",
                           "x\\",
                           "n\"",
                           "n\",",
                           "true",
                           "false",
                           "null",
                           "12",
                           "123",
                           "-",
                           "\n  ",
                           "\n    ",
                           "   ",
                           ": {",
                           "[1",
                           ", ",
                           "hello world and more of it",
                           "\xF0\x9F",
                           "\x98\x80",
                           "ab",
                           "u12",
                           "d83d",
                           "\\ud83d\\u",
                           "member_1",
                           "\"a\":",
                           "\"b\"",
                           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                           "bbbb\",\"c"}) {
    bytes.emplace_back(text);
  }
  const std::vector<TokenId> ends = {TokenId(kEnd)};
  const std::size_t size = bytes.size() + 5;
  return MaskVocabulary::build(std::move(bytes), ends, size);
}

std::vector<std::uint32_t> tokens_of(std::span<const MaskWord> mask, std::size_t size) {
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < size; ++i) {
    if (has_mask_bit(mask, i)) tokens.push_back(i);
  }
  return tokens;
}

// What may come next, by trying each token on a copy of the matcher.
std::vector<std::uint32_t> tried_tokens(const Matcher& matcher) {
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < matcher.vocabulary().size(); ++i) {
    Matcher copy = matcher;
    if (copy.accept(TokenId(i)).ok()) tokens.push_back(i);
  }
  return tokens;
}

const std::vector<std::string>& mask_schemas() {
  static const std::vector<std::string> kSchemas = {
      R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},
          "required":["a"]})",
      R"({"type":"string","minLength":3,"maxLength":7})",
      R"({"type":"string","minLength":40,"maxLength":90})",
      R"({"type":"array","items":{"type":"string","maxLength":4},"minItems":1,"maxItems":3})",
      R"({"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}},{"type":"null"}]})",
      R"({"anyOf":[{"type":"string","maxLength":2},{"const":"abcabc"},{"enum":["the","then"]}]})",
      R"({"type":"object","additionalProperties":{"type":"string","pattern":"^[a-z]{2,5}$"}})",
      R"({"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{}})",
      R"({"type":"array","items":{"$ref":"#"},"maxItems":2})",
      "{}",
  };
  return kSchemas;
}

TEST(MaskTest, AMaskIsWhatEachTokenAloneWouldDo) {
  const auto vocabulary = toy_vocabulary();
  std::vector<MaskWord> mask(vocabulary->words());
  for (const std::string& schema : mask_schemas()) {
    const auto grammar = schema_grammar(schema);
    ASSERT_TRUE(grammar.ok()) << grammar.error().message;
    for (unsigned seed = 0; seed < 8; ++seed) {
      std::mt19937 random(seed);
      Matcher matcher(grammar.value(), vocabulary);
      for (int step = 0; step < 40; ++step) {
        ASSERT_TRUE(matcher.fill_mask(mask).ok()) << schema;
        const std::vector<std::uint32_t> tokens = tokens_of(mask, vocabulary->size());
        ASSERT_EQ(tokens, tried_tokens(matcher)) << schema << " seed " << seed << " step " << step;
        const std::uint32_t token = tokens[random() % tokens.size()];
        ASSERT_TRUE(matcher.accept(TokenId(token)).ok());
        if (token == kEnd) break;
      }
    }
  }
}

// Where a text commits to one way, tokens that go beyond that point are judged by it alone, also
// those that the other way would take from within a string.
TEST(MaskTest, ACommittedTextGoesOnInOneWay) {
  GrammarBuilder builder;
  const GrammarNodeId call =
      builder.sequence({builder.literal(R"({"a":"ab",)"), builder.commit(),
                        builder.literal(R"("b")"), builder.json_object(), builder.literal("}")});
  const auto grammar = builder.finish(builder.alternatives({builder.json_object(), call})).value();
  EXPECT_TRUE(matches_text(*grammar, R"({"a":"ab"})"));
  EXPECT_TRUE(matches_text(*grammar, R"({"a":"abc","b":1})"));
  EXPECT_TRUE(matches_text(*grammar, R"({"a":"ab","b"{}})"));
  EXPECT_FALSE(matches_text(*grammar, R"({"a":"ab","b":1})")) << "it is a call from the comma on";
  const auto vocabulary = toy_vocabulary();
  std::mt19937 random(5);
  std::vector<MaskWord> mask(vocabulary->words());
  for (const char* const begin : {"", R"({"a":")", R"({"a":"ab)", R"({"a":"ab",)", R"({"a":"b)"}) {
    Matcher matcher(grammar, vocabulary);
    for (const char* at = begin; *at != '\0'; ++at) {
      ASSERT_TRUE(matcher.accept(TokenId(2 + static_cast<unsigned char>(*at))).ok()) << begin;
    }
    for (int i = 0; i < 8 && !matcher.must_end(); ++i) {
      ASSERT_TRUE(matcher.fill_mask(mask).ok());
      const auto allowed = tokens_of(mask, vocabulary->size());
      EXPECT_EQ(allowed, tried_tokens(matcher)) << begin;
      ASSERT_TRUE(matcher.accept(TokenId(allowed[random() % allowed.size()])).ok());
    }
  }
}

TEST(MaskTest, ControlTokensAndPaddingAreNeverAllowed) {
  const auto vocabulary = toy_vocabulary();
  const auto grammar = grammar_from_regex("(.|\\n)*");
  ASSERT_TRUE(grammar.ok());
  Matcher matcher(grammar.value(), vocabulary);
  std::vector<MaskWord> mask(vocabulary->words());
  ASSERT_TRUE(matcher.fill_mask(mask).ok());
  EXPECT_FALSE(has_mask_bit(mask, kControl));
  EXPECT_TRUE(has_mask_bit(mask, kEnd));
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_FALSE(has_mask_bit(mask, static_cast<std::uint32_t>(vocabulary->size()) - 1 - i));
  }
  EXPECT_FALSE(matcher.accept(TokenId(kControl)).ok());
}

TEST(MaskTest, TheEndIsAllowedWhereTheTextMayEnd) {
  const auto vocabulary = toy_vocabulary();
  const auto grammar = schema_grammar(R"({"type":"array","items":{"type":"integer"}})");
  ASSERT_TRUE(grammar.ok());
  Matcher matcher(grammar.value(), vocabulary);
  std::vector<MaskWord> mask(vocabulary->words());
  for (const char c : std::string("[1]")) {
    EXPECT_FALSE(matcher.may_end());
    EXPECT_FALSE(matcher.accept(TokenId(kEnd)).ok());
    ASSERT_TRUE(matcher.accept(TokenId(2 + static_cast<unsigned char>(c))).ok());
  }
  EXPECT_TRUE(matcher.must_end());
  ASSERT_TRUE(matcher.fill_mask(mask).ok());
  EXPECT_EQ(tokens_of(mask, vocabulary->size()), std::vector<std::uint32_t>{kEnd});
  ASSERT_TRUE(matcher.accept(TokenId(kEnd)).ok());
  ASSERT_TRUE(matcher.fill_mask(mask).ok());
  EXPECT_EQ(tokens_of(mask, vocabulary->size()), std::vector<std::uint32_t>{kEnd});
}

TEST(MaskTest, ACopyGoesItsOwnWay) {
  const auto vocabulary = toy_vocabulary();
  const auto grammar = grammar_from_choice({"ab", "ac"});
  ASSERT_TRUE(grammar.ok());
  Matcher first(grammar.value(), vocabulary);
  ASSERT_TRUE(first.accept(TokenId(2 + 'a')).ok());
  Matcher second = first;
  ASSERT_TRUE(first.accept(TokenId(2 + 'b')).ok());
  ASSERT_TRUE(second.accept(TokenId(2 + 'c')).ok());
  EXPECT_TRUE(first.must_end());
  EXPECT_TRUE(second.must_end());
}

// Many states are made and forgotten on the way; the text and its masks stay right.
TEST(MaskTest, LongAnswersForgetStatesAndStayExact) {
  const auto vocabulary = toy_vocabulary();
  const auto grammar = grammar_from_regex("([a-z]{1,9} )*[a-z]{2500,3000}!");
  ASSERT_TRUE(grammar.ok());
  Matcher matcher(grammar.value(), vocabulary);
  std::vector<MaskWord> mask(vocabulary->words());
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(matcher.fill_mask(mask).ok());
    ASSERT_EQ(has_mask_bit(mask, 2 + '!'), i >= 2500) << i;
    ASSERT_TRUE(has_mask_bit(mask, 2 + 'z')) << i;
    ASSERT_TRUE(matcher.accept(TokenId(2 + 'z')).ok());
  }
  ASSERT_TRUE(matcher.fill_mask(mask).ok());
  EXPECT_FALSE(has_mask_bit(mask, 2 + 'z'));
}

// What a request is charged for a matcher is what it takes.
TEST(MaskTest, MemoryStaysWithinWhatIsCounted) {
  const auto vocabulary = toy_vocabulary();
  for (const char* const pattern :
       {"([a-z]{1,20} ?){1,100}", "(.*e.{30})+", "[ab]*a[ab]{900}", "(.{1,15}){1,120}",
        "([a-c]|aa|bb|cc|abc|cab|bac){1,3000}x", "((a|b)*c){1,500}(.*d){9}"}) {
    const auto grammar = grammar_from_regex(pattern);
    ASSERT_TRUE(grammar.ok());
    const HeldBytes held;
    Matcher matcher(grammar.value(), vocabulary);
    std::vector<MaskWord> mask(vocabulary->words());
    std::mt19937 random(1);
    for (int i = 0; i < 300 && matcher.fill_mask(mask).ok(); ++i) {
      const std::vector<std::uint32_t> tokens = tokens_of(mask, vocabulary->size());
      if (!matcher.accept(TokenId(tokens[random() % tokens.size()])).ok()) break;
      if (matcher.has_ended()) break;
    }
    EXPECT_LT(held.most(), matcher.bytes_max() * 5 / 4) << pattern;
  }
}

// A wide choice has many states, most of which one byte leaves.
TEST(MaskTest, AChoiceOfThousandsOfTextsIsTaken) {
  std::vector<std::string> texts;
  std::mt19937 random(3);
  for (int i = 0; i < 9000; ++i) {
    std::string text;
    for (int k = 0; k < 12; ++k) text += static_cast<char>('a' + random() % 26);
    texts.push_back(text);
  }
  std::vector<std::string> bytes = {""};
  for (int i = 0; i < 60'000; ++i) {
    std::string text;
    for (unsigned k = 0; k < 1 + random() % 6; ++k) text += static_cast<char>('a' + random() % 26);
    bytes.push_back(text);
  }
  const std::vector<TokenId> ends = {TokenId(0)};
  const auto vocabulary = MaskVocabulary::build(std::move(bytes), ends, 60'001);
  const auto grammar = grammar_from_choice(texts);
  ASSERT_TRUE(grammar.ok());
  Matcher matcher(grammar.value(), vocabulary);
  std::vector<MaskWord> mask(vocabulary->words());
  const Status filled = matcher.fill_mask(mask);
  EXPECT_TRUE(filled.ok()) << filled.error().message;
  EXPECT_LT(matcher.bytes(), kAutomatonBytesMax);
}

// Counts that a list could have had by now are kept as intervals.
TEST(MaskTest, AmbiguousListsStaySmall) {
  const auto vocabulary = toy_vocabulary();
  for (const char* const pattern :
       {"([a-z]+ ?){1,2000}", "(.{1,3}){1,500}", "([a-z]{1,20} ?){1,100}", "(.{1,15}){1,120}"}) {
    const auto grammar = grammar_from_regex(pattern);
    ASSERT_TRUE(grammar.ok());
    Matcher matcher(grammar.value(), vocabulary);
    std::vector<MaskWord> mask(vocabulary->words());
    for (int i = 0; i < 1490; ++i) {
      const Status filled = matcher.fill_mask(mask);
      ASSERT_TRUE(filled.ok()) << pattern << " at " << i << ": " << filled.error().message;
      ASSERT_TRUE(has_mask_bit(mask, 2 + 'a')) << pattern << " at " << i;
      ASSERT_TRUE(matcher.accept(TokenId(2 + 'a')).ok()) << pattern << " at " << i;
      ASSERT_TRUE(matcher.may_end());
    }
  }
}

// However deep a value is nested, it has an end.
TEST(MaskTest, NestingAsDeepAsAllowedCanBeClosed) {
  const auto vocabulary = toy_vocabulary();
  struct Nesting {
    std::string open, close;
  };
  for (const Nesting& nesting : {Nesting{"{\"a\":", "}"}, Nesting{"[", "]"}}) {
    const auto& open = nesting.open;
    const auto& close = nesting.close;
    const auto grammar =
        open == "[" ? grammar_from_schema(nlohmann::ordered_json::parse(R"({"type":"array"})"))
                    : grammar_of_json_object();
    ASSERT_TRUE(grammar.ok());
    Matcher matcher(grammar.value(), vocabulary);
    std::vector<MaskWord> mask(vocabulary->words());
    const auto allows = [&](char byte) {
      const Status filled = matcher.fill_mask(mask);
      EXPECT_TRUE(filled.ok()) << filled.error().message;
      return filled.ok() && has_mask_bit(mask, 2 + static_cast<std::uint8_t>(byte));
    };
    const auto write = [&](const std::string& text) {
      for (const char byte : text) {
        ASSERT_TRUE(allows(byte)) << byte;
        ASSERT_TRUE(matcher.accept(TokenId(2 + static_cast<std::uint8_t>(byte))).ok()) << byte;
      }
    };
    // The innermost value may have to be empty.
    const auto opens = [&] {
      if (!allows(open[0])) return false;
      write(open.substr(0, 1));
      return open.size() == 1 || allows(open[1]);
    };
    int depth = 0;
    while (depth < 1000 && opens()) {
      ++depth;
      ASSERT_NO_FATAL_FAILURE(write(open.substr(1))) << depth;
    }
    EXPECT_GT(depth, 50);
    EXPECT_LT(depth, 1000);
    if (allows(close[0])) {
      ASSERT_NO_FATAL_FAILURE(write(close));
    } else {
      ASSERT_NO_FATAL_FAILURE(write("1"));
    }
    while (!matcher.must_end()) ASSERT_NO_FATAL_FAILURE(write(close)) << depth;
  }
}

TEST(MaskTest, AGrammarThatIsTooAmbiguousEndsInAnError) {
  const auto vocabulary = toy_vocabulary();
  // Every a of the last 9000 bytes may be the one that counts.
  const auto grammar = grammar_from_regex("[ab]*a[ab]{9000}");
  ASSERT_TRUE(grammar.ok());
  Matcher matcher(grammar.value(), vocabulary);
  std::vector<MaskWord> mask(vocabulary->words());
  Status status = ok_status();
  for (int i = 0; i < 6000 && status.ok(); ++i) {
    status = matcher.fill_mask(mask);
    if (status.ok()) status = matcher.accept(TokenId(2 + (i % 2 == 0 ? 'a' : 'b')));
  }
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("too ambiguous"), std::string::npos);
}

// Each choice of a request copies the matcher behind its first mask.
TEST(MaskTest, ATrimmedMatcherIsSmallAndGoesOnAsBefore) {
  const auto grammar = schema_grammar(R"({"type":"object","properties":{
      "a":{"type":"string","format":"uri"},"b":{"type":"array","items":{"type":"number"}}}})");
  const auto vocabulary = toy_vocabulary();
  Matcher matcher(grammar.value(), vocabulary);
  Matcher other = matcher;
  std::vector<MaskWord> mask(vocabulary->words());
  std::vector<MaskWord> expected(vocabulary->words());
  const auto token_of = [&](std::string_view text) {
    for (std::uint32_t i = 2; i < vocabulary->size(); ++i) {
      if (vocabulary->bytes_of(TokenId(i)) == text) return TokenId(i);
    }
    return TokenId(kEnd);
  };
  for (const char* const text : {"{\"", "a", "\": ", "\"", "h", ":", "a", "\"", "}"}) {
    ASSERT_TRUE(matcher.fill_mask(mask).ok());
    const std::uint64_t before = matcher.bytes();
    matcher.trim();
    EXPECT_LE(matcher.bytes(), before);
    EXPECT_LT(matcher.bytes(), 16U << 10);
    ASSERT_TRUE(matcher.fill_mask(mask).ok());
    ASSERT_TRUE(other.fill_mask(expected).ok());
    EXPECT_EQ(mask, expected) << text;
    ASSERT_TRUE(matcher.accept(token_of(text)).ok()) << text;
    ASSERT_TRUE(other.accept(token_of(text)).ok()) << text;
  }
}

}  // namespace
}  // namespace pagoda::structured
