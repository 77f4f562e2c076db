#include "server/access/local_client.h"

namespace pagoda::server {

// A machine reaches itself by a loopback address, or from the address that it asks.
bool is_local_client(std::string_view remote, std::string_view local) {
  constexpr std::string_view kMapped = "::ffff:";
  if (remote.empty()) return false;
  if (remote == local || remote == "::1") return true;
  if (remote.starts_with(kMapped)) remote.remove_prefix(kMapped.size());
  return remote.starts_with("127.");
}

}  // namespace pagoda::server
