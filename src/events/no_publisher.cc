// A build without ZeroMQ says so.
#include "events/publisher.h"

namespace pagoda::events {

Result<std::unique_ptr<Publisher>> Publisher::open(const EventsConfig& /*config*/,
                                                   kv::EventRing& /*ring*/) {
  return Error{ErrorCode::kUnsupported, "this program was built without ZeroMQ (PAGODA_ZMQ=OFF)"};
}

}  // namespace pagoda::events
