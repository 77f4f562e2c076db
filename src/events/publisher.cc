#include "events/publisher.h"

#ifdef PAGODA_ZMQ
#include "events/zmq_publisher.h"
#endif

namespace pagoda::events {

#ifdef PAGODA_ZMQ
Result<std::unique_ptr<Publisher>> Publisher::open(const EventsConfig& config,
                                                   kv::EventRing& ring) {
  ASSIGN_OR_RETURN(auto publisher, ZmqPublisher::bind(config, ring));
  return std::unique_ptr<Publisher>(std::move(publisher));
}
#else
Result<std::unique_ptr<Publisher>> Publisher::open(const EventsConfig& /*config*/,
                                                   kv::EventRing& /*ring*/) {
  return Error{ErrorCode::kUnsupported, "this program was built without ZeroMQ (PAGODA_ZMQ=OFF)"};
}
#endif

}  // namespace pagoda::events
