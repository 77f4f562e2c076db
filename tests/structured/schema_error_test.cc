#include "counted_allocations.h"
#include "structured/grammar_cases.h"

namespace pagoda::structured {
namespace {

TEST(SchemaErrorTest, AKeywordThatIsNotSupportedIsRefusedWithItsPointer) {
  expect_errors(
      {{R"({"not":{}})", "/not: this keyword is not supported"},
       {R"({"type":"object","properties":{"a/b":{"if":{}}}})", "/properties/a~1b/if:"},
       {R"({"items":{"anyOf":[{"type":"string"},{"contains":{}}]}})", "/items/anyOf/1/contains:"},
       {R"({"patternProperties":{}})", "/patternProperties:"},
       {R"({"$ref":"#/$defs/x","$defs":{"x":{"uniqueItems":true}}})", "/$defs/x/uniqueItems:"},
       {R"({"minProperties":1})", "/minProperties:"},
       {R"({"nullable":true})", "/nullable:"},
       {R"({"additionalProperties":{"dependentRequired":{}}})",
        "/additionalProperties/dependentRequired:"},
       {R"({"prefixItems":[{"propertyNames":{}}]})", "/prefixItems/0/propertyNames:"},
       {R"({"allOf":[{"unevaluatedProperties":false}]})", "/allOf/0/unevaluatedProperties:"}},
      schema_grammar);
}

TEST(SchemaErrorTest, AValueOfTheWrongKindIsRefusedWithItsPointer) {
  expect_errors({{R"({"type":"text"})", "/type: expected null"},
                 {R"({"type":5})", "/type:"},
                 {R"({"properties":[]})", "/properties:"},
                 {R"({"required":"a"})", "/required:"},
                 {R"({"minLength":-1})", "/minLength:"},
                 {R"({"minLength":1.5})", "/minLength:"},
                 {R"({"maxItems":"3"})", "/maxItems:"},
                 {R"({"minimum":"3"})", "/minimum:"},
                 {R"({"multipleOf":0})", "/multipleOf:"},
                 {R"({"enum":"a"})", "/enum:"},
                 {R"({"anyOf":[]})", "/anyOf:"},
                 {R"({"items":[{}]})", "/items: an array of schemas is written as prefixItems"},
                 {R"({"properties":{"a":3}})", "/properties/a: a schema is an object or a boolean"},
                 {R"({"format":"color"})", "/format: this format is not supported"},
                 {R"({"type":"string","pattern":"("})", "/pattern: at byte 1: expected )"},
                 {R"x({"type":"string","pattern":"(?=a)"})x", "/pattern: at byte"},
                 {R"({"$ref":"https://a.b/c"})", "/$ref: references within the schema"},
                 {R"({"$ref":"#/$defs/none"})", "/$ref: \"#/$defs/none\" is not there"},
                 {R"("x")", "#: a schema is an object or a boolean"}},
                schema_grammar);
}

TEST(SchemaErrorTest, WhatAGrammarCannotSayIsRefused) {
  expect_errors(
      {{R"({"oneOf":[{"type":"integer"},{"type":"number"}]})",
        "/oneOf: alternatives 0 and 1 may both match"},
       {R"({"oneOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]})", "/oneOf: alternatives"},
       {R"({"type":"string","pattern":"^(ab)+$","minLength":3,"maxLength":3})", "nothing"},
       {R"({"type":"string","pattern":"^([a-z]{9}|[0-9]{8}){9000}$","maxLength":80000})",
        "/pattern: is too large together with"},
       // No character fits, or sixty groups: neither is walked a billion times.
       {R"({"type":"string","pattern":"^(?:[^\\s\\S]b)*$","minLength":1000000000})",
        "nothing matches"},
       {R"({"type":"string","pattern":"^((((a*b*)c)d)e)$","maxLength":40000000})",
        "/pattern: is too large together with"},
       {R"({"type":"number","multipleOf":0.1234567})", "multipleOf"},
       {R"({"type":"integer","multipleOf":7,"minimum":1})", "multipleOf"},
       {R"({"allOf":[{"pattern":"a"},{"pattern":"b"}]})", "/allOf/1/pattern:"}},
      schema_grammar);
}

TEST(SchemaErrorTest, ASchemaThatNothingMatchesIsRefused) {
  expect_errors({{"false", "#: nothing matches"},
                 {R"({"enum":[]})", "#: nothing matches"},
                 {R"({"type":"integer","minimum":5,"maximum":4})", "#: nothing matches"},
                 {R"({"oneOf":[{"const":1},{"const":1.0}]})", "/oneOf: alternatives 0 and 1"},
                 {R"({"oneOf":[{"const":{"a":1,"b":2}},{"const":{"b":2,"a":1}}]})",
                  "/oneOf: alternatives 0 and 1"},
                 // The other member comes from the allOf.
                 {R"({"allOf":[{"properties":{"a":{"type":"null"},"k":{"type":"null"}}}],
                     "oneOf":[{"type":"object","required":["a"]},
                              {"type":"object","required":["k"]}]})",
                  "/oneOf: alternatives 0 and 1"},
                 {R"({"type":"string","minLength":2,"maxLength":1})", "#: nothing matches"},
                 {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
                  "#: nothing matches"},
                 {R"({"$ref":"#"})", "#: the schema refers to itself and never ends"},
                 {R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})", "refers to itself and never ends"},
                 {R"({"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#"}]}}})",
                  "refers to itself and never ends"}},
                schema_grammar);
}

// Twelve unions of four, all at once: 4^12 combinations.
TEST(SchemaErrorTest, UnionsThatExplodeAreRefused) {
  nlohmann::ordered_json schema = {{"allOf", nlohmann::ordered_json::array()}};
  for (int i = 0; i < 12; ++i) {
    nlohmann::ordered_json any = {{"anyOf", nlohmann::ordered_json::array()}};
    for (int k = 0; k < 4; ++k) any["anyOf"].push_back({{"minimum", i * 4 + k}});
    schema["allOf"].push_back(any);
  }
  expect_errors({{schema.dump(), "the schema is too large: it takes more than"}}, schema_grammar);
}

// Texts on which an automaton makes a new state at every byte.
TEST(SchemaErrorTest, ValuesThatTakeLongToTryAreRefused) {
  nlohmann::ordered_json schema = {{"pattern", "^(a|b)*a(a|b){30}$"}};
  std::uint32_t random = 1;
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (int k = 0; k < 2000; ++k) {
      random = random * 1664525 + 1013904223;
      text += (random >> 24) % 2 == 0 ? 'a' : 'b';
    }
    schema["enum"].push_back(text);
  }
  expect_errors({{schema.dump(), "#: the schema is too large: it takes more than"}},
                schema_grammar);
}

// Alternatives of alternatives, all of which are looked at for oneOf: 500 a level.
TEST(SchemaErrorTest, ManyAlternativesTakeMemoryOnceALevel) {
  nlohmann::ordered_json schema = {{"type", "string"}};
  for (int level = 0; level < 50; ++level) {
    nlohmann::ordered_json any = {{"anyOf", nlohmann::ordered_json::array()}};
    for (int i = 0; i < 499; ++i) any["anyOf"].push_back(true);
    any["anyOf"].push_back(std::move(schema));
    schema = std::move(any);
  }
  schema = {{"oneOf", {{{"type", "integer"}}, std::move(schema)}}};
  HeldBytes held;
  const auto grammar = grammar_from_schema(schema);
  EXPECT_FALSE(grammar.ok());
  EXPECT_LT(held.most(), 16U << 20);
}

// A pattern that many schemas refer to is read once: its class alone takes milliseconds.
TEST(SchemaErrorTest, ASharedPatternIsReadOnce) {
  nlohmann::ordered_json schema = {
      {"type", "object"},
      {"$defs",
       {{"p", {{"type", "string"}, {"pattern", "^[" + std::string(60'000, 'a') + "]$"}}}}}};
  for (int i = 0; i < 1000; ++i) {
    schema["properties"]["a" + std::to_string(i)] = {
        {"allOf", {{{"$ref", "#/$defs/p"}}, {{"minLength", 1}}}}};
  }
  const std::uint64_t before = bytes_allocated_so_far();
  ASSERT_TRUE(grammar_from_schema(schema).ok());
  EXPECT_LT(bytes_allocated_so_far() - before, 64U << 20);
}

TEST(SchemaErrorTest, ValuesBesideAnAmbiguousPatternDoNotVanish) {
  expect_errors(
      {{R"({"anyOf":[{"enum":["ab","abab"],"pattern":"^(a?b?){1,3000}$"},{"const":"q"}]})",
        "too ambiguous"}},
      schema_grammar);
}

TEST(SchemaErrorTest, NumbersThatTheParserRoundsAreNoValues) {
  expect_errors({{R"({"const":12345678901234567890123})", "/const: integers beyond 64 bits"},
                 {R"({"enum":[1,[{"a":-12345678901234567890123}]]})", "/enum: integers beyond"},
                 {R"({"type":"integer","minimum":1e19})", "integers are those from"}},
                schema_grammar);
}

// A schema's place is not written down for each of the schemas within it.
TEST(SchemaErrorTest, LongNamesOfDefinitionsTakeTheirLengthOnce) {
  const std::string name(200'000, 'x');
  nlohmann::ordered_json nested = {{"type", "integer"}};
  for (int i = 0; i < 300; ++i) {
    nested = {{"type", "object"}, {"properties", {{"a", nested}, {"b", {{"type", "null"}}}}}};
  }
  const nlohmann::ordered_json schema = {{"$ref", "#/$defs/" + name}, {"$defs", {{name, nested}}}};
  const auto grammar = grammar_from_schema(schema);
  ASSERT_TRUE(grammar.ok()) << grammar.error().message.substr(0, 200);
  EXPECT_TRUE(matches_text(*grammar.value(), R"({"a":{"b":null}})"));
}

TEST(SchemaErrorTest, AGrammarThatIsTooLargeNamesTheSchema) {
  expect_errors(
      {{R"({"type":"object","properties":{"a":{"type":"integer"},
                      "b":{"items":{"type":"string","pattern":"^(a?b?){200000}$"}}}})",
        "/properties/b/items: the grammar needs more than"},
       {R"({"type":"string","pattern":"^(a?b?){200000}$"})", "#: the grammar needs more than"}},
      schema_grammar);
}

// Names are not copied for each alternative that refers to them.
TEST(SchemaErrorTest, AlternativesThatReferToLongNamesTakeLittleMemory) {
  nlohmann::ordered_json large = {{"type", "object"}};
  for (int i = 0; i < 500; ++i) {
    large["properties"][std::string(1000, 'x') + std::to_string(i)] = true;
  }
  nlohmann::ordered_json schema = {{"oneOf", nlohmann::ordered_json::array()}};
  for (int i = 0; i < 100; ++i) {
    schema["oneOf"].push_back({{"$ref", "#/$defs/large"},
                               {"properties", {{"kind", {{"const", i}}}}},
                               {"required", {"kind"}}});
  }
  schema["$defs"]["large"] = std::move(large);
  const HeldBytes held;
  const auto grammar = grammar_from_schema(schema);
  EXPECT_LT(held.most(), std::uint64_t{64} << 20);
}

TEST(SchemaErrorTest, LargeSchemasAreTakenInTimeThatGrowsWithThem) {
  nlohmann::ordered_json schema = {{"type", "object"}};
  for (int i = 0; i < 1500; ++i) {
    schema["properties"]["member_" + std::to_string(i)] = {{"type", "integer"}};
  }
  const auto grammar = grammar_from_schema(schema);
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  EXPECT_TRUE(matches_text(*grammar.value(), R"({"member_3":1,"member_1499":2})"));
}

}  // namespace
}  // namespace pagoda::structured
