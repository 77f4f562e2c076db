// Masks of expressions that repeat a set of characters, over a vocabulary of many words, broken
// characters and white space.
#include <random>

#include "structured/grammar_cases.h"

namespace pagoda::structured {
namespace {

constexpr std::uint32_t kEndToken = 0;
constexpr std::size_t kDrawnTokens = 400;

// Every byte, and drawn tokens of pieces that expressions tell apart.
std::shared_ptr<const MaskVocabulary> drawn_vocabulary(unsigned seed) {
  static const std::vector<std::string> kPieces = {
      "a",        "b",    "c",    "f",    "o",    "é",        "日",       "\xE2\x80\xA8",
      "\xE2\x80", "\xE2", "\xA8", "\x01", "\x80", "\xF0\x9F", "\x98\x80", "A",
      "B",        "0",    "7",    " ",    "-",    "_",        ".",        "\"",
      "\\",       "\n",   "\t",   "<",    "/",    "😀",        "ab",       "foo",
      "\",\"",    ": \"", "    ", "bar"};
  std::mt19937 random(seed);
  std::vector<std::string> bytes = {""};
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  for (std::size_t i = 0; i < kDrawnTokens; ++i) {
    std::string text;
    // Half of the tokens are words.
    const std::size_t pieces = i % 2 == 0 ? 5 : kPieces.size();
    for (unsigned k = 0; k < 1 + random() % 5; ++k) text += kPieces[random() % pieces];
    if (i % 8 == 0) text.insert(0, i % 16 == 0 ? " " : "A");
    bytes.push_back(text);
  }
  bytes.emplace_back(40, 'a');
  bytes.emplace_back(30, ' ');
  const std::vector<TokenId> ends = {TokenId(kEndToken)};
  const std::size_t size = bytes.size() + 3;
  return MaskVocabulary::build(std::move(bytes), ends, size);
}

std::vector<std::uint32_t> allowed_by(std::span<const MaskWord> mask, std::size_t size) {
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < size; ++i) {
    if (has_mask_bit(mask, i)) tokens.push_back(i);
  }
  return tokens;
}

// What may come next, by trying each token on a copy of the matcher.
std::vector<std::uint32_t> tried_one_by_one(Matcher matcher) {
  matcher.trim();
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < matcher.vocabulary().size(); ++i) {
    Matcher copy = matcher;
    if (copy.accept(TokenId(i)).ok()) tokens.push_back(i);
  }
  return tokens;
}

void expect_exact_masks(const std::shared_ptr<const Grammar>& grammar, const std::string& source,
                        int rounds) {
  for (int round = 0; round < rounds; ++round) {
    std::mt19937 random(static_cast<unsigned>(round));
    const auto vocabulary = drawn_vocabulary(static_cast<unsigned>(round));
    Matcher matcher(grammar, vocabulary);
    std::vector<MaskWord> mask(vocabulary->words());
    for (int step = 0; step < 12; ++step) {
      const Status filled = matcher.fill_mask(mask);
      ASSERT_TRUE(filled.ok()) << source << ": " << filled.error().message;
      const std::vector<std::uint32_t> tokens = allowed_by(mask, vocabulary->size());
      ASSERT_EQ(tokens, tried_one_by_one(matcher))
          << source << " round " << round << " step " << step;
      const std::uint32_t token = tokens[random() % tokens.size()];
      ASSERT_TRUE(matcher.accept(TokenId(token)).ok());
      if (token == kEndToken) break;
    }
  }
}

TEST(RunMaskTest, AnExpressionsMaskIsWhatEachTokenAloneWouldDo) {
  for (const char* const pattern : {
           "[a-z ]{5,200}\\.( [A-Z][a-z ]{2,60}\\.)*",
           "[A-Z][a-z]*",
           " A[a-z]+-",
           "[a-c]{2,7}",
           "[a-c]{3}[a-z]*",
           "([a-z]+ ?){1,9}",
           "[a-z]+(-[a-z]+)*",
           "[a-z]+[a-z0-9]*[A-Z]?",
           ".*foo.*",
           ".*",
           ".{2,9}",
           "(.|\\n)*",
           "[^a]*a",
           "[^\"\\\\\\x00-\\x1F]+\"",
           "[^<]{3,}<(/|[^a])*",
           "\\w+\\s\\w+",
           "\\W*",
           "\\S+",
           "\\D{1,6}",
           "[a-zé]+日?",
           "[\\x00-\\x05a]+",
           "[\\t ]*[a-f0-9]{4,}\"",
           "(.*, )*.*",
           "(.{1,3}){1,50}",
           "(a|ab|[a-c]{2})+[._-]*",
           "(\\.|[^.])*",
       }) {
    const auto grammar = grammar_from_regex(pattern);
    ASSERT_TRUE(grammar.ok()) << pattern << ": " << grammar.error().message;
    ASSERT_NO_FATAL_FAILURE(expect_exact_masks(grammar.value(), pattern, 2));
  }
}

