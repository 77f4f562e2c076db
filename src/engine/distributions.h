// Distributions are histograms of durations and sizes since the start, from which percentiles are
// derived. The engine's thread records, any thread reads (base/counter.h); memory is fixed.
//
// Bounds are those that dashboards for vLLM know, and finer ones where a small model would
// otherwise be all in the first range.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/counter.h"
#include "engine/finish_reason.h"
#include "engine/reply.h"

namespace pagoda::engine {

inline constexpr std::array kFirstTokenSeconds = {
    .0001, .00025, .0005, .001, .0025, .005, .01, .02, .04, .06, .08,  .1,   .25,
    .5,    .75,    1.,    2.5,  5.,    7.5,  10., 20., 40., 80., 160., 640., 2560.};
inline constexpr std::array kTokenGapSeconds = {
    .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .075, .1,  .15, .2,
    .3,    .4,     .5,    .75,  1.,    2.5,  5.,  7.5,  10., 20.,  40., 80.};
inline constexpr std::array kRequestSeconds = {
    .0001, .0005, .001, .005, .01, .025, .05, .1,  .2,  .3,   .5,   .8,   1.,   1.5,   2.,
    2.5,   5.,    10.,  15.,  20., 30.,  40., 50., 60., 120., 240., 480., 960., 1920., 7680.};
inline constexpr std::array kStepSeconds = {
    1e-6, 2.5e-6, 5e-6,   1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3,
    5e-3, 1e-2,   2.5e-2, 5e-2, .1,     .25,  .5,   1.,     2.5,  5.,   10.};
inline constexpr std::array kTokenCounts = {1.,   2.,   5.,  10., 20., 50., 100.,
                                            200., 500., 1e3, 2e3, 5e3, 1e4, 2e4,
                                            5e4,  1e5,  2e5, 5e5, 1e6, 2e6, 5e6};
inline constexpr std::array kBatchTokenCounts = {1.,   8.,    16.,   32.,   64.,   128.,  256.,
                                                 512., 1024., 2048., 4096., 8192., 16384.};
inline constexpr std::array kSequenceCounts = {1., 2., 5., 10., 20.};

// StepPhase divides a step's time on the engine's thread.
enum class StepPhase : std::uint8_t {
  kPlan,    // decide, reserve, assemble
  kLaunch,  // hand the launch to the runner; a runner that does not run ahead computes here
  kWait,    // wait for the runner's results
  kEmit,    // publish blocks, append tokens, tell sinks
};
inline constexpr std::size_t kStepPhaseCount = 4;

constexpr std::string_view step_phase_name(StepPhase phase) {
  constexpr std::array<std::string_view, kStepPhaseCount> kNames = {"plan", "launch", "wait",
                                                                    "emit"};
  return kNames[static_cast<std::size_t>(phase)];
}

struct Distributions {
  // Seconds of sequences. The first two count all sequences, the others those that ended by
  // themselves.
  Histogram first_token_s{kFirstTokenSeconds};  // TTFT: from arrival to the first token
  Histogram token_gap_s{kTokenGapSeconds};      // ITL: between two tokens of a sequence
  Histogram token_mean_s{kTokenGapSeconds};     // TPOT: a sequence's mean gap
  Histogram total_s{kRequestSeconds};           // E2E latency: from arrival to end
  Histogram queue_s{kRequestSeconds};           // from arrival to the first launch
  Histogram inference_s{kRequestSeconds};       // from the first launch to the end
  Histogram prefill_s{kRequestSeconds};         // from the first launch to the first token
  Histogram decode_s{kRequestSeconds};          // from the first token to the end

  // Sequences that ended by themselves.
  Histogram output_tokens{kTokenCounts};
  Histogram prompt_tokens_computed{kTokenCounts};
  // Requests.
  Histogram prompt_tokens{kTokenCounts};
  Histogram output_tokens_longest{kTokenCounts};  // of the request's longest sequence
  Histogram tokens_asked{kTokenCounts};           // max_tokens, where given
  Histogram sequences_asked{kSequenceCounts};

  // Steps.
  Histogram step_tokens{kBatchTokenCounts};
  Histogram step_s{kStepSeconds};            // from launch, or the end of the launch before, to end
  Histogram step_predicted_s{kStepSeconds};  // of the same steps, once one was measured
  std::array<Histogram, kStepPhaseCount> phase_s{Histogram{kStepSeconds}, Histogram{kStepSeconds},
                                                 Histogram{kStepSeconds}, Histogram{kStepSeconds}};

  void observe_phase(StepPhase phase, std::int64_t from_ns, std::int64_t to_ns);
  // Records a sequence that ended by itself.
  void observe_sequence(const SequenceRecord& record);
};

}  // namespace pagoda::engine
