// Agents on one machine, as `pagoda bench agents` is told of them: a main agent and sub-agents that
// take turns, each with a long system prompt, tool results between its turns, and a note that
// stands in the last message only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "loadgen/run_load.h"
#include "loadgen/target.h"
#include "loadgen/workload.h"

namespace pagoda::loadgen {

struct AgentsOptions {
  std::uint32_t main_tokens = 5000;  // of the main agent's system prompt and tools
  std::uint32_t sub_tokens = 1250;   // of a sub-agent's
  std::uint32_t sub_agents = 3;
  std::uint32_t turns = 40;          // of each agent
  std::uint32_t result_tokens = 24;  // of a tool's result, which begins a turn
  std::uint32_t note_tokens = 32;    // of the note that only the last turn has
  std::uint32_t output_tokens = 16;
  double pause_s = 0.2;  // of tools: the mean of an exponential
  std::uint64_t seed = 0;

  std::uint32_t agents() const { return 1 + sub_agents; }
  // The longest prompt with its output, about.
  std::uint32_t context_tokens() const {
    return main_tokens + turns * (result_tokens + output_tokens + kTurnOverhead) + note_tokens;
  }
  static constexpr std::uint32_t kTurnOverhead = 16;  // of a chat template
};

// Users are agents: 0 is the main one. All begin at once.
std::unique_ptr<Workload> make_agents(const AgentsOptions& options);

// What the agents saw of one server.
struct AgentsMeasurement {
  std::string name;
  std::string flags;  // that the server was started with
  LoadResult load;
  std::uint64_t blocks_evicted = 0;  // by the server's own count; 0 where it has none
  bool counts_evictions = false;

  // Times to the first token, in seconds, of turns `first` (from 1) and later, of all agents.
  std::vector<float> ttft_from(std::uint32_t first) const;
  std::uint64_t tokens_computed() const;  // of prompts, where the server reports what it cached
};

// Lets the agents run against a server that listens, with or without session keys.
Result<AgentsMeasurement> measure_agents(const AgentsOptions& options, const Target& target,
                                         const std::string& model, bool with_sessions,
                                         const LoadEvents& events);

}  // namespace pagoda::loadgen
