// The keys that are good at one moment. Immutable: a file that is read again makes another.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "server/access/caller.h"
#include "server/access/key_file.h"

namespace pagoda::server {

// The tenant of --api-key, and of everyone where there are no keys: engine tenant 0.
inline constexpr std::string_view kDefaultTenant = "default";

// Every tenant that was ever named, by the number that the engine knows it by.
class TenantRegistry {
 public:
  engine::TenantId register_tenant(const ListedTenant& tenant);
  // What Engine's options and set_tenants() take: tenants 1, 2, …
  const std::vector<engine::NamedTenant>& tenants() const { return tenants_; }

 private:
  std::vector<engine::NamedTenant> tenants_;
};

class KeyRing : public std::enable_shared_from_this<KeyRing> {
 public:
  // `tenants` gets those of the list; `secret` is what salts are made with.
  static std::shared_ptr<const KeyRing> make(const KeyList& list, TenantRegistry& tenants,
                                             std::string secret);

  // Nobody when the key is not good. The time it takes does not depend on the key.
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

// A key that was given by itself: of the default tenant, for everything.
ListedKey key_for_everything(std::string_view key);

// From the value of an Authorization header. `keys` is none where all may ask: everyone is then the
// default tenant and may do everything.
Caller identify(std::string_view authorization, const std::shared_ptr<const KeyRing>& keys);

}  // namespace pagoda::server
