// What `pagoda bench serve` can be told.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "loadgen/arrivals.h"

namespace pagoda::cli {

enum class WorkloadKind { kRandom, kShareGpt, kPrefix, kConversation, kTrace, kFixed };
enum class PromptChoice { kAuto, kIds, kWords };

struct ServeLoadOptions {
  std::string url = "http://127.0.0.1:8000";
  std::string model;
  std::string api_key;
  bool insecure = false;
  bool chat = false;
  bool stream = true;
  bool ignore_eos = true;
  double temperature = 0;
  PromptChoice prompts = PromptChoice::kAuto;
  std::string token_ids = "300-499";

  WorkloadKind workload = WorkloadKind::kRandom;
  std::uint64_t requests = 100;
  std::string input_tokens;  // empty: the workload's own
  std::string output_tokens;
  std::uint32_t prefixes = 4;
  std::uint32_t prefix_tokens = 256;
  std::uint32_t turns = 4;
  double think_s = 1;
  std::string trace;
  double speed = 1;
  std::uint32_t block_tokens = 512;
  double length_scale = 1;
  std::string prompt;

  loadgen::ArrivalKind arrivals = loadgen::ArrivalKind::kPoisson;
  double rate = 0;
  std::uint32_t burst = 10;
  std::uint32_t concurrency = 0;
  double duration_s = 0;
  double timeout_s = 600;
  std::uint64_t seed = 0;
  double slo_ttft_ms = 0;
  double slo_itl_ms = 0;
  bool json = false;
};

void add_serve_load_options(CLI::App& command, ServeLoadOptions& options);
// As --workload takes it.
std::string workload_name(WorkloadKind kind);

}  // namespace pagoda::cli
