// Tells the cache's events to whoever subscribes (docs/guide/events.md has the messages).
//
//   engine's thread   cache -> ring | after a step: publish, wake
//   publisher's       wait -> ring -> batches -> sockets
//
// A subscriber that is slow or absent costs the engine nothing: a batch that finds no room in his
// queue is not sent to him, and an event that finds none in the ring leaves a hole in the numbers
// of batches.
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
  // Asks whoever owns the cache to tell a part of a snapshot into the ring, the first one or the
  // next; they are told in the order they are asked for. Called on the publisher's thread.
  using AskForPart = std::function<void(bool first)>;

  // Binds the sockets. `ring` outlives the publisher, which is its reader.
  static Result<std::unique_ptr<Publisher>> open(const EventsConfig& config, kv::EventRing& ring);
  virtual ~Publisher() = default;

  // From here on events are sent, first of all that nothing is stored.
  virtual void start(const std::vector<kv::memory::AttentionSpec>& groups, AskForPart ask) = 0;
  // Sends what was handed over. Afterwards nothing is asked for any more.
  virtual void stop() = 0;
  // Something was handed over. Any thread; never waits.
  virtual void wake() = 0;

  // This process and no other.
  virtual const std::string& incarnation() const = 0;
  // As bound: with the port's number where any was asked for.
  virtual const std::string& endpoint() const = 0;
  virtual const std::string& replay_endpoint() const = 0;
};

}  // namespace pagoda::events
