// Matcher follows one answer through a grammar, token by token, and says which tokens may come
// next.
//
// The mask is a function of the grammar, the vocabulary and the tokens so far: neither the batch
// nor the cache is known here. Copies are independent: a fork of a sequence copies its matcher.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "structured/automaton.h"
#include "structured/character_runs.h"
#include "structured/grammar.h"
#include "structured/mask_vocabulary.h"

namespace pagoda::structured {

class Matcher {
 public:
  Matcher(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const MaskVocabulary> vocabulary);

  // Sets the bits of the tokens that may come next, in `mask` of vocabulary().words() words, and
  // clears all others. An error where the grammar needs more work for one token than allowed, or
  // where no token may come.
  Status fill_mask(std::span<MaskWord> mask);
  // The work of the last mask and of the token taken behind it, in configurations of the automaton:
  // 0 where all of it was known.
  std::uint64_t token_work() const { return token_work_; }

  // Takes the next token. An error, and no change, for a token that may not come.
  Status accept(TokenId token);

  // Gives back the memory of all states but the present one, whose mask stays: copies are small.
  void trim();

  // Whether the text so far may be all of it.
  bool may_end() const { return has_ended_ || automaton_.accepts(state_); }
  // Whether an end token was taken.
  bool has_ended() const { return has_ended_; }
  // Whether nothing but an end token may come.
  bool must_end() const;

  const MaskVocabulary& vocabulary() const { return *vocabulary_; }
  const Grammar& grammar() const { return *grammar_; }
  // The most memory that a matcher takes, without its grammar and vocabulary.
  std::uint64_t bytes_max() const;
  // The memory of the states that it has now.
  std::uint64_t bytes() const { return automaton_.bytes(); }

 private:
  struct CachedMask {
    StateId state = kDeadState;  // canonical; kDeadState: empty
    std::vector<MaskWord> mask;
  };

  static constexpr std::size_t kMasksCached = 8;

  void forget_if_large();

  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<const MaskVocabulary> vocabulary_;
  Automaton automaton_;
  StateId state_;
  bool has_ended_ = false;
  std::vector<CachedMask> cached_;
  std::size_t next_cached_ = 0;
  CharacterRuns runs_;
  std::uint64_t token_work_ = 0;
};

// TextMatcher says whether whole texts match, byte by byte.
class TextMatcher {
 public:
  explicit TextMatcher(const Grammar& grammar) : automaton_(grammar.program(), 1) {}

  // Nothing: the grammar is too ambiguous to tell.
  std::optional<bool> matches(std::string_view text);
  // The work for all texts so far, in configurations of the automaton.
  std::uint64_t work() const { return work_; }

 private:
  Automaton automaton_;
  std::uint64_t work_ = 0;
};

// For tests and checks of one text.
inline bool matches_text(const Grammar& grammar, std::string_view text) {
  return TextMatcher(grammar).matches(text).value_or(false);
}

}  // namespace pagoda::structured
