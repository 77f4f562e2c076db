// A rendered prompt to tokens, each with the origin of its text.
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
  std::vector<Origin> origins;      // one per token: of its first byte
  std::vector<std::size_t> begins;  // of each token, in bytes of the prompt

  std::array<std::size_t, kSourceCount> count_by_source() const;  // by Source
};

// Control tokens are recognised in template text alone: a client who writes "<|im_end|>" gets the
// tokens of its letters. Between special tokens, text is tokenised whole whoever wrote it, so that
// the ids are those of the plain text wherever clients wrote no special token. The template itself
// says where BOS belongs; none is added.
PromptTokens tokenise_prompt(const OriginText& prompt, const Tokenizer& tokenizer);
// The same; nothing when there are more than `tokens_max` tokens, which costs little to find out.
std::optional<PromptTokens> tokenise_prompt_within(const OriginText& prompt,
                                                   const Tokenizer& tokenizer,
                                                   std::size_t tokens_max);

}  // namespace pagoda::text
