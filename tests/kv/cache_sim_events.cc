// Events: read late or not at all for a while, and snapshots in parts between whatever happens.
#include "kv/simulation.h"

namespace pagoda::kv {

void Simulation::emit_snapshot() {
  if (snapshot_.ended) snapshot_ = {};
  cache_.events().emit_snapshot(snapshot_, 1 + static_cast<std::uint32_t>(random(12)));
}

void Simulation::follow_events() {
  ring_->publish();
  if (random(3) == 0) return;  // the reader is slow: rings that are small overflow
  ring_->read(UINT64_MAX, [this](const CacheEvent& event, std::span<const TokenId> tokens) {
    if (options_.sabotage == Sabotage::kMissedEvent && random(40) == 0) return;
    mirror_.apply(event, tokens);
  });
  if (mirror_.contradiction()) return fail("events: " + *mirror_.contradiction());
  if (!mirror_.knows()) return;
  ++report_.mirrors_compared;
  const std::optional<std::string> difference = mirror_.difference(cache_);
  if (difference) fail("events: " + *difference);
}

// Whatever was lost: with a reader who keeps up, one snapshot gives everything.
void Simulation::finish_events() {
  snapshot_ = {};
  while (!report_.failure && !snapshot_.ended) {
    cache_.events().emit_snapshot(snapshot_, 5);
    ring_->publish();
    ring_->read(UINT64_MAX, [this](const CacheEvent& event, std::span<const TokenId> tokens) {
      mirror_.apply(event, tokens);
    });
  }
  if (!mirror_.knows()) return fail("events: a snapshot did not mend the mirror");
  const std::optional<std::string> difference = mirror_.difference(cache_);
  if (difference) fail("events: " + *difference);
  report_.snapshots = mirror_.snapshots();
  report_.snapshots_that_mended = mirror_.recoveries();
  report_.clears_told = mirror_.clears();
}

}  // namespace pagoda::kv
