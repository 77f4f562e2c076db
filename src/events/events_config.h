// EventsConfig holds the fields of --kv-events-config: vLLM's under vLLM's names, and four of our
// own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pagoda::events {

// An event is a map since vLLM 0.24; before that it was an array of its fields.
enum class Encoding : std::uint8_t { kMaps, kArrays };

struct EventsConfig {
  bool enabled = false;                    // enable_kv_cache_events, and publisher is not "null"
  std::string endpoint = "tcp://*:5557";   // bound with '*', "::" or ipc://, else connected to
  std::string replay_endpoint = {};        // bound; empty: no replay and no snapshots
  std::uint64_t buffer_steps = 10'000;     // batches kept for replay
  std::uint32_t hwm = 100'000;             // batches that wait for one slow subscriber
  std::uint64_t max_queue_size = 100'000;  // events on their way from the engine
  std::string topic = {};

  Encoding encoding = Encoding::kMaps;  // "map" or "array"
  bool int_block_hashes = true;         // false: all 32 bytes of a block hash
  bool incarnation = false;             // true: a fourth item of every batch
  bool private_token_ids = false;       // true: tokens of salted blocks are told, too
};

// An error names the field and the values it takes.
Result<EventsConfig> parse_events_config(std::string_view json);

}  // namespace pagoda::events
