#include "structured/grammar_cases.h"

namespace pagoda::structured {
namespace {

TEST(SchemaTest, TypesTakeTheirValuesAndNoOthers) {
  expect_cases(
      {
          {R"({"type":"null"})", {"null"}, {"nul", "nulll", "", " null", "0"}},
          {R"({"type":"boolean"})", {"true", "false"}, {"True", "1", "null"}},
          {R"({"type":"integer"})", {"0", "-1", "12345", "-0"}, {"01", "1.0", "1e3", "+1", "--1"}},
          {R"({"type":"number"})",
           {"0", "-1.5", "3e8", "1.25E-3", "0.001"},
           {".5", "1.", "1e", "00", "-"}},
          {R"({"type":"string"})",
           {R"("")", R"("a b")", R"("\n\u00e9\ud83d\ude00")", "\"\xC3\xA9\xF0\x9F\x98\x80\""},
           {R"(")", R"("a)", "\"\n\"", R"("\ud83d")", R"("\x")", "\"\xC3\"", "\"\xED\xA0\x80\""}},
          {R"({"type":["string","null"]})", {R"("a")", "null"}, {"1", "{}"}},
          {R"({"type":"array"})",
           {"[]", "[1,2]", R"([ "a", {"b": [null]}])", "[\n  1,\n  2\n]"},
           {"[1,]", "[,1]", "[1 2]", "{}", "[  1]"}},
          {R"({"type":"object"})",
           {"{}", R"({"a":1})", R"({"a": 1, "b": {"c": []}})", "{\n\t\"a\": 1\n}"},
           {"[]", R"({a:1})", R"({"a":1,})", R"({"a" :1})"}},
          {"{}", {"1", "null", "[]", "{}", R"("x")"}, {"", "x", "1 "}},
          {"true", {"1", R"({"a":[]})"}, {"", "]"}},
      },
      schema_grammar);
}

TEST(SchemaTest, EqualValuesMayBeWrittenDifferently) {
  expect_cases(
      {{R"({"allOf":[{"enum":[1,2.0,3,{"a":1,"b":[1.0]}]},{"enum":[1.0,2,{"b":[1],"a":1},4]}]})",
        {"1", "2.0", R"({"a":1,"b":[1.0]})"},
        {"3", "4"}},
       {R"({"enum":[{"a":1,"b":2},5],"const":{"b":2,"a":1}})", {R"({"b":2,"a":1})"}, {"5"}},
       {R"({"oneOf":[{"const":1},{"const":1.5}]})", {"1", "1.5"}, {"2"}}},
      schema_grammar);
}

// Grammars of numbers have a limited number of digits; values that are listed do not.
TEST(SchemaTest, ValuesBesideKeywordsAboutNumbersAreComparedAsNumbers) {
  expect_cases(
      {{R"({"enum":[1.0,1e25,3,-1,"x"],"minimum":0})",
        {"1.0", "1e+25", "3", R"("x")"},
        {"-1", "1"}},
       {R"({"enum":[0.3,0.35,0.5,-0.25],"multipleOf":0.1})", {"0.3", "0.5"}, {"0.35"}},
       {R"({"enum":[0.5,0.75,1],"multipleOf":0.25,"exclusiveMaximum":1})", {"0.5", "0.75"}, {"1"}},
       {R"({"enum":["ab","abc"],"maxLength":2})", {R"("ab")"}, {R"("abc")"}}},
      schema_grammar);
}

TEST(SchemaTest, MembersComeInTheOrderOfTheSchema) {
  expect_cases({{R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"boolean"},
            "c":{"type":"null"}},"required":["b"]})",
                 {R"({"b":true})", R"({"a":1,"b":false})", R"({"a":1, "b":true, "c":null})",
                  R"({"b":true,"c":null})", "{\n  \"a\": 1,\n  \"b\": true\n}"},
                 {"{}", R"({"a":1})", R"({"b":true,"a":1})", R"({"b":1})", R"({"b":true,"b":true})",
                  R"({"b":true,"d":1})", R"({"a":1,"c":null})", R"({"b":true,})"}},
                {R"({"type":"object","properties":{"a":{},"b":{}}})",
                 {"{}", R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})"},
                 {R"({"b":2,"a":1})", R"({"c":1})"}},
                {R"({"type":"object","required":["x"]})", {R"({"x":1})", R"({"x":[]})"}, {"{}"}}},
               schema_grammar);
}

