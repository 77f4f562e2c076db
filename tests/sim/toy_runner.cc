#include "sim/toy_runner.h"

#include <algorithm>

#include "base/assert.h"
#include "engine/open_request.h"

namespace pagoda::sim {
namespace {
constexpr Digest kGarbage = 0xDEADBEEFDEADBEEFu;
}

ToyRunner::ToyRunner(const ToyModel& model, std::uint32_t blocks, std::uint32_t block_tokens,
                     std::uint32_t launches_ahead)
    : model_(model),
      block_tokens_(block_tokens),
      launches_ahead_(launches_ahead),
      pages_(std::size_t{blocks} * block_tokens, kGarbage) {}

void ToyRunner::launch(const engine::Launch& launch) {
  Pending pending;
  pending.copies.assign(launch.copies.begin(), launch.copies.end());
  pending.samples.assign(launch.samples.begin(), launch.samples.end());
  pending.scores.assign(launch.scores.begin(), launch.scores.end());
  for (const engine::LaunchSample& job : launch.samples) {
    pending.drafts.emplace_back(job.drafts.begin(), job.drafts.end());
  }
  for (const engine::LaunchRows& rows : launch.rows) {
    Rows taken = {.handle = rows.handle,
                  .rows = rows.rows,
                  .first_position = rows.first_position,
                  .tokens = {rows.tokens.begin(), rows.tokens.end()},
                  .tables = {},
                  .policy = rows.policy,
                  .tokens_dropped = {rows.selected.tokens_dropped.begin(),
                                     rows.selected.tokens_dropped.end()},
                  .counters = {rows.selected.counters.begin(), rows.selected.counters.end()},
                  .observed_begin = rows.selected.observed_begin,
                  .observed_end = rows.selected.observed_end};
    taken.tokens.insert(taken.tokens.end(), rows.drafts.begin(), rows.drafts.end());
    taken.tokens_dropped.resize(rows.tables.size(), 0);
    for (std::uint32_t group = 0; group < rows.tables.size(); ++group) {
      const std::uint64_t slots = rows.first_position + rows.rows - taken.tokens_dropped[group];
      const kv::memory::BlockTable table = rows.tables[group];
      taken.tables.emplace_back(table, table + (slots + block_tokens_ - 1) / block_tokens_);
    }
    pending.rows.push_back(std::move(taken));
  }
  pending_.push_back(std::move(pending));
}

engine::Collected ToyRunner::collect() {
  ASSERT(!pending_.empty(), "a launch runs");
  Pending pending = std::move(pending_.front());
  pending_.pop_front();
  if (sabotage_ != Sabotage::kNone && !sabotaged_) break_something(pending);
  for (const kv::Copy& instruction : pending.copies) copy(instruction);
  std::vector<Digest> seen;  // [row]
  for (Rows& rows : pending.rows) compute(rows, seen);
  samples_.clear();
  for (std::size_t i = 0; i < pending.samples.size(); ++i) {
    sample(pending.samples[i], pending.drafts[i], seen);
  }
  scores_.assign(pending.scores.size(), {});
  for (std::size_t i = 0; i < scores_.size(); ++i)
    scores_[i].chosen.token = pending.scores[i].token;
  return {samples_, scores_};
}

TokenId ToyRunner::choose(const engine::LaunchSample& job, Digest seen) const {
  return model_.choose(seen, static_cast<const engine::OpenSequence*>(job.handle)->index);
}

TokenId ToyDraftRunner::choose(const engine::LaunchSample& /*job*/, Digest seen) const {
  constexpr std::uint64_t kOneWrongIn = 6;
  const TokenId token = model().choose(seen, 0);
  if (mix(seen, 1) % kOneWrongIn != 0) return token;
  return TokenId((token.value() + 1) % model().vocabulary);
}

// Behind the first token that is not its draft token there are errors, which nobody may see.
void ToyRunner::sample(const engine::LaunchSample& job, std::span<const TokenId> drafts,
                       std::span<const Digest> seen) {
  bool goes_on = true;
  for (std::size_t i = 0; i <= drafts.size(); ++i) {
    if (!goes_on) {
      samples_.emplace_back(Error{ErrorCode::kCorrupt, "a row behind the first other token"});
      continue;
    }
    const TokenId token = choose(job, seen[job.row + i]);
    last_chosen_[job.handle] = token;
    samples_.emplace_back(engine::SampledToken{.token = token, .score = {}});
    goes_on = i < drafts.size() && token == drafts[i];
  }
}

void ToyRunner::copy(const kv::Copy& copy) {
  for (std::uint32_t token = 0; token < copy.tokens; ++token) {
    at(copy.to, token) = at(copy.from, token);
  }
}

void ToyRunner::compute(Rows& rows, std::vector<Digest>& seen) {
  if (rows.tokens.size() < rows.rows) rows.tokens.push_back(last_chosen_.at(rows.handle));
  for (std::uint32_t i = 0; i < rows.rows; ++i) {
    const std::uint64_t position = rows.first_position + i;
    const auto slot_of = [&](std::uint32_t group) { return position - rows.tokens_dropped[group]; };
    for (std::uint32_t group = 0; group < rows.tables.size(); ++group) {
      const std::uint64_t slot = slot_of(group);
      const Digest before =
          slot == 0 ? ToyModel::start(rows.policy) : row_at(rows, group, slot - 1);
      row_at(rows, group, slot) = ToyModel::row(before, rows.tokens[i], rows.tokens_dropped[group]);
    }
    seen.push_back(model_.look(
        position, rows.policy, slot_of,
        [&](std::uint32_t group, std::uint64_t slot) { return row_at(rows, group, slot); }));
    observe(rows, position);
  }
  rows_computed_ += rows.rows;
}

void ToyRunner::observe(const Rows& rows, std::uint64_t position) {
  if (position < rows.observed_begin || position >= rows.observed_end) return;
  for (std::uint32_t group = 0; group < rows.counters.size(); ++group) {
    if (rows.counters[group] == nullptr) continue;
    const std::uint64_t own = position - rows.tokens_dropped[group];
    for (std::uint64_t slot = 0; slot <= own; ++slot) {
      rows.counters[group][slot] +=
          ToyModel::attention(row_at(rows, group, own), row_at(rows, group, slot));
    }
  }
}

std::vector<bool> ToyRunner::blocks_touched() const {
  std::vector<bool> touched(pages_.size() / block_tokens_);
  for (const Pending& pending : pending_) {
    for (const kv::Copy& copy : pending.copies) touched[copy.from.value()] = true;
    for (const Rows& rows : pending.rows) {
      for (std::size_t group = 0; group < rows.tables.size(); ++group) {
        const std::vector<kv::BlockId>& table = rows.tables[group];
        const kv::memory::AttentionSpec spec =
            model_.groups[group].window == 0 ? rows.policy : model_.groups[group];
        const kv::memory::BlocksKept kept(spec, rows.first_position, block_tokens_);
        for (std::size_t at = 0; at < table.size(); ++at) {
          if (kept.contains(at)) touched[table[at].value()] = true;
        }
      }
    }
  }
  return touched;
}

void ToyRunner::spoil(kv::BlockId block) {
  for (std::uint32_t token = 0; token < block_tokens_; ++token) at(block, token) = kGarbage;
}

void ToyRunner::break_something(Pending& pending) {
  switch (sabotage_) {
    case Sabotage::kNone:
      return;
    case Sabotage::kStaleBlock:
      if (pending.copies.empty()) return;
      pending.copies.pop_back();
      break;
    case Sabotage::kForeignBlock: {
      // Two sequences have read something: one gets the other's first block.
      Rows* first = nullptr;
      for (Rows& rows : pending.rows) {
        const bool reads =
            rows.first_position > 0 && model_.groups.front().window == 0 && rows.policy.window == 0;
        if (!reads) continue;
        if (first != nullptr && first->tables[0][0] != rows.tables[0][0]) {
          rows.tables[0][0] = first->tables[0][0];
          sabotaged_ = true;
          return;
        }
        first = &rows;
      }
      return;
    }
    case Sabotage::kShiftedRows: {
      const auto wide = std::find_if(pending.copies.begin(), pending.copies.end(),
                                     [](const kv::Copy& copy) { return copy.tokens > 1; });
      if (wide == pending.copies.end()) return;
      copy(*wide);
      for (std::uint32_t token = wide->tokens - 1; token > 0; --token) {
        at(wide->to, token) = at(wide->to, token - 1);
      }
      pending.copies.erase(wide);
      break;
    }
    case Sabotage::kFreedTooEarly:
      for (const Rows& rows : pending.rows) {
        if (rows.first_position == 0 || model_.groups.front().window != 0) continue;
        if (rows.policy.window != 0) continue;
        spoil(rows.tables[0][0]);
        sabotaged_ = true;
        return;
      }
      return;
  }
  sabotaged_ = true;
}

}  // namespace pagoda::sim
