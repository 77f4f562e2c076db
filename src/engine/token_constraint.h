// TokenConstraint restricts a sequence's tokens to what its grammar allows: a mask over the logits,
// computed once a token, from the sequence's own tokens alone.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "speculate/drafter.h"
#include "structured/matcher.h"

namespace pagoda::engine {

class TokenConstraint final : public speculate::ForcedTokens {
 public:
  // The grammar is that of the whole output: reasoning before it is a part of the grammar.
  explicit TokenConstraint(const structured::Matcher& matcher)
      : matcher_(matcher), mask_(matcher.vocabulary().words()) {}

  // Computes the mask for the next token, unless it is there. A runner may call it while the row's
  // logits are being computed; sampling calls it, too.
  Status prepare();
  // One bit a token; valid once prepare() succeeded.
  std::span<const structured::MaskWord> mask() const { return mask_; }
  std::uint64_t mask_work() const { return matcher_.mask_work(); }
  // Whether nothing but an end token may come: then min_tokens cannot be reached.
  bool must_end() const { return matcher_.must_end(); }
  // Whether an end token was accepted: nothing may follow.
  bool has_ended() const { return matcher_.has_ended(); }

  void accept(TokenId token);

  // The tokens that the grammar leaves no choice about. Computes the mask for the next token where
  // it is not there; where more than one token may come, that is all.
  std::size_t list_forced(std::span<TokenId> room) override;

  // Takes the tokens without a bit out of a row of logits.
  void drop_others(std::span<float> logits, float dropped) const;

 private:
  structured::Matcher matcher_;
  std::vector<structured::MaskWord> mask_;
  bool is_ready_ = false;
  std::optional<Error> error_;  // set: there is no next token
};

}  // namespace pagoda::engine
