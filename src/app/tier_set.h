// The tiers of a server: what it is told about memory, disk and remote stores, and the stores
// themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "app/peer_set.h"
#include "app/space_finder.h"
#include "base/result.h"
#include "engine/backends/cpu_backend.h"
#include "engine/engine.h"
#include "gguf/fingerprint.h"
#include "store/disk/disk_store.h"
#include "store/remote/remote_store.h"

namespace pagoda::app {

struct TierSetOptions {
  std::string host_size = "0";
  std::string disk;       // a folder, "off", or empty: the default folder
  std::string disk_size;  // empty: store::default_disk_bytes()
  std::string remote;     // a URL; empty: none
  double remote_ttl_s = 86400;
  double remote_timeout_s = 2;
  std::string key_file;  // AES-256-GCM; empty: none
  PeerOptions peer;
  std::string ca_file;  // of rediss://
  engine::WriteMode write = engine::WriteMode::kUse;
  engine::LoadMode load = engine::LoadMode::kAuto;
  double stop_s = 10;
  std::uint64_t disk_bytes_per_s = 0;  // for tests; 0: as fast as it is

  // Is a tier wanted?
  bool any() const { return disk != "off" || !remote.empty() || host_size != "0" || peer.any(); }
  // Is one asked for by name, beside the disk that is used where nothing is said?
  bool any_named() const {
    return any() && (!disk.empty() || !remote.empty() || host_size != "0" || peer.any());
  }
};

// The pages that the stores hold: their size, their address and how they are copied.
struct TierNeeds {
  std::uint64_t page_bytes = 0;
  std::uint32_t block_tokens = 0;
  std::string rows_id;  // numerics and KV format
  // Whose fingerprint is part of pages' addresses; they stay open.
  std::vector<gguf::OpenedPart> model_parts;
  // For each store one, where pages are not in this process's memory (Backend::create_page_copier).
  std::function<Result<std::unique_ptr<kv::PageCopier>>()> create_copier = {};
};

// The stores that a server uses, from the start to a clean stop.
class TierSet {
 public:
  // Nothing when no tier is wanted. A flag that makes no sense is an error, and so is a folder that
  // was named and that the operating system refuses. Otherwise a disk that cannot be used, as
  // another process uses it, is a warning, and the server does without.
  static Result<std::unique_ptr<TierSet>> open(const TierSetOptions& flags, const TierNeeds& needs);

  // For the engine's options; call set_owners() before a request comes.
  engine::TierOptions options();
  // By number of tenant, 0 first; the secret is the server's.
  void set_owners(const std::string& secret, const std::vector<engine::NamedTenant>& tenants);

  // Finds the model's fingerprint in the background; pages have an address then. One that was
  // remembered is confirmed there too.
  void start(engine::Engine& engine);
  // Remembers the prefill rate that the engine measured and writes pages worth keeping to the
  // stores.
  void stop(engine::Engine& engine);

  std::vector<kv::PageStore*> stores() const;
  kv::OwnerTag owner_tag(kv::OwnerId owner) const;
  // Lines for people, one a tier. Waits at most a second for the remote store, and says whether it
  // is connected.
  std::string greeting() const;
  // May a request name this host as where its pages are? Any thread.
  bool allows_peer(const std::string& host) const;
  // Nothing: requests may name no server.
  bool fetches_from_peers() const { return peer_store_ != nullptr; }
  store::PeerAddress peer_source() const;
  // Counts what is served to other servers; nothing: pages are served to nobody.
  std::optional<store::PeerServed> peer_served() const;
  // Reads the certificate again by which pages are served. An error: the old one stays.
  Status reload_certificate();
  // Nothing runs, or something does: the scrub waits for it.
  void set_idle(bool is_idle);

 private:
  TierSet(const TierSetOptions& flags, const TierNeeds& needs)
      : flags_(flags), needs_(needs), space_(needs.model_parts, needs.rows_id) {}
  Status open_host();
  Status open_disk();
  Status open_remote();
  Status open_peer();
  Status add(std::unique_ptr<kv::PageStore> store);
  std::string remote_line() const;

  TierSetOptions flags_;
  TierNeeds needs_;
  std::vector<std::unique_ptr<kv::PageStore>> stores_;  // nearest first
  store::DiskStore* disk_ = nullptr;
  std::string disk_path_;  // its folder
  const store::RemoteStore* remote_ = nullptr;
  store::PeerStore* peer_store_ = nullptr;
  std::unique_ptr<store::PeerListener> listener_;
  store::DeploymentId deployment_ = {};
  std::string remote_shown_;  // its URL without the login
  std::vector<std::string> lines_;
  mutable std::mutex owners_mutex_;
  std::vector<kv::OwnerTag> owners_;  // [tenant]
  SpaceFinder space_;
};

}  // namespace pagoda::app
