// The namespaces of a cache (README: K4), each with the root of its tree and what its groups keep.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kv/ids.h"
#include "kv/kv_policy.h"
#include "kv/memory/cache_groups.h"

namespace pagoda::kv {

struct NamespaceName {
  std::string space;    // what rows depend on besides tokens: model, numerics, KV format
  std::string adapter;  // empty: none
  KvPolicy policy = {};

  auto operator<=>(const NamespaceName&) const = default;
};

struct Namespace {
  NodeId root;
  std::vector<memory::AttentionSpec> groups;  // under the namespace's policy
  std::uint64_t scopes = 0;                   // that refer to it
};

// Namespaces are the operator's and stay for the life of the cache; but clients name policies. From
// so many namespaces on, one with a policy that nobody uses and nothing is left of becomes the
// next: there are never more than these, requests and blocks.
inline constexpr std::size_t kPolicyNamespacesKept = 64;

// Pointers and references to a namespace stay valid: it is never moved or erased, only renamed.
class Namespaces {
 public:
  auto begin() const { return spaces_.begin(); }
  auto end() const { return spaces_.end(); }
  std::size_t size() const { return spaces_.size(); }

  Namespace* find(const NamespaceName& name) {
    const auto found = spaces_.find(name);
    return found == spaces_.end() ? nullptr : &found->second;
  }
  Namespace& add(const NamespaceName& name, NodeId root) {
    return spaces_[name] = {.root = root, .groups = {}};
  }

  // One with a policy that nobody uses, and of whose root is_unused() is true, gets the name. Each
  // time a few are looked at, where the last look ended. nullptr: there are few yet, or none of
  // those will do.
  template <class IsUnused>
  Namespace* rename_unused(const NamespaceName& name, const IsUnused& is_unused) {
    constexpr int kLooksMax = 64;
    if (spaces_.size() <= kPolicyNamespacesKept) return nullptr;
    auto at = spaces_.upper_bound(last_looked_at_);
    for (int i = 0; i < kLooksMax; ++i, ++at) {
      if (at == spaces_.end()) at = spaces_.begin();
      const Namespace& space = at->second;
      if (at->first.policy.is_full() || space.scopes > 0 || !is_unused(space.root)) continue;
      auto entry = spaces_.extract(at);
      last_looked_at_ = std::exchange(entry.key(), name);
      return &spaces_.insert(std::move(entry)).position->second;
    }
    last_looked_at_ = (at == spaces_.end() ? spaces_.begin() : at)->first;
    return nullptr;
  }

 private:
  std::map<NamespaceName, Namespace> spaces_;
  NamespaceName last_looked_at_ = {};
};

}  // namespace pagoda::kv
