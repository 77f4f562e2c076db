#include "store/disk/disk_health.h"

#include <fmt/format.h>

#include "store/disk/file_layer.h"

namespace pagoda::store {

using kv::StoreFault;

void DiskHealth::note_request(bool is_write, StoreFault fault, int error, std::int64_t now_ns) {
  CircuitBreaker& health = is_write ? writing_ : reading_;
  if (fault == StoreFault::kIo || (fault == StoreFault::kNoRoom && error != 0)) {
    health.fail(now_ns,
                fmt::format("{} fail: {}", is_write ? "writes" : "reads", error_text(error)));
    if (fault == StoreFault::kNoRoom) full_since_ns_ = now_ns;
  } else if (fault == StoreFault::kNone || fault == StoreFault::kDamaged ||
             fault == StoreFault::kForeign) {
    health.succeed();  // the disk works, whatever the page is
  }
}

void DiskHealth::note_sync(int error, std::int64_t now_ns) {
  if (error == 0) {
    syncing_.succeed();
  } else {
    syncing_.fail(now_ns, fmt::format("syncs fail: {}", error_text(error)));
  }
}

void DiskHealth::note_load(int error) {
  load_error_ = error == 0 ? "" : fmt::format("the index cannot be read: {}", error_text(error));
}

bool DiskHealth::take_growth(std::int64_t now_ns) {
  if (full_since_ns_ == 0 || now_ns - full_since_ns_ <= retry_after_ns_) return false;
  full_since_ns_ = 0;
  return true;
}

const std::string& DiskHealth::condition() const {
  if (!load_error_.empty()) return load_error_;
  if (!reading_.reason().empty()) return reading_.reason();
  return writing_.reason().empty() ? syncing_.reason() : writing_.reason();
}

}  // namespace pagoda::store
