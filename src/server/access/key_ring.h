// The keys that are valid at one moment. Immutable: reading the key file again makes another ring.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "server/access/caller.h"
#include "server/access/key_file.h"

namespace pagoda::server {

// The tenant of the server option api_key, and of every caller where there are no keys: engine
// tenant 0.
inline constexpr std::string_view kDefaultTenant = "default";

// Registers every tenant that was ever named, by its number in the engine.
class TenantRegistry {
 public:
  engine::TenantId register_tenant(const ListedTenant& tenant);
  // Returns tenants 1, 2, …, as EngineOptions and set_tenants() take them.
  const std::vector<engine::NamedTenant>& tenants() const { return tenants_; }

 private:
  std::vector<engine::NamedTenant> tenants_;
};

class KeyRing : public std::enable_shared_from_this<KeyRing> {
 public:
  // Adds the list's tenants to `tenants`; `secret` is the key of the salts.
  static std::shared_ptr<const KeyRing> make(const KeyList& list, TenantRegistry& tenants,
                                             std::string secret);

  // Returns an unknown caller when the key is not valid. The time does not depend on the key.
  Caller find(std::string_view key) const;
  const std::string& secret() const { return secret_; }
  const std::vector<ListedTenant>& tenants() const { return tenants_; }
  std::size_t keys_of(std::string_view tenant) const;

 private:
  struct Entry {
    Digest digest;
    Caller caller;
  };

  std::vector<Entry> entries_;
  std::vector<ListedTenant> tenants_;
  std::string secret_;
};

// Makes a key of the default tenant with every right, for a key that was given without a file.
ListedKey key_for_everything(std::string_view key);

// Identifies a caller by its Authorization header. `keys` is nullptr when no key is needed: every
// caller is then the default tenant with every right.
Caller identify(std::string_view authorization, const std::shared_ptr<const KeyRing>& keys);

}  // namespace pagoda::server
