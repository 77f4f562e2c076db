#include "text/prompt_tokens.h"

#include <cstdint>
#include <utility>

namespace pagoda::text {

std::array<std::size_t, kSourceCount> PromptTokens::count_by_source() const {
  std::array<std::size_t, kSourceCount> counts{};
  for (const Origin& origin : origins) ++counts[static_cast<std::size_t>(origin.source)];
  return counts;
}

PromptTokens tokenise_prompt(const OriginText& prompt, const Tokenizer& tokenizer) {
  return std::move(tokenise_prompt_within(prompt, tokenizer, SIZE_MAX)).value();
}

std::optional<PromptTokens> tokenise_prompt_within(const OriginText& prompt,
                                                   const Tokenizer& tokenizer,
                                                   std::size_t tokens_max) {
  std::vector<TextRange> special;
  std::size_t begin = 0;
  for (const OriginText::Run& run : prompt.runs()) {
    if (run.origin.source == Source::kTemplate) special.push_back({begin, run.end});
    begin = run.end;
  }
  std::optional<TokensWithOffsets> within =
      tokenizer.encode_with_offsets_within(prompt.bytes(), special, tokens_max);
  if (!within) return std::nullopt;
  TokensWithOffsets& encoded = *within;
  PromptTokens tokens;
  tokens.origins.reserve(encoded.ids.size());
  auto run = prompt.runs().begin();
  for (const std::size_t place : encoded.begins) {
    while (run + 1 != prompt.runs().end() && run->end <= place) ++run;
    tokens.origins.push_back(run->origin);
  }
  tokens.ids = std::move(encoded.ids);
  tokens.begins = std::move(encoded.begins);
  return tokens;
}

}  // namespace pagoda::text
