#include "store/remote/protocol.h"

#include <fmt/format.h>

#include "store/remote/memcached_protocol.h"
#ifdef PAGODA_REDIS
#include "store/remote/redis_protocol.h"
#endif

namespace pagoda::store {

Result<std::unique_ptr<Protocol>> make_protocol(const RemoteUrl& url, std::size_t item_bytes_max) {
  if (url.kind == RemoteKind::kMemcached) {
    return std::unique_ptr<Protocol>(std::make_unique<MemcachedProtocol>(item_bytes_max));
  }
#ifdef PAGODA_REDIS
  return std::unique_ptr<Protocol>(std::make_unique<RedisProtocol>(url, item_bytes_max));
#else
  return Error{ErrorCode::kUnsupported,
               fmt::format("{}: this program was built without Redis", url.shown())};
#endif
}

}  // namespace pagoda::store
