// Tables of texts that a grammar takes and refuses.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "structured/grammar.h"
#include "structured/matcher.h"

namespace pagoda::structured {

struct GrammarCase {
  std::string source;
  std::vector<std::string> taken;
  std::vector<std::string> refused;
};

using GrammarMaker = Result<std::shared_ptr<const Grammar>> (*)(const std::string&);

inline Result<std::shared_ptr<const Grammar>> schema_grammar(const std::string& text) {
  return grammar_from_schema(nlohmann::ordered_json::parse(text));
}

inline void expect_cases(const std::vector<GrammarCase>& cases, GrammarMaker make) {
  for (const GrammarCase& one : cases) {
    const auto grammar = make(one.source);
    ASSERT_TRUE(grammar.ok()) << one.source << ": " << grammar.error().message;
    for (const std::string& text : one.taken) {
      EXPECT_TRUE(matches_text(*grammar.value(), text)) << one.source << " takes " << text;
    }
    for (const std::string& text : one.refused) {
      EXPECT_FALSE(matches_text(*grammar.value(), text)) << one.source << " refuses " << text;
    }
  }
}

struct ErrorCase {
  std::string source;
  std::string message;  // a part of it
};

inline void expect_errors(const std::vector<ErrorCase>& cases, GrammarMaker make) {
  for (const ErrorCase& one : cases) {
    const auto grammar = make(one.source);
    ASSERT_FALSE(grammar.ok()) << one.source;
    EXPECT_NE(grammar.error().message.find(one.message), std::string::npos)
        << one.source << "\n  says " << grammar.error().message << "\n  not  " << one.message;
  }
}

}  // namespace pagoda::structured
