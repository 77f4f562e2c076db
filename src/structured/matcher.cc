#include "structured/matcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "structured/string_automaton.h"

namespace pagoda::structured {
namespace {

std::uint32_t token_bytes_max(const MaskVocabulary& vocabulary) {
  return static_cast<std::uint32_t>(vocabulary.trie().bytes_max());
}

bool is_string(const Instruction& at) {
  return at.op == Op::kString || at.op == Op::kCountedString;
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
      cached_(kMasksCached),
      path_(vocabulary_->trie().bytes_max() + 1) {}

std::uint64_t Matcher::bytes_max() const {
  // The closure that is being built, which kConfigurationsMax bounds.
  constexpr std::uint64_t kScratchBytes = std::uint64_t{1} << 20;
  return kAutomatonBytesMax + kScratchBytes +
         (kMasksCached + 1) * vocabulary_->words() * sizeof(MaskWord);
}

bool Matcher::must_end() const {
  return has_ended_ || (automaton_.accepts(state_) && automaton_.configurations(state_).empty());
}

Status Matcher::fill_mask(std::span<MaskWord> mask) {
  std::fill(mask.begin(), mask.end(), 0);
  mask_work_ = 0;
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
      compute_mask(state, mask);
      cached_[next_cached_] = {state, {mask.begin(), mask.end()}};
      next_cached_ = (next_cached_ + 1) % cached_.size();
    }
    mask_work_ = automaton_.work();
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

void Matcher::compute_mask(StateId state, std::span<MaskWord> mask) {
  std::vector<Configuration> strings;
  std::vector<Configuration> others;
  const bool may_commit = automaton_.may_commit(state);
  for (const Configuration& one : automaton_.configurations(state)) {
    const Instruction& at = automaton_.instruction(one);
    const bool sliced = !may_commit && is_string(at) && vocabulary_->slice(at.low) != nullptr;
    (sliced ? strings : others).push_back(one);
  }
  for (const Configuration& one : strings) {
    add_string(one, *vocabulary_->slice(automaton_.instruction(one).low), mask);
  }
  if (!others.empty()) {
    walk(vocabulary_->trie(), automaton_.state_of(others),
         [mask](std::uint32_t token) { set_mask_bit(mask, token); });
  }
  for (const auto& [token, other] : vocabulary_->trie().duplicates()) {
    if (has_mask_bit(mask, token)) set_mask_bit(mask, other);
  }
}

void Matcher::add_string(const Configuration& configuration, const StringSlice& slice,
                         std::span<MaskWord> mask) {
  const bool counted = automaton_.instruction(configuration).op == Op::kCountedString;
  const CountBounds counter = counted ? automaton_.counter(configuration) : CountBounds{};
  slice.add_inner(counter.room, mask);
  const StateId behind = automaton_.after_string(configuration);
  if (behind == kDeadState) return;
  slice.add_exits(StringSlice::kNoSuffix, counter, mask);
  walk(slice.suffixes(), behind,
       [&](std::uint32_t suffix) { slice.add_exits(suffix, counter, mask); });
}

template <class OnNumber>
void Matcher::walk(const VocabularyTrie& trie, StateId from, const OnNumber& on_number) {
  const std::span<const VocabularyTrie::Node> nodes = trie.nodes();
  path_[0] = from;
  for (std::size_t i = 0; i < nodes.size();) {
    const VocabularyTrie::Node& node = nodes[i];
    const StateId next = automaton_.step(path_[node.depth - 1u], node.byte);
    if (next == kDeadState) {
      i = node.skip;
      continue;
    }
    path_[node.depth] = next;
    if (node.number != VocabularyTrie::kNoNumber) on_number(node.number);
    ++i;
  }
}

void Matcher::forget_if_large() {
  if (automaton_.bytes() < kAutomatonBytesKept) return;
  state_ = automaton_.forget(state_);
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
