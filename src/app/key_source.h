// Who may ask a server: what it is told about keys, pages and certificates, and the keys
// themselves.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/access/key_ring.h"
#include "server/server_options.h"

namespace pagoda::app {

struct AccessOptions {
  std::vector<std::string> api_keys;
  std::string key_file;
  std::string secret_file;
  std::vector<std::string> cors_origins;
  std::vector<std::string> allowed_hosts;
  std::string certificate_file;
  std::string certificate_key_file;
  bool metrics_need_admin = false;
  bool show_prompts_to_admins = false;
};

// Into `made`, whose host is set. Errors name the flag, or its variable.
Status set_access(const AccessOptions& options, server::ServerOptions& made);

// Keys as the flags name them: read at the start, and again when asked to.
class KeySource {
 public:
  // The options must outlive it.
  explicit KeySource(const AccessOptions& options) : options_(options) {}

  // None when there are no keys. After an error nothing has changed.
  Result<std::shared_ptr<const server::KeyRing>> read();
  // For the engine, after read().
  const std::vector<engine::NamedTenant>& tenants() const { return tenants_.tenants(); }
  // Empty without keys.
  const std::string& secret() const { return secret_; }
  // Files of what was read that others may read too: a line for each.
  std::vector<std::string> warnings() const;

 private:
  const AccessOptions& options_;
  std::string secret_;  // stays: with another one nothing in the cache would be found
  server::TenantRegistry tenants_;
  bool shows_keys_to_others_ = false;
};

}  // namespace pagoda::app
