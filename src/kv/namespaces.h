// The namespaces of a cache (README: K4), each with the root of its tree. Namespaces are the
// operator's and stay for the life of the cache.
#pragma once

#include <compare>
#include <map>
#include <string>

#include "kv/ids.h"

namespace pagoda::kv {

struct NamespaceName {
  std::string space;    // what rows depend on besides tokens: model, numerics, KV format
  std::string adapter;  // empty: none

  auto operator<=>(const NamespaceName&) const = default;
};

using Namespaces = std::map<NamespaceName, NodeId>;

}  // namespace pagoda::kv
