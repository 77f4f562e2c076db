// PastOutputs keep the newest outputs of one cache scope, so that drafts of the scope's later
// requests may come from them; ScopeOutputs hold those of the scopes that were used last.
//
// Nobody finds the outputs of another scope: neither drafts nor the work of looking for them depend
// on what others generate. Thread rule: the engine's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/token_id.h"
#include "speculate/token_index.h"

namespace pagoda::speculate {

class PastOutputs {
 public:
  // One half of the outputs is kept until the other half is full: at least `outputs_max / 2` of the
  // newest, and `tokens_max / 2` of their tokens.
  PastOutputs(std::uint32_t gram, std::uint32_t outputs_max, std::size_t tokens_max);

  void add(std::span<const TokenId> output);
  void clear();

  struct Half {
    std::vector<TokenId> text;  // outputs, each behind a token of no vocabulary
    TokenIndex index;
    std::uint32_t outputs = 0;
  };
  // Newer outputs come first.
  const Half& half(std::size_t age) const { return halves_[(newest_ + age) % 2]; }

 private:
  std::uint32_t outputs_max_;
  std::size_t tokens_max_;
  std::vector<Half> halves_;  // [2]
  std::size_t newest_ = 0;
};

class ScopeOutputs {
 public:
  // A scope is a salt of an owner, or what is public: an empty salt.
  struct Scope {
    std::uint32_t owner = 0;
    std::string salt;
    auto operator<=>(const Scope&) const = default;
  };

  ScopeOutputs(std::uint32_t gram, std::uint32_t outputs_max)
      : gram_(gram), outputs_max_(outputs_max) {}

  // Opens the outputs of a scope. Beyond kScopesMax scopes the one that was opened longest ago is
  // forgotten.
  std::shared_ptr<PastOutputs> open(const Scope& scope);
  // Forgets the outputs of an owner's scopes, also for requests that run.
  void forget(std::uint32_t owner);
  void forget_all();

 private:
  static constexpr std::size_t kScopesMax = 64;
  static constexpr std::size_t kTokensMax = 32'768;

  struct Entry {
    std::shared_ptr<PastOutputs> outputs;
    std::uint64_t opened = 0;
  };

  std::uint32_t gram_;
  std::uint32_t outputs_max_;
  std::map<Scope, Entry> scopes_;
  std::uint64_t openings_ = 0;
};

}  // namespace pagoda::speculate
