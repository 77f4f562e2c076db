#include "verify/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "kv/tiers/page_store.h"

namespace pagoda::verify {
namespace {

bool same_bits(const engine::TokenLogprob& a, const engine::TokenLogprob& b) {
  return a.token == b.token && a.rank == b.rank &&
         std::bit_cast<std::uint32_t>(a.logprob) == std::bit_cast<std::uint32_t>(b.logprob);
}

bool same_bits(const engine::TokenScore& a, const engine::TokenScore& b) {
  return same_bits(a.chosen, b.chosen) &&
         std::equal(a.top.begin(), a.top.end(), b.top.begin(), b.top.end(),
                    [](const auto& x, const auto& y) { return same_bits(x, y); });
}

std::string shown_at(const VerifiedOutput& answer, std::size_t position) {
  if (position >= answer.scores.size()) return "its end";
  const engine::TokenScore& score = answer.scores[position];
  std::string text =
      fmt::format("token {} ({:.9g})", score.chosen.token.value(), score.chosen.logprob);
  for (const engine::TokenLogprob& top : score.top) {
    text += fmt::format(", {} ({:.9g})", top.token.value(), top.logprob);
  }
  return text;
}

}  // namespace

void VerifySink::on_token(std::uint32_t answer, const engine::OutputToken& chosen) {
  const std::lock_guard lock(mutex_);
  engine::TokenScore score;
  if (chosen.score != nullptr) score = *chosen.score;
  score.chosen.token = chosen.token;
  answers_[answer].scores.push_back(std::move(score));
}

void VerifySink::on_finish(std::uint32_t answer, engine::FinishReason reason,
                           const engine::SequenceRecord& record, const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    answers_[answer].reason = reason;
    answers_[answer].record = record;
    answers_[answer].message = message;
    ++ended_count_;
  }
  ended_.notify_one();
}

bool VerifySink::wait(std::chrono::nanoseconds timeout) {
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, timeout, [&] { return ended_count_ == answers_.size(); });
}

std::vector<VerifiedOutput> VerifySink::take() {
  const std::lock_guard lock(mutex_);
  return std::move(answers_);
}

std::optional<OutputDifference> first_difference(std::span<const VerifiedOutput> got,
                                                 std::span<const VerifiedOutput> expected) {
  for (std::size_t question = 0; question < expected.size(); ++question) {
    const VerifiedOutput& mine = got[question];
    const VerifiedOutput& true_one = expected[question];
    const auto parting = std::mismatch(
        mine.scores.begin(), mine.scores.end(), true_one.scores.begin(), true_one.scores.end(),
        [](const auto& a, const auto& b) { return same_bits(a, b); });
    if (parting.first == mine.scores.end() && parting.second == true_one.scores.end()) continue;
    const auto position = static_cast<std::size_t>(parting.first - mine.scores.begin());
    return OutputDifference{question, position, shown_at(mine, position),
                            shown_at(true_one, position)};
  }
  return std::nullopt;
}

std::string digest_of(std::span<const VerifiedOutput> answers) {
  std::string bytes;
  const auto add = [&](const engine::TokenLogprob& each) {
    bytes += fmt::format("{}:{:08x}:{},", each.token.value(),
                         std::bit_cast<std::uint32_t>(each.logprob), each.rank);
  };
  for (const VerifiedOutput& answer : answers) {
    for (const engine::TokenScore& score : answer.scores) {
      add(score.chosen);
      for (const engine::TokenLogprob& top : score.top) add(top);
    }
    bytes += '\n';
  }
  std::string digest;
  for (const std::byte byte : kv::space_id(bytes).digest) {
    digest += fmt::format("{:02x}", static_cast<unsigned>(byte));
  }
  return digest;
}

}  // namespace pagoda::verify