TEST(RunMaskTest, ASchemasMaskIsWhatEachTokenAloneWouldDo) {
  for (const char* const schema : {
           R"({"type":"array","items":{"type":"string","pattern":"^[a-z ]{1,20}$"},"maxItems":6})",
           R"({"type":"string","pattern":"^[a-z]+(-[a-z]+)*$","minLength":4,"maxLength":12})",
           R"({"type":"string","pattern":"^[ab]{2}([._-][ab]{1,3})*$","minLength":3})",
           R"({"type":"string","pattern":"a.b"})",
           R"({"type":"string","pattern":"^[^a]{2,5}$"})",
           R"({"anyOf":[{"type":"string","pattern":"^[a-z]*$"},{"const":"foo-"},
              {"type":"string","maxLength":3}]})",
           R"({"type":"object","additionalProperties":{"type":"string","pattern":"^\\w{2,9}$"}})",
       }) {
    const auto grammar = schema_grammar(schema);
    ASSERT_TRUE(grammar.ok()) << schema << ": " << grammar.error().message;
    ASSERT_NO_FATAL_FAILURE(expect_exact_masks(grammar.value(), schema, 2));
  }
}

TEST(RunMaskTest, AGrammarsMaskIsWhatEachTokenAloneWouldDo) {
  for (const char* const gbnf : {
           R"(root ::= "\"" ([^"\\\x00-\x1F] | "\\" ["\\/bfnrt])* "\"")",
           R"(root ::= [a-z]+ (" " root)? | .+ "<" [^<]* "/")",
           R"(root ::= line+
line ::= [^\n]{0,8} "\n" | "a" root)",
       }) {
    const auto grammar = grammar_from_gbnf(gbnf);
    ASSERT_TRUE(grammar.ok()) << gbnf << ": " << grammar.error().message;
    ASSERT_NO_FATAL_FAILURE(expect_exact_masks(grammar.value(), gbnf, 2));
  }
}

// Free text up to a marker, behind which all other ways are over.
TEST(RunMaskTest, FreeTextUpToAMarkerIsExact) {
  GrammarBuilder builder;
  const GrammarNodeId call =
      builder.sequence({builder.commit(), builder.regex("[a-z ]+\\.").value()});
  const auto grammar = builder.finish(builder.alternatives(
      {builder.text_until(TextMarker{"<a"}, call, true, {"foo"}), builder.regex("[^b]*").value()}));
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  expect_exact_masks(grammar.value(), "text until a marker", 4);
}

// Expressions of drawn sets and repetitions.
TEST(RunMaskTest, DrawnExpressionsAreExact) {
  static const std::vector<std::string> kParts = {"[a-z]",  "[a-c ]", ".",    "[^a]", "\\w",
                                                  "\\s",    "[A-Z]",  "-",    "foo",  "\\.",
                                                  "[^\\s]", "é",      "[ -~]"};
  static const std::vector<std::string> kCounts = {"",    "*",     "+",      "?",
                                                   "{2}", "{1,3}", "{2,30}", "{3,}"};
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const auto drawn = [&](const std::vector<std::string>& all) {
      return all[random() % all.size()];
    };
    std::string pattern;
    for (unsigned group = 0; group < 1 + random() % 2; ++group) {
      std::string inner;
      for (unsigned i = 0; i < 1 + random() % 3; ++i) {
        if (i > 0 && random() % 4 == 0) inner += "|";
        inner += drawn(kParts) + drawn(kCounts);
      }
      pattern += "(" + inner + ")" + drawn(kCounts);
    }
    const auto grammar = grammar_from_regex(pattern);
    ASSERT_TRUE(grammar.ok()) << pattern << ": " << grammar.error().message;
    ASSERT_NO_FATAL_FAILURE(expect_exact_masks(grammar.value(), pattern, 1));
  }
}

}  // namespace
}  // namespace pagoda::structured
