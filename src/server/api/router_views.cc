// Answers to routers in front of several servers, with SGLang's names and fields.
#include "engine/snapshot.h"
#include "server/api/endpoints.h"

namespace pagoda::server {

// No path of this machine: the name that clients use stands for both.
Json describe_model_info(const ServedModel& model) {
  return {{"model_path", model.name()},
          {"tokenizer_path", model.name()},
          {"is_generation", true},
          {"preferred_sampling_params", nullptr},
          {"weight_version", model.fingerprint},
          {"max_model_len", model.context_tokens()}};
}

Json describe_loads(const ServedModel& model, const std::string& version) {
  const engine::Snapshot now = model.engine.snapshot();
  const std::uint64_t block_tokens = model.facts.value("block_size", std::uint64_t{0});
  const auto share = [](std::uint64_t part, std::uint64_t all) {
    return all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
  };
  const std::uint64_t running = now.sequences_running;
  const std::uint64_t waiting = now.requests_waiting;
  const double usage = share(now.blocks_active(), now.blocks_all);
  const Json load = {{"dp_rank", 0},
                     {"num_running_reqs", running},
                     {"num_waiting_reqs", waiting},
                     {"num_total_reqs", running + waiting},
                     {"num_used_tokens", now.blocks_active() * block_tokens},
                     {"max_total_num_tokens", now.blocks_all * block_tokens},
                     {"token_usage", usage},
                     {"gen_throughput", running > 0 ? now.output_tokens_per_second : 0.0},
                     {"cache_hit_rate", share(now.lookups.tokens_found, now.lookups.tokens_asked)},
                     {"max_running_requests", model.engine.limits().sequences_max}};
  return {{"version", version},
          {"dp_rank_count", 1},
          {"loads", Json::array({load})},
          {"aggregate",
           {{"total_running_reqs", running},
            {"total_waiting_reqs", waiting},
            {"total_reqs", running + waiting},
            {"avg_token_usage", usage}}}};
}

}  // namespace pagoda::server
