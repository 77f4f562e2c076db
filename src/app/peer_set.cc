#include "app/peer_set.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

#include "app/tier_set.h"
#include "terminal/messages.h"

namespace pagoda::app {
namespace {

// The greeting waits so long for the first connections to peers.
constexpr std::chrono::seconds kFirstConnections{1};

std::int64_t in_ns(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

Error named(const char* field, const Error& error) {
  return {error.code, fmt::format("`{}`: {}", field, error.message)};
}

void warn(const std::string& text) { terminal::print_warning(text); }

Result<store::PeerStoreOptions> store_options(const PeerOptions& options,
                                              const store::SecretKey& key, const TierNeeds& needs) {
  const auto peers = store::parse_peer_addresses(options.peers);
  if (!peers.ok()) return named("kv_peer", peers.error());
  auto allowed = store::PeerAllowList::parse(
      options.allow.empty() ? std::string(store::kLoopbackHosts) : options.allow);
  if (!allowed.ok()) return named("kv_peer_allow", allowed.error());
  for (const store::PeerAddress& peer : peers.value()) allowed.value().add_host(peer.host);
  store::PeerStoreOptions made;
  made.peers = peers.value();
  made.allowed = std::move(allowed).value();
  made.key = key;
  made.has_tls = options.tls;
  made.tls_ca_file = options.ca_file;
  made.page_bytes = needs.page_bytes;
  made.timeout_ns = in_ns(options.timeout_s);
  made.wait_ns = in_ns(options.wait_s);
  made.note = warn;
  return made;
}

Result<store::PeerListenerOptions> listener_options(const PeerOptions& options,
                                                    const store::SecretKey& key,
                                                    const TierNeeds& needs) {
  const auto address = store::parse_peer_address(options.listen);
  if (!address.ok()) return named("kv_peer_listen", address.error());
  if (options.tls && options.certificate_file.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "`kv_peer_tls`: serving pages over TLS needs `ssl_certfile` and `ssl_keyfile`"};
  }
  store::PeerListenerOptions made;
  made.address = address.value();
  made.key = key;
  if (options.tls) {
    made.tls_certificate = options.certificate_file;
    made.tls_key = options.certificate_key_file;
  }
  made.page_bytes = needs.page_bytes;
  made.lease_ns = in_ns(options.lease_s);
  ASSIGN_OR_RETURN(made.copier, needs.create_copier());
  made.note = warn;
  return made;
}

}  // namespace

Result<PeerSet> open_peers(const PeerOptions& options, const std::string& key_file,
                           const TierNeeds& needs) {
  PeerSet set;
  if (!options.any()) return set;
  if (key_file.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "`kv_store_key`: servers that fetch pages from each other prove by it who they "
                 "are: give both the same file"};
  }
  ASSIGN_OR_RETURN(const store::SecretKey key, store::read_key_file(key_file));
  ASSIGN_OR_RETURN(store::PeerStoreOptions fetching, store_options(options, key, needs));
  if (!options.listen.empty()) {
    ASSIGN_OR_RETURN(store::PeerListenerOptions serving, listener_options(options, key, needs));
    auto listener = store::PeerListener::open(std::move(serving));
    if (!listener.ok()) return named("kv_peer_listen", listener.error());
    set.listener = std::move(listener).value();
  }
  ASSIGN_OR_RETURN(set.store, store::PeerStore::open(std::move(fetching)));
  return set;
}

std::string peer_lines(const PeerOptions& options, const store::PeerStore* store,
                       const store::PeerListener* listener) {
  std::string lines;
  if (listener != nullptr) {
    lines += fmt::format(
        "KV is served to other servers at {} ({}, at most {:.0f} % of the cache "
        "leased at a time)\n",
        options.listen, listener->has_tls() ? "TLS" : "plain TCP", 100 * options.lease_share);
  }
  if (store == nullptr) return lines;
  const auto deadline = std::chrono::steady_clock::now() + kFirstConnections;
  while (!store->stats().is_ready && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  for (const std::string& peer : store->peers_shown()) {
    lines += fmt::format("KV of the server at {}\n", peer);
  }
  return lines;
}

// Whoever listens at every address is named by the machine's name.
store::PeerAddress peer_source(const PeerOptions& options, const store::PeerListener* listener) {
  if (listener == nullptr) return {};
  store::PeerAddress address = store::parse_peer_address(options.listen).value();
  if (address.host == "0.0.0.0" || address.host == "::") {
    std::array<char, 256> name = {};
    if (::gethostname(name.data(), name.size() - 1) == 0) address.host = name.data();
  }
  return address;
}

}  // namespace pagoda::app