TEST(SchemaTest, OtherMembersNeedAdditionalProperties) {
  expect_cases({{R"({"type":"object","properties":{"ab":{"type":"integer"}},
            "additionalProperties":{"type":"string"}})",
                 {"{}", R"({"ab":1})", R"({"ab":1,"a":"x","abc":"y"})", R"({"":"x","x\n":"y"})",
                  R"({"b\u0061":"x"})", "{\"\xC3\xA9\":\"x\"}"},
                 {R"({"ab":"x"})", R"({"a":1})", R"({"ab":1,"ab":"x"})", R"({"\u0061b":"x"})",
                  R"({"x":"y","ab":1})", R"({"a\u0062":"x"})"}},
                {R"({"type":"object","properties":{"a":{}},"additionalProperties":true})",
                 {R"({"a":1,"b":2})", R"({"b":{"a":1}})"},
                 {R"({"b":1,"a":2})"}},
                {R"({"type":"object","additionalProperties":false})", {"{}"}, {R"({"a":1})"}},
                {R"({"type":"object","properties":{"é":{"type":"null"},"è":{"type":"null"}},
            "additionalProperties":{"type":"integer"}})",
                 {R"({"é":null,"ê":1})", R"({"è":null})"},
                 {R"({"é":1})", R"({"è":1})"}}},
               schema_grammar);
}

TEST(SchemaTest, ArraysHaveTheirElementsAndCounts) {
  expect_cases(
      {{R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3})",
        {"[1,2]", "[1, 2, 3]"},
        {"[]", "[1]", "[1,2,3,4]", "[1,true]"}},
       {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],
            "items":{"type":"null"}})",
        {"[]", "[1]", R"([1,"a"])", R"([1,"a",null,null])"},
        {R"(["a"])", R"([1,2])", R"([1,"a",1])"}},
       {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"minItems":2})",
        {R"([1,"a"])"},
        {"[]", "[1]", R"([1,"a",null])"}},
       {R"({"type":"array","items":false})", {"[]"}, {"[1]"}},
       {R"({"type":"array","maxItems":0})", {"[]", "[ ]"}, {"[1]"}},
       {R"({"type":"array","items":{"type":"integer"},"maxItems":1000})", {"[1]", "[]"}, {"[1,]"}}},
      schema_grammar);
}

TEST(SchemaTest, LengthsCountCodePoints) {
  expect_cases({{R"({"type":"string","minLength":2,"maxLength":3})",
                 {R"("ab")", R"("éé")", R"("\n\n")", R"("\ud83d\ude00x")", R"("abc")"},
                 {R"("")", R"("a")", R"("é")", R"("abcd")", R"("\ud83d\ude00")"}},
                {R"({"type":"string","maxLength":0})", {R"("")"}, {R"("a")"}},
                {R"({"type":"string","minLength":1})", {R"("a")", R"("abcdef")"}, {R"("")"}}},
               schema_grammar);
}

TEST(SchemaTest, ALongBoundIsExact) {
  const auto grammar = schema_grammar(R"({"type":"string","minLength":4999,"maxLength":5000})");
  ASSERT_TRUE(grammar.ok());
  for (const int length : {4998, 4999, 5000, 5001}) {
    const std::string text = "\"" + std::string(static_cast<std::size_t>(length), 'x') + "\"";
    EXPECT_EQ(matches_text(*grammar.value(), text), length == 4999 || length == 5000) << length;
  }
  EXPECT_LT(grammar.value()->program()->code.size(), 100U) << "a bound is a counter, not states";
}

