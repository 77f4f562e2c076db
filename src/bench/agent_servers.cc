#include "bench/agent_servers.h"

#include <sstream>

#include "app/model_finder.h"
#include "process/command_words.h"

namespace pagoda::bench {
namespace {

std::vector<std::string> plain_serve_words(const BenchAgentsOptions& options, std::uint16_t port) {
  std::vector<std::string> words = {process::own_program(), "serve",   "--port",
                                    std::to_string(port),   "--model", options.model,
                                    "--log-format",         "none"};
  if (options.threads > 0) {
    words.insert(words.end(), {"--threads", std::to_string(options.threads)});
  }
  return words;
}

}  // namespace

std::vector<std::string> serve_words(const BenchAgentsOptions& options, std::uint16_t port,
                                     std::uint64_t kv_bytes) {
  std::vector<std::string> words = plain_serve_words(options, port);
  words.insert(words.end(),
               {"--max-model-len", std::to_string(options.agents.context_tokens()),
                "--kv-cache-memory-bytes", std::to_string(kv_bytes), "--kv-disk", "off"});
  return words;
}

std::vector<std::string> serve_words(const BenchAgentsOptions& options, std::uint16_t port,
                                     const std::string& disk_folder) {
  std::vector<std::string> words = plain_serve_words(options, port);
  words.insert(words.end(), {"--kv-disk", disk_folder});
  return words;
}

Result<std::vector<std::string>> llama_server_words(const BenchAgentsOptions& options,
                                                    std::uint16_t port, std::uint32_t slots,
                                                    std::uint64_t kv_tokens) {
  std::string model = options.llama_model;
  if (model.empty()) {
    ASSIGN_OR_RETURN(const app::FoundModel found,
                     app::find_model(options.model, app::ModelEnvironment::of_process()));
    model = found.path;
  }
  std::vector<std::string> words = {options.llama_server, "-m", model, "--port",
                                    std::to_string(port)};
  if (options.threads > 0) words.insert(words.end(), {"-t", std::to_string(options.threads)});
  if (slots > 0) {
    words.insert(words.end(), {"-c", std::to_string(kv_tokens), "-np", std::to_string(slots),
                               "--kv-unified", "--cache-ram", "0"});
  }
  std::istringstream flags(options.llama_flags);
  for (std::string flag; flags >> flag;) words.push_back(flag);
  return words;
}

}  // namespace pagoda::bench
