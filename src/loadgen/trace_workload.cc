// A recorded trace, sent again: its times at a speed, its lengths at a scale, its shared blocks as
// shared text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "loadgen/random_streams.h"
#include "loadgen/workload.h"

namespace pagoda::loadgen {
namespace {

constexpr double kTraceTokensMax = 1 << 24;

std::uint32_t scaled(double tokens, double scale) {
  return static_cast<std::uint32_t>(std::clamp(std::round(tokens * scale), 1.0, kTraceTokensMax));
}

class TraceWorkload final : public Workload {
 public:
  TraceWorkload(const WorkloadOptions& options, TraceReplay replay)
      : options_(options), replay_(std::move(replay)) {}

  std::optional<PlannedRequest> next() override {
    if (made_ == count()) return std::nullopt;
    const replay::TraceRequest& recorded = replay_.trace.requests[made_++];
    const double since_ms = recorded.timestamp_ms - replay_.trace.requests.front().timestamp_ms;
    return PlannedRequest{
        .scheduled_ns = static_cast<std::int64_t>(since_ms / replay_.speed * 1e6),
        .prompt = prompt(recorded),
        .output_tokens = scaled(static_cast<double>(recorded.output_tokens), replay_.scale)};
  }

  std::uint64_t count() const override {
    return std::min<std::uint64_t>(options_.count, replay_.trace.requests.size());
  }

 private:
  // One part per block. The last is as long as what is left of the input.
  LoadPrompt prompt(const replay::TraceRequest& recorded) const {
    const std::uint32_t block_tokens = scaled(replay_.block_tokens, replay_.scale);
    std::uint32_t left = scaled(static_cast<double>(recorded.input_tokens), replay_.scale);
    if (recorded.blocks == 0) {
      return {{.symbols = random_symbols(options_.seed, part_stream(made_), left)}};
    }
    LoadPrompt made;
    for (std::uint64_t i = 0; i < recorded.blocks && left > 0; ++i) {
      const TokenId block = replay_.trace.prompt(recorded)[i];
      const bool last = i + 1 == recorded.blocks;
      const std::uint32_t tokens = last ? left : std::min(left, block_tokens);
      made.push_back(
          {.symbols = random_symbols(options_.seed, prefix_stream(block.value()), tokens)});
      left -= tokens;
    }
    return made;
  }

  WorkloadOptions options_;
  TraceReplay replay_;
  std::uint64_t made_ = 0;
};

}  // namespace

Result<std::unique_ptr<Workload>> make_workload(const WorkloadOptions& options,
                                                TraceReplay replay) {
  const std::vector<replay::TraceRequest>& requests = replay.trace.requests;
  if (requests.empty()) {
    return Error{ErrorCode::kCorrupt, fmt::format("'{}' has no request", replay.trace.name)};
  }
  const auto back = std::adjacent_find(
      requests.begin(), requests.end(),
      [](const auto& one, const auto& next) { return next.timestamp_ms < one.timestamp_ms; });
  if (back != requests.end()) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("'{}': request {} is older than the one before it", replay.trace.name,
                             back - requests.begin() + 2)};
  }
  return std::unique_ptr<Workload>(new TraceWorkload(options, std::move(replay)));
}

}  // namespace pagoda::loadgen
