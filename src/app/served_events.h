// The events of a server's cache, from --kv-events-config to the publisher's thread.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "engine/engine.h"
#include "events/publisher.h"
#include "kv/events/event_ring.h"
#include "server/json.h"

namespace pagoda::app {

class ServedEvents {
 public:
  // Binds the sockets. Nothing when `config` does not ask for events. Errors name the flag.
  static Result<std::unique_ptr<ServedEvents>> open(const std::string& config,
                                                    std::uint32_t block_tokens);

  // For the cache; it must not outlive this.
  kv::EventRing& ring() { return ring_; }
  // On the engine's thread, after each step.
  void after_step() {
    if (ring_.publish()) publisher_->wake();
  }

  // Both before the engine ends.
  void start(engine::Engine& engine, const kv::Cache& cache);
  void stop() { publisher_->stop(); }

  // For /server_info.
  server::Json facts() const;

 private:
  ServedEvents(const events::EventsConfig& config, std::uint32_t block_tokens)
      : ring_(config.max_queue_size, block_tokens, config.private_token_ids) {}

  kv::EventRing ring_;
  std::unique_ptr<events::Publisher> publisher_;
};

}  // namespace pagoda::app
