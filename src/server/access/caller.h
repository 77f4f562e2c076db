// The sender of a request, and its rights.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/tenant.h"

namespace pagoda::server {

class KeyRing;

struct Caller {
  bool is_known = false;  // false: it has no valid key where one is needed
  bool is_admin = false;
  bool may_publish = false;
  bool is_local = false;  // it asks from this machine, and nobody forwards for others
  engine::TenantId tenant = {};
  std::string tenant_name = {};
  std::uint64_t context_tokens = 0;       // prompt and output of one sequence; 0: the model's
  std::uint64_t output_tokens = 0;        // the most of one sequence; 0: as many as fit
  std::int32_t priority_min = INT32_MIN;  // the most urgent priority that its requests may have
  // The key ring that it was found in; nullptr when no key is needed.
  std::shared_ptr<const KeyRing> keys = {};

  // Returns the salt of its blocks. Without keys that is cache_salt itself; with keys the salt also
  // depends on the tenant, so that no cache_salt lets two tenants share blocks.
  std::string salt(std::string_view cache_salt) const;
};

}  // namespace pagoda::server
