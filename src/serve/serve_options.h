// The options of a server that is run in the foreground.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/device_choice.h"
#include "app/key_source.h"
#include "app/quantised_model.h"
#include "app/random_model.h"
#include "app/sampling_defaults.h"
#include "app/speculation.h"
#include "app/tier_set.h"
#include "chat/derive.h"
#include "eval/quality_gate.h"
#include "hf/overrides.h"
#include "kv/evict/policy.h"
#include "server/server_options.h"

namespace pagoda::serve {

struct ServeOptions {
  std::string model;
  std::string revision;
  std::string tokenizer;
  hf::ConfigOverrides overrides;
  app::QuantizationOptions quantization;
  bool trusts_remote_code = false;
  app::GenerationConfig generation;
  app::RandomModelOptions random;
  std::vector<std::string> served_names;
  std::string chat_template;
  chat::FormOverrides forms;
  bool auto_tool_choice = true;  // accepted: tools need no flag

  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;
  std::optional<std::uint32_t> http_threads;  // unset: chosen by device
  std::uint32_t text_threads = 2;
  std::uint32_t connections_max = 4096;
  std::uint32_t connections_per_client_max = 1024;
  std::string body_bytes_max = "32MiB";
  std::string body_memory_max = "256MiB";
  std::string request_memory_max = "1GiB";
  std::string header_bytes_max = "16KiB";
  std::string ahead_bytes_max = "64KiB";
  double idle_timeout_s = 75;
  double write_timeout_s = 30;
  double keep_alive_s = 10;
  double request_timeout_s = 60;
  double shutdown_timeout_s = 30;
  server::LogOptions log = {.format = server::LogFormat::kText};

  app::AccessOptions access;
  app::TierSetOptions tiers;
  app::DeviceOptions device = {.steps = app::StepFlags{}};

  std::uint32_t threads = 0;  // 0: usable cores
  std::uint64_t max_model_len = 0;
  std::optional<std::uint64_t> max_output_tokens;  // unset: a quarter of the context; 0: no limit
  std::uint32_t block_size = 16;
  model::KvCacheDtype kv_cache_dtype;
  kv::KvPolicy kv_policy;
  speculate::SpeculationOptions speculation = app::default_speculation();
  std::optional<eval::GateMode> kv_quality_gate;  // unset: kWarn, of formats below bf16 alone
  std::string kv_cache_memory_bytes;
  bool prefix_caching = true;
  const kv::EvictionPolicy* kv_eviction = &kv::lru_policy();
  bool kv_curve = true;
  // Shares of the cache.
  std::optional<double> retain_budget;  // unset: a quarter without keys, none with them
  double session_timeout_s = 3600;
  std::string normalise_prompts;
  double kv_quota = 0;
  double kv_quota_public = 0;
  std::string kv_events_config;  // JSON; empty: no events
  std::uint32_t long_prefill_tokens = 0;
  std::uint32_t requests_queued_max = 10000;
  std::string context_classes;

  // The share of the cache that one tenant may retain. Who shares a machine with others keeps
  // nothing from them unless its operator says so.
  double retain_share() const {
    constexpr double kAlone = 0.25;
    const bool has_keys = !access.api_keys.empty() || !access.key_file.empty();
    return retain_budget.value_or(has_keys ? 0 : kAlone);
  }
};

}  // namespace pagoda::serve
