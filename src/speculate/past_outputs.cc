#include "speculate/past_outputs.h"

#include <algorithm>

namespace pagoda::speculate {
namespace {

constexpr TokenId kBetweenOutputs{UINT32_MAX};

}  // namespace

PastOutputs::PastOutputs(std::uint32_t gram, std::uint32_t outputs_max, std::size_t tokens_max)
    : outputs_max_(std::max(1u, outputs_max / 2)), tokens_max_(tokens_max / 2) {
  // Requests that wait hold their scope's outputs: memory is taken with the first of them.
  for (int i = 0; i < 2; ++i) halves_.push_back({.text = {}, .index = TokenIndex(gram, 0)});
}

void PastOutputs::add(std::span<const TokenId> output) {
  output = output.last(std::min(output.size(), tokens_max_ - 1));
  Half* half = &halves_[newest_];
  if (half->outputs == outputs_max_ || half->text.size() + output.size() + 1 > tokens_max_) {
    newest_ = 1 - newest_;
    half = &halves_[newest_];
    half->text.clear();
    half->index.clear();
    half->outputs = 0;
  }
  const bool is_first = half->text.capacity() == 0;
  if (is_first) half->index = TokenIndex(half->index.gram(), tokens_max_);
  half->text.push_back(kBetweenOutputs);
  half->text.insert(half->text.end(), output.begin(), output.end());
  half->index.catch_up(half->text, half->text.size());
  ++half->outputs;
}

void PastOutputs::clear() {
  for (Half& half : halves_) {
    half.text.clear();
    half.index.clear();
    half.outputs = 0;
  }
}

std::shared_ptr<PastOutputs> ScopeOutputs::open(const Scope& scope) {
  const auto found = scopes_.find(scope);
  if (found != scopes_.end()) {
    found->second.opened = ++openings_;
    return found->second.outputs;
  }
  if (scopes_.size() == kScopesMax) {
    // The owner that has most loses one: whoever opens many forgets his own.
    std::map<std::uint32_t, std::size_t> scopes_of;
    for (const auto& [other, entry] : scopes_) ++scopes_of[other.owner];
    ++scopes_of[scope.owner];
    const auto goes_before = [&](const auto& a, const auto& b) {
      const std::size_t of_a = scopes_of[a.first.owner];
      const std::size_t of_b = scopes_of[b.first.owner];
      return of_a != of_b ? of_a > of_b : a.second.opened < b.second.opened;
    };
    scopes_.erase(std::min_element(scopes_.begin(), scopes_.end(), goes_before));
  }
  auto outputs = std::make_shared<PastOutputs>(gram_, outputs_max_, kTokensMax);
  scopes_.emplace(scope, Entry{outputs, ++openings_});
  return outputs;
}

void ScopeOutputs::forget(std::uint32_t owner) {
  std::erase_if(scopes_, [&](const auto& entry) {
    if (entry.first.salt.empty() || entry.first.owner != owner) return false;
    entry.second.outputs->clear();
    return true;
  });
}

void ScopeOutputs::forget_all() {
  for (const auto& [scope, entry] : scopes_) entry.outputs->clear();
  scopes_.clear();
}

}  // namespace pagoda::speculate
