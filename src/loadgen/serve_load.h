// Load on a server, as `pagoda bench serve` is told of it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "loadgen/arrivals.h"
#include "terminal/bench_report.h"
#include "terminal/interrupt.h"

namespace pagoda::loadgen {

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

  ArrivalKind arrivals = ArrivalKind::kPoisson;
  double rate = 0;
  std::uint32_t burst = 10;
  std::uint32_t concurrency = 0;
  double duration_s = 0;
  double timeout_s = 600;
  std::uint64_t seed = 0;
  double slo_ttft_ms = 0;
  double slo_itl_ms = 0;
  bool json = false;
  std::string plot;  // SVG file for the latencies over time; empty: none
};

struct ServerMeasurement {
  terminal::BenchReport report;
  bool answered = false;  // at least one request got a token
};

// Sends the load until it ends or Ctrl-C is pressed, with progress on stderr. An error
// kInvalidArgument: the options make no sense.
Result<ServerMeasurement> measure_server(const ServeLoadOptions& options,
                                         const terminal::Interrupt& interrupt);

}  // namespace pagoda::loadgen
