#include "store/remote/dialect.h"

#include <fmt/format.h>

#include "store/remote/memcached_dialect.h"
#ifdef PAGODA_REDIS
#include "store/remote/redis_dialect.h"
#endif

namespace pagoda::store {

Result<std::unique_ptr<Dialect>> make_dialect(const RemoteUrl& url, std::size_t item_bytes_max) {
  if (url.kind == RemoteKind::kMemcached) {
    return std::unique_ptr<Dialect>(std::make_unique<MemcachedDialect>(item_bytes_max));
  }
#ifdef PAGODA_REDIS
  return std::unique_ptr<Dialect>(std::make_unique<RedisDialect>(url, item_bytes_max));
#else
  return Error{ErrorCode::kUnsupported,
               fmt::format("{}: this program was built without Redis", url.shown())};
#endif
}

}  // namespace pagoda::store
