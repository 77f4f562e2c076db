// The commands of the servers that pagoda bench agents starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/benchmarks.h"

namespace pagoda::bench {

// Returns the words of pagoda serve with so many bytes of KV in all: nothing is kept on disk.
std::vector<std::string> serve_words(const BenchAgentsOptions& options, std::uint16_t port,
                                     std::uint64_t kv_bytes);
// The same with its defaults, but for the folder of its disk tier.
std::vector<std::string> serve_words(const BenchAgentsOptions& options, std::uint16_t port,
                                     const std::string& disk_folder);

// Returns the words of llama-server with `slots` slots that share `kv_tokens` tokens of KV; 0
// slots: its defaults.
Result<std::vector<std::string>> llama_server_words(const BenchAgentsOptions& options,
                                                    std::uint16_t port, std::uint32_t slots,
                                                    std::uint64_t kv_tokens);

}  // namespace pagoda::bench
