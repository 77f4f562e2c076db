// PeerSet serves pages of this server's cache to other servers, and fetches pages from theirs.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "server/api/transfer_fields.h"
#include "store/peer/peer_listener.h"
#include "store/peer/peer_store.h"

namespace pagoda::app {

struct TierNeeds;

struct PeerOptions {
  std::string listen;  // HOST:PORT; empty: pages are served to nobody
  std::string peers;   // HOST:PORT[,…]; always asked
  std::string allow;   // who else a request may name; empty: store::kLoopbackHosts
  bool tls = false;
  std::string ca_file;           // of the peers' certificates; empty: the system's
  std::string certificate_file;  // of this server
  std::string certificate_key_file;
  double lease_s = 30;
  double lease_share = 0.25;  // of the pool
  double timeout_s = 2;
  double wait_s = 60;
  server::Disaggregation mode = server::Disaggregation::kNone;

  // Is a part of it asked for?
  bool any() const {
    return !listen.empty() || !peers.empty() || !allow.empty() ||
           mode == server::Disaggregation::kDecode;
  }
};

struct PeerSet {
  std::unique_ptr<store::PeerStore> store;        // nullptr: nothing was asked for
  std::unique_ptr<store::PeerListener> listener;  // nullptr: pages are served to nobody
};

// Opens what the options ask for; both servers need the key of a file. An error names the field.
Result<PeerSet> open_peers(const PeerOptions& options, const std::string& key_file,
                           const TierNeeds& needs);
// Lines for people.
std::string peer_lines(const PeerOptions& options, const store::PeerStore* store,
                       const store::PeerListener* listener);
// Where other servers are told to fetch this one's pages; without a host: nowhere.
store::PeerAddress peer_source(const PeerOptions& options, const store::PeerListener* listener);

}  // namespace pagoda::app
