#include "bench/structured_cases.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace pagoda::bench {
namespace {

using GrammarResult = Result<std::shared_ptr<const structured::Grammar>>;

GrammarResult from_schema(std::string_view text) {
  return structured::grammar_from_schema(nlohmann::ordered_json::parse(text));
}

GrammarResult small_schema() {
  return from_schema(R"({"type":"object","properties":{
    "name":{"type":"string","maxLength":100},"age":{"type":"integer","minimum":0,"maximum":150},
    "email":{"type":"string"},"role":{"enum":["admin","editor","reader"]},
    "tags":{"type":"array","items":{"type":"string"},"maxItems":8}},
    "required":["name","age","email","role","tags"],"additionalProperties":false})");
}

GrammarResult bounded_schema() {
  return from_schema(R"({"type":"object","properties":{
    "title":{"type":"string","minLength":1,"maxLength":200},
    "body":{"type":"string","minLength":20,"maxLength":5000},
    "scores":{"type":"array","items":{"type":"integer","minimum":-10,"maximum":10},
              "minItems":1,"maxItems":1000}},"required":["title","body","scores"]})");
}

// Counts that the next token may bring to their end, so that nearly every mask is computed.
GrammarResult counted_schema() {
  return from_schema(R"({"type":"array","minItems":2,"maxItems":12,"items":{"type":"object",
    "properties":{"code":{"type":"string","minLength":2,"maxLength":12},
      "parts":{"type":"array","items":{"type":"string","pattern":"^[a-z ]{1,20}$"},"maxItems":6},
      "grid":{"type":"array","maxItems":4,"items":{"type":"array","maxItems":4,
              "items":{"type":"integer"}}}},"required":["code","parts","grid"]}})");
}

GrammarResult recursive_schema() {
  return from_schema(R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{
    "kind":{"enum":["leaf","branch"]},"text":{"type":"string"},
    "children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["kind","text"]}}})");
}

GrammarResult optional_schema() {
  nlohmann::ordered_json schema = {{"type", "object"}};
  for (int i = 0; i < 40; ++i) {
    schema["properties"]["option_" + std::to_string(i)] =
        i % 2 == 0 ? nlohmann::ordered_json{{"type", "string"}}
                   : nlohmann::ordered_json{{"type", {"integer", "null"}}};
  }
  return structured::grammar_from_schema(schema);
}

GrammarResult patterned_schema() {
  return from_schema(R"({"type":"object","properties":{
    "id":{"type":"string","format":"uuid"},"at":{"type":"string","format":"date-time"},
    "slug":{"type":"string","pattern":"^[a-z0-9-]{3,60}$"}},"required":["id","at","slug"]})");
}

// A pattern that repeats in several places, beside lengths: each length is a state.
GrammarResult measured_schema() {
  return from_schema(R"({"type":"array","items":{"type":"string","minLength":3,"maxLength":60,
    "pattern":"^[a-z]+(-[a-z]+)*$"}})");
}

GrammarResult any_json() { return structured::grammar_of_json_object(); }
GrammarResult regex() {
  return structured::grammar_from_regex(
      "(Answer: )?[A-Z][a-z ]{5,200}\\.( [A-Z][a-z ]{5,200}\\.)*");
}
GrammarResult choice() {
  std::vector<std::string> texts;
  for (int i = 0; i < 200; ++i) texts.push_back("label number " + std::to_string(i * 37));
  return structured::grammar_from_choice(std::move(texts));
}
GrammarResult gbnf() {
  return structured::grammar_from_gbnf(R"(root ::= object
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? ws "}"
array ::= "[" ws (value ("," ws value)*)? ws "]"
string ::= "\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
ws ::= [ \t\n]{0,8}
)");
}

constexpr const char* kRecord =
    R"({"name": "Marguerite de la Tour", "age": 42, "email": "marguerite@example.org", )"
    R"("role": "editor", "tags": ["night shift", "on call", "größere Städte", "\"quoted\""]})";
constexpr const char* kTree =
    R"({"kind":"branch","text":"the first one","children":[{"kind":"leaf","text":"some words"},)"
    R"({"kind":"branch","text":"and another","children":[{"kind":"leaf","text":"deep inside"}]}]})";

std::string counted_record() {
  std::string items;
  for (int i = 0; i < 12; ++i) {
    items += (items.empty() ? "" : ", ") +
             (R"({"code": "AB)" + std::to_string(i) +
              R"(-xyz", "parts": ["a small one", "another", "the last of them"], )"
              R"("grid": [[1, 20, 300], [4], [5, 6, 7, 80]]})");
  }
  return "[" + items + "]";
}

std::string long_record() {
  std::string words;
  for (int i = 0; i < 60; ++i) words += "it was a bright cold day in April, and the clocks ";
  std::string scores = "0";
  for (int i = 0; i < 60; ++i) scores += ", " + std::to_string(i % 21 - 10);
  return R"({"title": "A longer record", "body": ")" + words + R"(", "scores": [)" + scores + "]}";
}

}  // namespace

std::vector<StructuredCase> structured_cases() {
  return {
      {"small schema", small_schema, kRecord},
      {"bounded strings and lists", bounded_schema, long_record()},
      {"bounds that are near", counted_schema, counted_record()},
      {"recursive schema", recursive_schema, kTree},
      {"40 optional members", optional_schema,
       R"({"option_0": "first", "option_3": null, "option_20": "some text", "option_39": 17})"},
      {"formats and patterns", patterned_schema,
       R"({"id":"123e4567-e89b-12d3-a456-426614174000","at":"2024-02-29T12:30:00Z",)"
       R"("slug":"a-short-name-for-it"})"},
      {"a pattern beside lengths", measured_schema,
       R"(["a-short-name-for-it", "it-was-a-bright-cold-day-in-spring", "clocks-were-striking"])"},
      {"any JSON object", any_json, kRecord},
      {"regex", regex,
       "Answer: The clocks were striking thirteen. It was a bright cold day in spring. Nobody "
       "looked up from the street."},
      {"choice of 200", choice, "label number 3663"},
      {"GBNF of JSON", gbnf, kRecord},
  };
}

}  // namespace pagoda::bench
