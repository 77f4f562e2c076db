// A grammar for requests to models whose vocabulary means nothing.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/config.h"
#include "structured/grammar.h"
#include "structured/matcher.h"

namespace pagoda::engine {

// Returns a grammar of lists of short texts, with reasoning between < and > before them; token i of
// the vocabulary is byte i % 128, and more of it the higher i is. Token 0 ends an answer.
inline std::shared_ptr<const structured::Matcher> list_constraint(const model::Config& config) {
  std::vector<std::string> bytes;
  for (std::uint32_t i = 0; i < config.vocabulary; ++i) {
    bytes.emplace_back(1 + i / 128 % 3, static_cast<char>(i % 128));
  }
  const std::vector<TokenId> ends = {TokenId(0)};
  structured::GrammarBuilder builder;
  const auto list = builder.schema(nlohmann::ordered_json::parse(
      R"({"type":"array","items":{"anyOf":[{"type":"string","maxLength":6},{"type":"integer"}]},
          "minItems":2,"maxItems":9})"));
  const auto reasoning =
      builder.sequence({builder.literal("<"), builder.text_until(">", builder.empty())});
  const auto grammar =
      builder.finish(builder.sequence({builder.optional(reasoning), list.value()}));
  return std::make_shared<const structured::Matcher>(
      grammar.value(), structured::MaskVocabulary::build(bytes, ends, config.vocabulary));
}

}  // namespace pagoda::engine
