// TokenConstraint restricts a sequence's tokens to what its grammar allows: a mask over the logits,
// computed once a token, from the sequence's own tokens alone.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/shared_list.h"
#include "base/token_id.h"
#include "structured/matcher.h"

namespace pagoda::engine {

class TokenConstraint {
 public:
  // The grammar begins behind the tokens `begins_after`, such as the end of a model's reasoning:
  // before them everything is allowed. Empty: it begins at once.
  explicit TokenConstraint(const structured::Matcher& matcher,
                           SharedList<TokenId> begins_after = {})
      : matcher_(matcher),
        mask_(matcher.vocabulary().words()),
        begins_after_(std::move(begins_after)) {}

  // Computes the mask for the next token, unless it is there. A runner may call it while the row's
  // logits are being computed; sampling calls it, too.
  Status prepare();
  // One bit a token; valid once prepare() succeeded.
  std::span<const structured::MaskWord> mask() const { return mask_; }
  // Whether nothing but an end token may come: then min_tokens cannot be reached.
  bool must_end() const { return has_begun() && matcher_.must_end(); }

  // Whether an end token was accepted: nothing may follow.
  bool has_ended() const { return has_begun() && matcher_.has_ended(); }

  void accept(TokenId token);

  // Takes the tokens without a bit out of a row of logits.
  void drop_others(std::span<float> logits, float dropped) const;

 private:
  bool has_begun() const { return tokens_seen_ == begins_after_.size(); }
  void look_for_begin(TokenId token);

  structured::Matcher matcher_;
  std::vector<structured::MaskWord> mask_;
  SharedList<TokenId> begins_after_;
  std::size_t tokens_seen_ = 0;  // of begins_after_, at the end of the answer so far
  bool is_ready_ = false;
  std::optional<Error> error_;  // set: there is no next token
};

}  // namespace pagoda::engine
