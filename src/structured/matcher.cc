#include "structured/matcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "structured/mask_walk.h"

namespace pagoda::structured {
namespace {

std::uint32_t token_bytes_max(const MaskVocabulary& vocabulary) {
  return static_cast<std::uint32_t>(vocabulary.trie().bytes_max());
}

Error too_ambiguous() {
  return {ErrorCode::kOutOfRange,
          "the grammar is too ambiguous: it needs more work for the next token than is allowed"};
}

}  // namespace

Matcher::Matcher(std::shared_ptr<const Grammar> grammar,
                 std::shared_ptr<const MaskVocabulary> vocabulary)
    : grammar_(std::move(grammar)),
      vocabulary_(std::move(vocabulary)),
      automaton_(grammar_->program(), token_bytes_max(*vocabulary_)),
      state_(automaton_.start()),
      cached_(kMasksCached) {}

std::uint64_t Matcher::bytes_max() const {
  // The closure that is being built, which kConfigurationsMax bounds.
  constexpr std::uint64_t kScratchBytes = std::uint64_t{1} << 20;
  return kAutomatonBytesMax + kScratchBytes +
         (kMasksCached + CharacterRuns::kMasksKept + 1) * vocabulary_->words() * sizeof(MaskWord);
}

bool Matcher::must_end() const {
  return has_ended_ || (automaton_.accepts(state_) && automaton_.configurations(state_).empty());
}

Status Matcher::fill_mask(std::span<MaskWord> mask) {
  std::fill(mask.begin(), mask.end(), 0);
  token_work_ = 0;
  if (!has_ended_) {
    forget_if_large();
    automaton_.begin_token();
    const StateId state = automaton_.canonical(state_);
    const auto known = std::find_if(cached_.begin(), cached_.end(), [state](const auto& cached) {
      return cached.state == state && !cached.mask.empty();
    });
    if (known != cached_.end() && state != kDeadState) {
      std::copy(known->mask.begin(), known->mask.end(), mask.begin());
    } else {
      MaskWalk(automaton_, *vocabulary_, runs_, mask).add(state);
      cached_[next_cached_] = {state, {mask.begin(), mask.end()}};
      next_cached_ = (next_cached_ + 1) % cached_.size();
    }
    token_work_ = automaton_.work();
    if (automaton_.is_exhausted()) return too_ambiguous();
  }
  if (may_end()) {
    for (const TokenId token : vocabulary_->end_tokens()) set_mask_bit(mask, token.value());
  }
  if (std::all_of(mask.begin(), mask.end(), [](MaskWord word) { return word == 0; })) {
    return Error{ErrorCode::kInvalidArgument, "no token of the vocabulary continues the text"};
  }
  return ok_status();
}

void Matcher::forget_if_large() {
  if (automaton_.bytes() < kAutomatonBytesKept) return;
  state_ = automaton_.forget(state_);
  runs_.forget_states();
  for (CachedMask& cached : cached_) cached.state = kDeadState;
}

void Matcher::trim() {
  if (has_ended_) return;
  const StateId before = automaton_.canonical(state_);
  std::vector<MaskWord> mask;
  for (CachedMask& cached : cached_) {
    if (cached.state == before && before != kDeadState) mask = std::move(cached.mask);
    cached = {};
  }
  state_ = automaton_.forget(state_);
  runs_.clear();
  next_cached_ = 0;
  if (mask.empty()) return;
  cached_[next_cached_++] = {automaton_.canonical(state_), std::move(mask)};
}

Status Matcher::accept(TokenId token) {
  const auto refused = [token] {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("token {} does not continue the text", token.value())};
  };
  if (vocabulary_->is_end(token)) {
    if (!may_end()) return refused();
    has_ended_ = true;
    return ok_status();
  }
  const std::string_view bytes = vocabulary_->bytes_of(token);
  if (bytes.empty() || has_ended_) return refused();
  automaton_.begin_token();
  StateId next = state_;
  for (const char byte : bytes) next = automaton_.step(next, static_cast<std::uint8_t>(byte));
  token_work_ += automaton_.work();
  if (automaton_.is_exhausted()) return too_ambiguous();
  if (next == kDeadState) return refused();
  state_ = next;
  return ok_status();
}

std::optional<bool> TextMatcher::matches(std::string_view text) {
  automaton_.begin_token();
  StateId state = automaton_.start();
  for (const char byte : text) {
    work_ += automaton_.work();
    automaton_.begin_token();
    state = automaton_.step(state, static_cast<std::uint8_t>(byte));
    if (automaton_.bytes() >= kAutomatonBytesKept) state = automaton_.forget(state);
  }
  work_ += automaton_.work() + text.size();
  if (automaton_.is_exhausted()) return std::nullopt;
  return automaton_.accepts(state);
}

}  // namespace pagoda::structured
