#include "structured/grammar_cases.h"

namespace pagoda::structured {
namespace {

Result<std::shared_ptr<const Grammar>> gbnf_grammar(const std::string& text) {
  return grammar_from_gbnf(text);
}

std::string repeated_text(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST(GbnfTest, RulesMatchTheirTexts) {
  expect_cases(
      {{"root ::= \"yes\" | \"no\"", {"yes", "no"}, {"yesno", ""}},
       {"root ::= a b? # a comment\na ::= \"x\"+\nb ::= [0-9]{2,3}",
        {"x", "xx12", "x123"},
        {"12", "x1"}},
       {"# first\n\nroot ::=\n  \"a\"\n  | \"b\"\n\n", {"a", "b"}, {"ab"}},
       {"root ::= ( \"a\" |\n \"b\" )* \"c\"", {"c", "abac"}, {"ab"}},
       {"root ::= [^\\n\\]]+", {"a-b", "\xC3\xA9"}, {"a\nb", "]"}},
       {"root ::= \"\\x41\\u00e9\\U0001F600\\n\\\"\"", {"A\xC3\xA9\xF0\x9F\x98\x80\n\""}, {"A"}},
       {"root ::= \"(\" root \")\" | \"x\"", {"x", "((x))"}, {"(x", "x)"}},
       {"root ::= \"ab\"{2} . ", {"ababz"}, {"abbz", "abab"}},
       {"root ::= item (\",\" item){,2}\nitem ::= [a-c]", {"a", "a,b,c"}, {"a,b,c,a"}},
       {"root ::= \"\" | \"a\" root", {"", "aaa"}, {"b"}},
       // Copies of what reads nothing are not made.
       {"root ::= \"y\" ((x | \"\"){9999999}){9999999}\nx ::= \"a\" x", {"y"}, {"ya"}},
       {"root ::= expr\nexpr ::= term (\"+\" term)*\nterm ::= [0-9]+ | \"(\" expr \")\"",
        {"1+2", "(1+2)+3"},
        {"1+", "(1"}}},
      gbnf_grammar);
}

TEST(GbnfTest, WrongGrammarsAreRefusedWithTheirPlace) {
  expect_errors(
      {{"", "rule \"root\" is not defined"},
       {"a ::= \"b\"", "rule \"root\" is not defined"},
       {"root ::= b", "rule \"b\" is not defined"},
       {"root ::= \"a\"\nroot ::= \"b\"", "is there twice"},
       {"root = \"a\"", "at byte 5: expected ::="},
       {"root ::= \"a", "without its end"},
       {"root ::= [a", "without its end"},
       {"root ::= (\"a\"", "expected )"},
       {"root ::= \"a\" )", "expected the end of the line"},
       {"root ::= \"\\q\"", "this escape"},
       {"root ::= <think>", "expected a literal"},
       {"root ::= \"a\"{3,1}", "the least count"},
       {"root ::= \"a\"*****", "too many quantifiers"},
       {"root ::= root \"a\" | \"b\"", "rule \"root\": refers to itself before"},
       {"root ::= a\na ::= \"\" b\nb ::= a | \"x\"", "refers to itself before"},
       {"root ::= \"x\" | c\nc ::= d \"a\" | \"b\"\nd ::= c",
        "rule \"c\": refers to itself before"},
       {"root ::= \"a\" root", "nothing matches"},
       // One instruction a copy, but a million nodes.
       {"root ::= \"y\" (\"a\"?" + repeated_text(" (x | \"\")", 10000) + "){99999}\nx ::= \"a\" x",
        "instructions"}},
      gbnf_grammar);
}

}  // namespace
}  // namespace pagoda::structured
