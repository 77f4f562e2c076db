// Who sent a request, and what it may do.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/tenant.h"

namespace pagoda::server {

class KeyRing;

struct Caller {
  bool is_known = false;  // else nobody: without a key where one is needed
  bool is_admin = false;
  bool may_publish = false;
  engine::TenantId tenant = {};
  std::string tenant_name = {};
  std::int32_t priority_min = INT32_MIN;     // the most urgent that it may ask for
  std::shared_ptr<const KeyRing> keys = {};  // that it was found in; none where all may ask

  // What its blocks are kept under. Without keys that is cache_salt itself; with them it depends on
  // the tenant too, so that no cache_salt joins two tenants.
  std::string salt(std::string_view cache_salt) const;
};

}  // namespace pagoda::server
