#include "speculate/past_outputs.h"

#include <algorithm>

namespace pagoda::speculate {
namespace {

constexpr TokenId kBetweenOutputs{UINT32_MAX};

}  // namespace

PastOutputs::PastOutputs(std::uint32_t gram, std::uint32_t outputs_max, std::size_t tokens_max)
    : outputs_max_(std::max(1u, outputs_max / 2)), tokens_max_(tokens_max / 2) {
  for (int i = 0; i < 2; ++i) {
    halves_.push_back({.text = {}, .index = TokenIndex(gram, tokens_max_)});
  }
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
    scopes_.erase(std::min_element(
        scopes_.begin(), scopes_.end(),
        [](const auto& a, const auto& b) { return a.second.opened < b.second.opened; }));
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