TEST(SchemaTest, ValuesAreListed) {
  expect_cases({{R"({"enum":["red","green",1,null,{"a":[1,2]}]})",
                 {R"("red")", R"("green")", "1", "null", R"({"a":[1,2]})", R"({"a": [1, 2]})"},
                 {R"("re")", "2", "{}", R"({"a":[1]})"}},
                {R"({"const":"a\"b"})", {R"("a\"b")"}, {R"("a")"}},
                {R"({"enum":["a","bb","ccc"],"minLength":2})", {R"("bb")", R"("ccc")"}, {R"("a")"}},
                {R"({"type":"string","enum":["a",1]})", {R"("a")"}, {"1"}},
                {R"({"type":"integer","enum":[1,5,10],"minimum":5})", {"5", "10"}, {"1"}}},
               schema_grammar);
}

TEST(SchemaTest, SchemasAreCombined) {
  expect_cases(
      {{R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]})",
        {"1", R"("a")"},
        {R"("ab")", "null"}},
       {R"({"oneOf":[{"type":"integer"},{"type":"null"}]})", {"1", "null"}, {"true"}},
       {R"({"allOf":[{"minimum":3},{"maximum":5}],"type":"integer"})", {"3", "5"}, {"2", "6"}},
       {R"({"type":"object","properties":{"a":{"type":"integer"}},
            "allOf":[{"properties":{"b":{"type":"null"}},"required":["b"]},
                     {"properties":{"a":{"minimum":2}}}]})",
        {R"({"b":null})", R"({"a":2,"b":null})"},
        {R"({"a":1,"b":null})", R"({"a":2})"}},
       {R"({"type":"object","properties":{"k":{"const":1}},"required":["k"],
            "anyOf":[{"properties":{"a":{"type":"null"}},"required":["a"]},
                     {"properties":{"b":{"type":"null"}},"required":["b"]}]})",
        {R"({"k":1,"a":null})", R"({"k":1,"b":null})"},
        {R"({"k":1})", R"({"a":null})"}},
       {R"({"allOf":[{"anyOf":[{"type":"string"},{"type":"integer"}]},
                     {"anyOf":[{"type":"integer"},{"type":"null"}]}]})",
        {"1"},
        {R"("a")", "null"}}},
      schema_grammar);
}

TEST(SchemaTest, ReferencesMayBeRecursive) {
  expect_cases(
      {{R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object",
            "properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/node"},
            {"type":"null"}]}},"required":["v","next"]}}})",
        {R"({"v":1,"next":null})", R"({"v":1,"next":{"v":2,"next":null}})"},
        {R"({"v":1})", R"({"v":1,"next":{}})"}},
       {R"({"type":"array","items":{"$ref":"#"}})", {"[]", "[[],[[]]]"}, {"[1]", "[[]"}},
       {R"({"$ref":"#/definitions/a~1b","definitions":{"a/b":{"type":"null"}}})", {"null"}, {"1"}},
       {R"({"$ref":"#/%24defs/x","$defs":{"x":{"type":"null"}},"title":"t"})", {"null"}, {"1"}}},
      schema_grammar);
}

TEST(SchemaTest, OneOfIsTakenWhereItsSchemasExcludeEachOther) {
  expect_cases({{R"({"oneOf":[
            {"type":"object","properties":{"k":{"const":"a"},"x":{"type":"integer"}},
             "required":["k","x"]},
            {"type":"object","properties":{"k":{"const":"b"},"y":{"type":"null"}},
             "required":["k","y"]}],"discriminator":{"propertyName":"k"}})",
                 {R"({"k":"a","x":1})", R"({"k":"b","y":null})"},
                 {R"({"k":"a","y":null})"}},
                {R"({"oneOf":[{"type":"integer","maximum":3},{"type":"integer","minimum":4}]})",
                 {"3", "4", "-7"},
                 {"4.5"}}},
               schema_grammar);
}

