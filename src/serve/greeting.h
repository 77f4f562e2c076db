// The lines that a server prints once it serves.
#pragma once

#include <cstdint>
#include <string>

#include "app/sampling_defaults.h"
#include "app/served_source.h"
#include "app/tier_set.h"
#include "engine/backends/backend.h"
#include "server/served_model.h"
#include "server/server.h"

namespace pagoda::serve {

// The way in which a backend drafts tokens, in words.
std::string speculation_of(const engine::Backend& backend);

// Names the parts of a server that its greeting tells about.
struct GreetingFacts {
  const server::Server& server;
  const server::ServedModel& model;
  const app::ServedSource& source;
  const engine::Backend& backend;
  const app::SamplingDefaults& sampling;
  std::uint32_t http_threads = 0;
  bool has_keys = false;
  const app::TierSet* tier_set = nullptr;  // nullptr: there are no tiers
};

// Prints address, model, cache, sampling, limits and tiers, and a command to try.
void print_greeting(const GreetingFacts& facts);

}  // namespace pagoda::serve
