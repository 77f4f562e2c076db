// llama.cpp's benchmark programs: how they are asked for a piece of work, and what they print.
//
//   llama-bench -o json           an array of tests, each with "samples_ts": tokens per second
//   llama-batched-bench           a JSON object in a line for each test, "speed_tg": tokens per
//     --output-format jsonl       second of all sequences
//
// The second stands beside the first and serves work of several sequences.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/work.h"

namespace pagoda::bench {

// One build of the programs with one model file.
struct Peer {
  std::string llama_bench;  // its path
  std::string model;

  std::string program_for(const Work& work) const;
  std::string name() const;  // "amx/llama-bench, model.gguf"
};

// A path's last folder and file: what tells builds apart.
std::string short_path(const std::string& path);

// How the programs are run.
struct PeerSettings {
  std::uint32_t threads = 1;
  std::uint32_t batched_tokens_max = 512;  // computed in one step
  std::uint32_t tries = 1;                 // measurements by one call
};

// Program and arguments.
std::vector<std::string> peer_command(const Peer& peer, const Work& work,
                                      const PeerSettings& settings);

// Tokens per second, one or more, from what the program printed. An error when it is something
// else, or about other work.
Result<std::vector<double>> read_peer_rates(const Work& work, const std::string& printed);

// Runs the program. An error names it when it cannot be run, crashes, fails or is not understood.
Result<std::vector<double>> measure_peer(const Peer& peer, const Work& work,
                                         const PeerSettings& settings,
                                         const std::function<bool()>& stopped);

}  // namespace pagoda::bench
