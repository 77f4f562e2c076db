// Pages out to a tier and back.
#include <utility>

#include "kv/simulation.h"

namespace pagoda::kv {

// False: refused.
bool Simulation::load(const CacheOracle::Asker& asker, Domain& domain, const Match& match,
                      const std::vector<TokenId>& prompt) {
  log("load " + text(match.nodes_in_tiers.size()) + " blocks");
  const Asked asked = ask(0);
  auto outcome = cache_.begin_load(match);
  if (const auto* const shortage = std::get_if<OutOfBlocks>(&outcome)) {
    expect_refusal(*shortage, asked);
    return false;
  }
  waiting_.push_back(std::make_unique<Waiting>(
      Waiting{.asker = asker,
              .domain = std::move(domain),
              .prompt = prompt,
              .load = std::move(std::get<Load>(outcome)),
              .tokens_promised = match.nodes_in_tiers.size() * options_.block_tokens}));
  for (const Move& move : waiting_.back()->load.moves) {
    moves_.push_back({move, waiting_.back().get()});
  }
  return true;
}

void Simulation::offload() {
  const double free_share = random(2) == 0 ? 0.5 : 1.0;
  const auto moves = cache_.offload({.free_share_wanted = free_share, .moves_running_max = 6});
  log("offload " + text(moves.size()) + " pages");
  for (const Move& move : moves) moves_.push_back({move, nullptr});
}

void Simulation::cancel_waiting() {
  log("cancel a load");
  waiting_[random(waiting_.size())]->cancelled = true;
}

// Some moves end, in any order, a few without success; requests that waited for the last of
// theirs open what is there now.
void Simulation::end_moves() {
  for (std::size_t i = moves_.size(); i-- > 0;) {
    if (random(2) != 0) continue;
    const RunningMove running = moves_[i];
    moves_.erase(moves_.begin() + static_cast<std::ptrdiff_t>(i));
    const bool in = running.request != nullptr;
    const bool done = random(8) != 0;
    const bool torn = options_.sabotage == Sabotage::kTornMove && in;
    if (done) memory_.carry(running.move, options_.block_tokens - (torn ? 1 : 0));
    log(std::string(done ? "moved" : "lost") + (in ? " in " : " out ") +
        text(running.move.block.value()));
    if (done) ++(in ? report_.pages_in : report_.pages_out);
    if (in && !done) running.request->failed = true;
    cache_.moved({running.move, done}, in ? &running.request->load : nullptr);
  }
  for (std::size_t i = waiting_.size(); i-- > 0 && !report_.failure;) {
    if (waiting_[i]->load.moves_running > 0) continue;
    const std::unique_ptr<Waiting> ready = std::move(waiting_[i]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    if (!ready->cancelled) open_loaded(*ready);
    cache_.finish_load(ready->load);
  }
}

void Simulation::open_loaded(const Waiting& ready) {
  const Match match = find(ready.asker, ready.domain, ready.prompt);
  if (report_.failure) return;
  // With tenants the search may have been led to another region's block meanwhile (README: I2).
  if (!ready.failed && !options_.tenants && match.tokens < ready.tokens_promised) {
    return fail("a load did not bring what the match promised");
  }
  report_.loads_that_helped += match.tokens >= ready.tokens_promised ? 1 : 0;
  admit(ready.asker, ready.domain, match, ready.prompt);
}

}  // namespace pagoda::kv
