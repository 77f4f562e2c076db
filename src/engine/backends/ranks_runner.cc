#include "engine/backends/ranks_runner.h"

#include <cstring>

#include "engine/backends/launch_message.h"
#include "engine/backends/rank_worker.h"
#include "engine/nonfinite_rows.h"

namespace pagoda::engine {

RanksRunner::RanksRunner(const model::Config& config, const kernels::KernelSet& kernels,
                         std::uint32_t block_tokens, std::size_t rows_max, ranks::RankGroup& group,
                         ThreadPool& pool)
    : width_(config.width),
      block_tokens_(block_tokens),
      group_(group),
      sampler_(kernels, config.vocabulary, rows_max, pool) {}

void RanksRunner::launch(const Launch& launch) {
  sampler_.begin(launch);
  write_launch(launch, sampler_.rows(), block_tokens_, message_);
  // Where a rank is lost, collect() says so.
  const bool is_sent = group_.send_to_all(ranks::MessageKind::kLaunch, message_).ok();
  const bool has_result = is_sent && take_result(launch);
  sampler_.sample(launch, [&](std::span<const std::uint32_t>, std::span<float> logits) {
    return has_result && take_logits(logits);
  });
}

bool RanksRunner::take_result(const Launch& launch) {
  const auto received = group_.receive(0, ranks::MessageKind::kResult);
  if (!received.ok()) return false;
  std::span<const std::byte> body = received.value();
  std::size_t rows = 0;
  for (const LaunchRows& sequence : launch.rows) rows += sequence.rows;
  ResultHead head;
  hidden_.resize(launch.hidden_rows.size() * width_);
  if (body.size() >= sizeof head) std::memcpy(&head, body.data(), sizeof head);
  if (head.rows != rows || head.hidden_floats != hidden_.size() ||
      body.size() != sizeof head + rows + hidden_.size() * sizeof(float)) {
    return group_.fail_by("rank 0 sent a result of another launch");
  }
  bytes_exchanged_ = head.bytes_exchanged;
  const std::span flags(reinterpret_cast<const std::uint8_t*>(body.data()) + sizeof head, rows);
  nonfinite_.clear();
  std::size_t first = 0;
  for (const LaunchRows& sequence : launch.rows) {
    nonfinite_.push_back(first_nonfinite(flags.subspan(first, sequence.rows)));
    first += sequence.rows;
  }
  if (!hidden_.empty()) {
    std::memcpy(hidden_.data(), body.data() + sizeof head + rows, hidden_.size() * sizeof(float));
  }
  return true;
}

bool RanksRunner::take_logits(std::span<float> logits) {
  const auto received = group_.receive(0, ranks::MessageKind::kLogits);
  if (!received.ok()) return false;
  if (received.value().size() != logits.size_bytes()) {
    return group_.fail_by("rank 0 sent logits of another launch");
  }
  std::memcpy(logits.data(), received.value().data(), logits.size_bytes());
  return true;
}

std::optional<Error> RanksRunner::find_loss() {
  group_.check();
  return group_.failure();
}

Collected RanksRunner::collect() {
  const Error* const lost = group_.failure() ? &*group_.failure() : nullptr;
  return {sampler_.samples(), sampler_.scores(), lost, nonfinite_, hidden_};
}

}  // namespace pagoda::engine
