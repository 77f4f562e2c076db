// Publishes the cache's events to subscribers (docs/guide/events.md has the messages).
//
//   engine's thread   cache -> ring | after a step: publish, wake
//   publisher's       wait -> ring -> batches -> sockets
//
// A slow or absent subscriber costs the engine nothing: a batch that finds no room in a
// subscriber's queue is not sent to that subscriber, and an event that finds no room in the ring
// leaves a hole in the numbers of batches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "events/events_config.h"
#include "kv/events/event_ring.h"
#include "kv/memory/cache_groups.h"

namespace pagoda::events {

class Publisher {
 public:
  // Asks the owner of the cache to write a part of a snapshot into the ring, the first one or the
  // next; parts are written in the order in which they are asked for. Called on the publisher's
  // thread.
  using AskForPart = std::function<void(bool first)>;

  // Binds the sockets. `ring` outlives the publisher, which is its reader.
  static Result<std::unique_ptr<Publisher>> open(const EventsConfig& config, kv::EventRing& ring);
  virtual ~Publisher() = default;

  // Sends events from here on; the first one says that nothing is stored.
  virtual void start(const std::vector<kv::memory::AttentionSpec>& groups, AskForPart ask) = 0;
  // Sends the events that were handed over. Afterwards no snapshot part is asked for any more.
  virtual void stop() = 0;
  // Says that events were handed over. Any thread may call; the call never waits.
  virtual void wake() = 0;

  // Names this process and no other.
  virtual const std::string& incarnation() const = 0;
  // Returns the bound endpoint: with the port's number where any port was asked for.
  virtual const std::string& endpoint() const = 0;
  virtual const std::string& replay_endpoint() const = 0;
};

}  // namespace pagoda::events
