// A Drafter proposes the tokens that may follow a sequence's tokens. A wrong proposal costs time
// and never changes an answer.
//
// Thread rule: the engine's thread. propose() allocates nothing, reads the cache and changes
// nothing in it: no recency, counter, curve or lease.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/token_id.h"
#include "kv/cache.h"
#include "speculate/acceptance.h"
#include "speculate/method.h"
#include "speculate/past_outputs.h"
#include "speculate/token_index.h"

namespace pagoda::speculate {

// PredictedText is the output that a client expects. The sequences of a request share it, and so do
// requests that come in one body: it is indexed once, by the engine's thread.
class PredictedText {
 public:
  explicit PredictedText(std::vector<TokenId> tokens) : tokens_(std::move(tokens)) {}

  const std::vector<TokenId>& tokens() const { return tokens_; }
  // Does nothing where it is there.
  void make_index(std::uint32_t gram);
  // Call this behind make_index().
  const TokenIndex& index() const { return *index_; }

 private:
  std::vector<TokenId> tokens_;
  std::optional<TokenIndex> index_;
};

// PredictionCursor says how far a sequence's output has followed the predicted text.
struct PredictionCursor {
  std::shared_ptr<const PredictedText> text;  // nullptr: the client predicts nothing
  std::uint64_t output_seen = 0;              // tokens of the output that were compared
  std::size_t next = 0;                       // the predicted token that would come next
  std::uint32_t followed = 0;                 // tokens in a row that were as predicted
  bool is_lost = false;                       // the last token of the output was not as predicted
};

// SequenceDrafting is what one sequence's drafts depend on, besides its tokens and the cache.
struct SequenceDrafting {
  Acceptance acceptance = {};
  std::uint64_t tokens_indexed = 0;        // that `own` has room for; 0: nobody looks there
  std::unique_ptr<TokenIndex> own = {};    // of prompt and output; nullptr before start()
  std::shared_ptr<PastOutputs> past = {};  // of the scope; nullptr: none are kept
  PredictionCursor prediction = {};
  std::uint32_t tokens_max = 0;  // of a draft of this sequence
  // The first token of a draft that was found before the token was known, and its place.
  struct Expected {
    std::uint64_t position = 0;
    TokenId token = TokenId(0);
  };
  std::optional<Expected> expected = {};
  // The draft that is being verified, or whose first token is expected.
  DraftMethod method = DraftMethod::kTree;
  std::uint32_t match = 0;
  // How the draft model chooses tokens for the sequence: by the sequence's own random numbers, or
  // the likeliest one. Both are the same for a sequence that is not sampled.
  bool is_sampled = false;
  bool model_draws = false;
};

// ForcedTokens know which tokens must come next: those about which a grammar leaves no choice.
class ForcedTokens {
 public:
  virtual ~ForcedTokens() = default;
  // Writes the tokens of which each is the only one that may follow those before it; returns how
  // many.
  virtual std::size_t list_forced(std::span<TokenId> room) = 0;
};

struct DraftQuery {
  std::span<const TokenId> tokens;  // prompt and output so far
  std::uint64_t prompt_tokens = 0;
  const kv::Cache* cache = nullptr;
  const kv::Sequence* sequence = nullptr;  // all tokens but the last are computed
  ForcedTokens* forced = nullptr;          // nullptr: the sequence has no grammar
  std::uint32_t model_tokens_max = 0;      // that a draft model may find; 0: it finds none
};

// The rules of the draft model have rates of their own, in classes of matches.
inline constexpr std::uint32_t kLikeliestRule = 0;
inline constexpr std::uint32_t kDrawnRule = 4;

struct Proposal {
  std::uint32_t tokens = 0;  // written; 0: nothing fits
  std::uint32_t match = 0;   // last tokens that were equal to those before the draft's source
};

class Drafter {
 public:
  virtual ~Drafter() = default;
  // Writes the tokens that may follow query.tokens to `room`, as many as the drafter knows.
  virtual Proposal propose(const DraftQuery& query, SequenceDrafting& drafting,
                           std::span<TokenId> room) = 0;
  // Says how drafts of a drafter are taken that is used instead of methods. False: whole, whatever
  // they cost.
  virtual bool weighs_costs() const { return false; }
};

}  // namespace pagoda::speculate
