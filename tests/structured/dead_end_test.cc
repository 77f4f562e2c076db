// No grammar begins what it cannot end: after every text that it takes, something may come next.
#include <random>

#include "structured/grammar_cases.h"

namespace pagoda::structured {
namespace {

using Json = nlohmann::ordered_json;

std::shared_ptr<const MaskVocabulary> byte_vocabulary() {
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  const std::vector<TokenId> ends = {TokenId(256)};
  return MaskVocabulary::build(std::move(bytes), ends, 257);
}

// Draws texts. A byte is drawn of those that may come, or, one time of two, of those that may come
// and close something, so that texts end.
void expect_no_dead_end(const std::shared_ptr<const Grammar>& grammar, const std::string& source,
                        unsigned texts) {
  static const auto kVocabulary = byte_vocabulary();
  std::vector<MaskWord> mask(kVocabulary->words());
  for (unsigned seed = 0; seed < texts; ++seed) {
    std::mt19937 random(seed);
    Matcher matcher(grammar, kVocabulary);
    std::string text;
    while (text.size() < 60) {
      const Status filled = matcher.fill_mask(mask);
      ASSERT_TRUE(filled.ok()) << source << "\nbehind " << text << ": " << filled.error().message;
      std::vector<std::uint32_t> all;
      std::vector<std::uint32_t> closing;
      for (std::uint32_t id = 0; id < 257; ++id) {
        if (!has_mask_bit(mask, id)) continue;
        all.push_back(id);
        const bool closes = id == 256 || id == '"' || id == ']' || id == '}' || id == ',';
        if (closes) closing.push_back(id);
      }
      const bool is_closing = !closing.empty() && random() % 2 == 0;
      const std::vector<std::uint32_t>& from = is_closing ? closing : all;
      const std::uint32_t id = from[random() % from.size()];
      if (id == 256) break;
      ASSERT_TRUE(matcher.accept(TokenId(id)).ok()) << source << "\nbehind " << text;
      text += static_cast<char>(id);
    }
  }
}

// Patterns that have no text, or none of the lengths beside them, in places where something else
// could come.
TEST(DeadEndTest, AnAlternativeThatHasNoTextIsNotBegun) {
  for (const char* const string : {
           R"({"type":"string","pattern":"[^\\s\\S]"})",
           R"({"type":"string","pattern":"[^\\s\\S]","minLength":2})",
           R"({"type":"string","pattern":"^[^\\s\\S]$","minLength":1,"maxLength":9})",
           R"({"type":"string","pattern":"^[^\\s\\S]*$","minLength":1})",
           R"({"type":"string","pattern":"^[^\\s\\S]*$","minLength":1,"maxLength":3})",
           R"({"type":"string","pattern":"^a?[^\\s\\S]*$","minLength":2})",
           R"({"type":"string","pattern":"^a?[^\\s\\S]*b?$","minLength":3,"maxLength":9})",
           R"({"type":"string","pattern":"^(a|[^\\s\\S]*){2}$","minLength":3})",
           R"({"type":"string","pattern":"^(a?b?|[^\\s\\S]+){1,2}$","minLength":5})",
           R"({"type":"string","pattern":"^(a|[^\\s\\S]b+)c?$","minLength":3})",
           R"({"type":"string","pattern":"^(ab)+$","minLength":3,"maxLength":3})",
           R"({"enum":["a","b"],"pattern":"^c"})",
           R"({"type":"integer","multipleOf":7,"minimum":8,"maximum":13})",
           R"({"type":"number","minimum":2,"exclusiveMaximum":2})",
       }) {
    const auto alone = schema_grammar(string);
    EXPECT_FALSE(alone.ok()) << string;
    for (const std::string& frame :
         {std::string(R"({"anyOf":[VALUE,{"type":"boolean"}]})"),
          std::string(R"({"anyOf":[{"type":"array","items":VALUE,"minItems":1},{"type":"null"}]})"),
          std::string(R"({"anyOf":[{"type":"object","properties":{"a":VALUE},"required":["a"]},
                         {"type":"object","properties":{"b":{"const":1}}}]})"),
          std::string(R"({"type":"object","properties":{"a":VALUE,"b":{"type":"null"}}})"),
          std::string(R"({"type":"array","items":VALUE})"),
          std::string(R"({"type":"object","additionalProperties":VALUE})")}) {
      std::string schema = frame;
      schema.replace(schema.find("VALUE"), 5, string);
      const auto grammar = schema_grammar(schema);
      ASSERT_TRUE(grammar.ok()) << schema << ": " << grammar.error().message;
      ASSERT_NO_FATAL_FAILURE(expect_no_dead_end(grammar.value(), schema, 12));
    }
  }
}

