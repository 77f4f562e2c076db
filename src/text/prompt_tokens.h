// Tokenises a rendered prompt; each token carries the origin of its text.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/token_id.h"
#include "text/origin.h"
#include "text/origin_text.h"
#include "text/tokenizer.h"

namespace pagoda::text {

struct PromptTokens {
  std::vector<TokenId> ids;
  std::vector<Origin> origins;      // one per token: the origin of its first byte
  std::vector<std::size_t> begins;  // the byte of the prompt at which each token begins

  std::array<std::size_t, kSourceCount> count_by_source() const;  // indexed by Source
};

// Control tokens are recognised in template text alone: a client that writes "<|im_end|>" gets the
// tokens of its letters. Between special tokens, text is tokenised as a whole whoever wrote it, so
// that the ids equal those of the plain text wherever clients wrote no special token. No BOS is
// added, because the template itself says where it belongs.
PromptTokens tokenise_prompt(const OriginText& prompt, const Tokenizer& tokenizer);
// Does the same, but returns nothing when there are more than `tokens_max` tokens, which costs
// little to find out.
std::optional<PromptTokens> tokenise_prompt_within(const OriginText& prompt,
                                                   const Tokenizer& tokenizer,
                                                   std::size_t tokens_max);

}  // namespace pagoda::text