TEST(SchemaTest, PatternsAndFormatsAreEnforced) {
  expect_cases(
      {{R"({"type":"string","pattern":"^[a-z]+$"})", {R"("abc")"}, {R"("")", R"("aB")"}},
       {R"({"type":"string","pattern":"b"})", {R"("abc")", R"("b")"}, {R"("ac")"}},
       {R"({"type":"string","pattern":"^[a-z]*$","minLength":2,"maxLength":3})",
        {R"("ab")", R"("abc")"},
        {R"("a")", R"("abcd")"}},
       {R"({"type":"string","pattern":"^[A-Z][a-z0-9_]*!$","minLength":3,"maxLength":5})",
        {R"("Ab!")", R"("A0_z!")"},
        {R"("A!")", R"("Aabcd!")", R"("abc!")", R"("Abcd")"}},
       {R"({"type":"string","pattern":"^x","maxLength":3})",
        {R"("x")", R"("xé\n")"},
        {R"("ax")", R"("xabc")"}},
       {R"({"type":"string","pattern":"b$","minLength":2})", {R"("ab")"}, {R"("b")", R"("ba")"}},
       {R"({"type":"string","pattern":"^a\"\\\\\n$"})", {R"("a\"\\\n")"}, {R"("a")"}},
       {R"({"type":"string","format":"date"})",
        {R"("2024-02-29")", R"("2023-12-31")", R"("2000-02-29")"},
        {R"("2023-02-29")", R"("2023-13-01")", R"("2023-04-31")", R"("1900-02-29")"}},
       {R"({"type":"string","format":"date-time"})",
        {R"("2024-01-01T00:00:00Z")", R"("2024-01-01T23:59:59.5+02:00")"},
        {R"("2024-01-01")", R"("2024-01-01T24:00:00Z")"}},
       {R"({"type":"string","format":"uuid"})",
        {R"("123e4567-e89b-12d3-a456-426614174000")"},
        {R"("123e4567-e89b-12d3-a456-42661417400")"}},
       {R"({"type":"string","format":"ipv4"})",
        {R"("255.0.0.1")"},
        {R"("256.0.0.1")", R"("1.2.3")"}},
       {R"({"type":"string","format":"ipv6"})",
        {R"("::1")", R"("1:2:3:4:5:6:7:8")", R"("fe80::1:2")", R"("::")", R"("1::")"},
        {R"("1:2")", R"("1::2::3")", R"("12345::")"}},
       {R"({"type":"string","format":"email"})", {R"("a.b@c.de")"}, {R"("a@")", R"("a")"}},
       {R"({"type":"string","format":"uri"})",
        {R"("https://a.b/c?d=e#f")", R"("mailto:a@b")", R"("http://x.y.org:80/a%20b/")"},
        {R"("a b")", R"("/x")"}},
       {R"({"type":"string","format":"uri","minLength":1,"maxLength":2083})",
        {R"("https://a.b/c")"},
        {R"("")"}},
       {R"({"type":"integer","format":"int32"})",
        {"2147483647", "-2147483648"},
        {"2147483648", "-2147483649"}},
       {R"({"type":"number","format":"double"})", {"1.5"}, {R"("a")"}},
       {R"({"type":"string","format":"duration"})",
        {R"("P1DT2H")", R"("PT5S")"},
        {R"("P")", R"("1D")"}}},
      schema_grammar);
}

TEST(SchemaTest, EmptyPropertiesAreAllThereAre) {
  expect_cases({{R"({"type":"object","properties":{}})", {"{}"}, {R"({"a":1})"}},
                {R"({"type":"object"})", {"{}", R"({"a":1})"}, {"1"}},
                {R"({"type":"object","properties":{},"additionalProperties":true})",
                 {"{}", R"({"a":1})"},
                 {"1"}}},
               schema_grammar);
}

TEST(SchemaTest, DatesBeginWithYearOne) {
  expect_cases({{R"({"format":"date","type":"string"})",
                 {"\"0001-01-01\"", "\"0004-02-29\"", "\"0400-02-29\"", "\"2000-02-29\""},
                 {"\"0000-01-01\"", "\"0000-02-29\"", "\"1900-02-29\""}}},
               schema_grammar);
}

}  // namespace
}  // namespace pagoda::structured