class SchemaDraw {
 public:
  explicit SchemaDraw(unsigned seed) : random_(seed) {}

  Json value(int depth) {
    const unsigned kind = number(depth > 0 ? 9 : 5);
    if (kind < 3) return string();
    if (kind < 5) return numeric();
    if (kind < 7) return {{"anyOf", {value(depth - 1), value(depth - 1)}}};
    if (kind == 7) {
      Json array = {{"type", "array"}, {"items", value(depth - 1)}};
      if (number(2) == 0) array["minItems"] = number(3);
      if (number(2) == 0) array["maxItems"] = 1 + number(4);
      if (number(3) == 0) array["prefixItems"] = {value(depth - 1)};
      return array;
    }
    Json object = {{"type", "object"}, {"properties", {{"a", value(depth - 1)}, {"b", string()}}}};
    if (number(2) == 0) object["required"] = {number(2) == 0 ? "a" : "b"};
    if (number(3) == 0) object["additionalProperties"] = value(depth - 1);
    return object;
  }

 private:
  unsigned number(unsigned below) { return static_cast<unsigned>(random_() % below); }

  Json string() {
    static const std::vector<std::string> kPatterns = {"[^\\s\\S]",           "^a*[^\\s\\S]*$",
                                                       "^(ab|[^\\s\\S])*$",   "^[ab]{2}(-[ab]+)*$",
                                                       "^(aa)*$|^b$",         "a.b",
                                                       "^(a?[^\\s\\S]*){2}$", "^[^\\s\\S]|x$",
                                                       "^\\w{2,4}$",          "^(abc){2,}$"};
    Json made = {{"type", "string"}};
    const unsigned kind = number(4);
    if (kind == 0) {
      made = {{"enum", {"ab", "abab", "b", "", "a-b"}}};
    }
    if (kind < 3) made["pattern"] = kPatterns[number(static_cast<unsigned>(kPatterns.size()))];
    if (number(2) == 0) made["minLength"] = number(6);
    if (number(2) == 0) made["maxLength"] = number(7);
    return made;
  }

  Json numeric() {
    Json made = {{"type", number(2) == 0 ? "integer" : "number"}};
    const int least = static_cast<int>(number(30)) - 15;
    if (number(2) == 0) made["minimum"] = least;
    if (number(2) == 0) made[number(2) == 0 ? "maximum" : "exclusiveMaximum"] = least + 4;
    if (number(2) == 0) made["multipleOf"] = std::vector<double>{7, 3, 0.5, 0.01, 12}[number(5)];
    return made;
  }

  std::mt19937 random_;
};

TEST(DeadEndTest, DrawnSchemasHaveNone) {
  unsigned compiled = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    const Json schema = SchemaDraw(seed).value(3);
    const auto grammar = grammar_from_schema(schema);
    if (!grammar.ok()) continue;  // nothing matches, or too much was asked
    ++compiled;
    ASSERT_NO_FATAL_FAILURE(expect_no_dead_end(grammar.value(), schema.dump(), 4)) << seed;
  }
  EXPECT_GT(compiled, 1000U);
}

}  // namespace
}  // namespace pagoda::structured
