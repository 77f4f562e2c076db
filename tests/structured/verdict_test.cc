// 10,000 pairs of schemas and documents, judged by other programs
// (tests/data/make_schema_verdicts.py). jsonschema decides: what a grammar takes is valid, and a
// valid document that was written in the schema's order is taken.
#include <fstream>

#include "structured/grammar_cases.h"
#include "test_data.h"

namespace pagoda::structured {
namespace {

using Json = nlohmann::ordered_json;

bool has(const std::string& verdicts, char letter) {
  return verdicts.find(letter) != std::string::npos;
}

TEST(VerdictTest, GrammarsTakeValidDocumentsAlone) {
  std::ifstream file(test_data() + "/structured/schema_verdicts.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(file, line)) << "the fixture is there";
  const auto pairs_promised = Json::parse(line)["pairs"].get<std::size_t>();
  std::size_t pairs = 0;
  std::size_t taken = 0;
  while (std::getline(file, line)) {
    const Json entry = Json::parse(line);
    const auto grammar = grammar_from_schema(entry["s"]);
    ASSERT_TRUE(grammar.ok()) << entry["s"].dump() << ": " << grammar.error().message;
    for (const Json& document : entry["d"]) {
      const auto text = document[0].get<std::string>();
      const auto verdicts = document[1].get<std::string>();
      const bool takes = matches_text(*grammar.value(), text);
      ++pairs;
      taken += takes ? 1 : 0;
      if (takes) {
        EXPECT_TRUE(has(verdicts, 'j')) << entry["s"].dump() << "\n  takes " << text;
      } else {
        EXPECT_FALSE(has(verdicts, 'j') && has(verdicts, 'w'))
            << entry["s"].dump() << "\n  refuses " << text;
      }
    }
  }
  EXPECT_EQ(pairs, pairs_promised);
  EXPECT_GT(taken, pairs / 4);
  EXPECT_LT(taken, 3 * pairs / 4);
}

}  // namespace
}  // namespace pagoda::structured
