// Agents on one machine, as `pagoda bench agents` is told of them: a main agent and sub-agents that
// take turns, each with a long system prompt, tool results between its turns, and a note that
// stands in the last message only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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
  // One agent after the other, in an order that the seed draws, without pauses: what servers
  // compute depends on no time. A turn that fails is the last.
  bool one_by_one = false;

  std::uint32_t agents() const { return 1 + sub_agents; }
  // The longest prompt with its output, about.
  std::uint32_t context_tokens() const {
    return main_tokens + turns * (result_tokens + output_tokens + kTurnOverhead) + note_tokens;
  }
  static constexpr std::uint32_t kTurnOverhead = 16;  // of a chat template
};

// Users are agents: 0 is the main one. All begin at once.
std::unique_ptr<Workload> make_agents(const AgentsOptions& options);

// Blocks that a server evicted, by its own count.
struct EvictedBlocks {
  std::uint64_t all = 0;
  std::uint64_t by_sessions = 0;  // because their session had gone on without them
};
// Reads Pagoda's metrics; nothing where another server wrote them.
std::optional<EvictedBlocks> read_evicted_blocks(std::string_view metrics);

// The message of a failure, without what stands around it in a reply's JSON, shortened to fit into
// a table.
std::string failure_words(std::string_view failure);

// The figures that the agents measured of one server in one run.
struct AgentsMeasurement {
  std::string name;
  std::string flags;  // that the server was started with
  std::uint32_t run = 1;
  AgentsOptions options;
  LoadResult load;
  std::optional<EvictedBlocks> evicted;

  // Times to the first token, in seconds, of turns `first` (from 1) and later, of all agents. A
  // turn that failed, or was never asked because one before it failed, is there as infinity.
  std::vector<float> ttft_from(std::uint32_t first) const;
  // Turns that were not answered, whether they were asked or not.
  std::uint64_t turns_failed() const;
  // Prompt tokens that were computed; nothing where the server does not say what it had cached, or
  // answered nothing.
  std::optional<std::uint64_t> tokens_computed() const;
  // Those of them that were computed in an earlier turn already: what a turn computes beyond its
  // new tokens, which are those by which its prompt is longer than the one before, its note, and
  // what a template writes behind that.
  std::optional<std::uint64_t> tokens_computed_again() const;
};

// Lets the agents run against a server that listens, with or without session keys.
Result<AgentsMeasurement> measure_agents(const AgentsOptions& options, const Target& target,
                                         const std::string& model, bool with_sessions,
                                         const LoadEvents& events);

}  // namespace pagoda::loadgen
