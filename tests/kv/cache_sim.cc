#include "kv/cache_sim.h"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "base/assert.h"
#include "base/random.h"
#include "kv/simulation.h"

namespace pagoda::kv {
namespace {

// The digest of tokens[0 .. last] from that of tokens[0 .. last - 1].
std::uint64_t digest(std::uint64_t before, TokenId token) {
  const std::uint64_t hash = (before ^ token.value()) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

// The operations so far, for when an invariant stops the program.
const std::string* history_of_now = nullptr;
void (*abort_handler_before)(int) = SIG_DFL;

extern "C" void print_history(int signal) {
  if (history_of_now != nullptr) {
    (void)!write(STDERR_FILENO, history_of_now->data(), history_of_now->size());
  }
  if (abort_handler_before != SIG_DFL) abort_handler_before(signal);  // libFuzzer keeps the input
}

}  // namespace

Simulation::Simulation(const SimOptions& options)
    : options_(options),
      ring_(options.event_ring > 0
                ? std::optional<EventRing>(std::in_place, options.event_ring, options.block_tokens)
                : std::nullopt),
      cache_(
          {.blocks = options.blocks,
           .block_tokens = options.block_tokens,
           .groups = options.groups,
           .policy = options.policy,
           .hash_seed = options.seed,
           .quota_blocks_private = options.quota_blocks,
           .quota_blocks_public = options.quota_blocks,
           .retain_blocks_max = options.retain_blocks,
           .eviction_records_max = options.eviction_records_max,
           .hash_blocks = options.hash_blocks || options.copies_out,
           .live_curve = options.live_curve,
           .events = ring_ ? &*ring_ : nullptr,
           .share = options.share,
           .on_deduplicate = [this](BlockId mine, BlockId existing) { compare(mine, existing); }}),
      memory_(options.blocks, options.block_tokens) {
  history_ = "seed " + text(options.seed) + "\n";
}

SimReport Simulation::run() {
  for (; !is_over() && !report_.failure; ++step_) {
    operate();
    verify();
  }
  while (!requests_.empty() && !report_.failure) {
    close(requests_.size() - 1);
    verify();
  }
  if (!report_.failure) finish();
  if (!report_.failure && ring_) finish_events();
  report_.blocks_evicted = cache_.stats().blocks_evicted;
  report_.blocks_deduplicated = cache_.stats().blocks_deduplicated;
  report_.history = history_ + "evicted " + text(cache_.stats().blocks_evicted) + "\n";
  return report_;
}

std::uint64_t Simulation::random(std::uint64_t bound) {
  const std::uint64_t index = draws_++;
  if (!options_.script) return random_bits(options_.seed, 0, index) % bound;
  return index < options_.script->size() ? (*options_.script)[index] % bound : 0;
}

void Simulation::operate() {
  if (random(4) == 0) report_copies();
  if (options_.copies_out && random(3) == 0) unpin_pages();
  if (options_.copies_out && random(3) == 0) pin_pages();
  if (ring_ && random(3) == 0) emit_snapshot();
  const std::uint64_t dice = random(32);
  if (dice == 0 && !options_.exact) return random(3) == 0 ? clear() : squeeze();
  if (options_.retain_blocks > 0 && random(2) == 0) pass_time();
  if (requests_.empty() || (dice < 8 && requests_.size() < 5)) return open();
  const std::size_t index = random(requests_.size());
  Request& request = requests_[index];
  if (dice < 16) {
    grow(index);
    if (dice < 12) return;  // something may come between
    if (index < requests_.size() && &requests_[index] == &request) grow(index);
    return;
  }
  if (dice < 22) return grow(index);
  if (dice < 25 && requests_.size() < 6) return fork(index);
  if (dice < 28 && options_.retain_blocks > 0) return retain(index);
  close(index);
}

// Prompts from a small alphabet and a few shared beginnings, so that they meet often.
std::vector<TokenId> Simulation::random_tokens(std::uint64_t length) {
  std::vector<TokenId> tokens;
  const std::uint64_t family = random(3);
  for (std::uint64_t i = 0; i < length; ++i) {
    const bool shared = i < 10 && random(12) != 0;
    const std::uint64_t value = shared ? family * 7 + i : random(3);
    tokens.push_back(TokenId(static_cast<std::uint32_t>(value)));
  }
  return tokens;
}

void Simulation::extend_plan(Request& request, const std::vector<TokenId>& more) {
  for (const TokenId token : more) {
    const std::uint64_t before =
        request.digests.empty() ? 0x1234 + request.client.space : request.digests.back();
    request.plan.push_back(token);
    request.digests.push_back(digest(before, token));
  }
}

void Simulation::open() {
  CacheOracle::LookupScope client = {.space = random(8) == 0 ? 1u : 0u, .tenant = 0};
  if (!options_.kv_policy.is_full() && random(2) == 0) client.space = kBoundedSpace;
  if (options_.tenants) client.tenant = options_.exact ? 1 + random(3) : random(3);
  CacheScope scope = scope_of(client.space, client.tenant);
  if (client.tenant != 0) scope.public_tokens = options_.exact ? 6 : random(3) * 5;
  const std::vector<TokenId> prompt = random_tokens(1 + random(24));
  const Match match = find(client, scope, prompt);
  if (report_.failure) return;
  admit(client, scope, match, prompt);
}

void Simulation::admit(const CacheOracle::LookupScope& client, const CacheScope& scope,
                       const Match& match, const std::vector<TokenId>& prompt) {
  log("open " + text(prompt.size()) + " tokens as " + text(client.tenant) + ", matched " +
      text(match.tokens));
  std::vector<BlockHash> names;
  if (options_.hash_blocks && random(2) == 0) {
    const Status named = hash_prompt(hasher_, adapter_of(client.space), salt_of(client.tenant),
                                     scope.public_tokens, prompt, options_.block_tokens, names);
    if (!named.ok()) fail(named.error().message);
  }
  const Asked asked = ask(cache_.blocks_needed(scope, match, match.tokens));
  const std::uint64_t needed_in_all = cache_.blocks_needed(scope, match, prompt.size());
  auto outcome = cache_.open(scope, match, prompt, names);
  if (const auto* const shortage = std::get_if<OutOfBlocks>(&outcome)) {
    return expect_refusal(*shortage, asked);
  }
  auto& opened = std::get<Opened>(outcome);
  expect_granted(asked);
  if (asked.needed + cache_.blocks_needed(opened.sequence, prompt.size()) != needed_in_all) {
    fail("opening and reserving do not add up");
  }
  report_.tokens_matched += match.tokens;
  report_.blocks_asked += (prompt.size() - 1) / options_.block_tokens;
  requests_.push_back(
      {.sequence = std::move(opened.sequence),
       .client = client,
       .public_tokens = scope.public_tokens / options_.block_tokens * options_.block_tokens,
       .tokens = {prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(match.tokens)},
       .plan = {},
       .digests = {},
       .copies = opened.copies});
  extend_plan(requests_.back(), prompt);
  if (random(2) == 0) land(requests_.back());
}

// One half of a step: room for what comes next, or that and its rows.
void Simulation::grow(std::size_t index) {
  Request& request = requests_[index];
  land(request);
  if (request.tokens_room > 0) return compute(request);
  const std::uint64_t done = request.tokens.size();
  if (done == request.plan.size()) extend_plan(request, random_tokens(1 + random(3)));
  const std::uint64_t count = 1 + random(request.plan.size() - done);
  log("reserve " + text(count) + " for " + text(index));
  const Asked asked = ask(cache_.blocks_needed(request.sequence, done + count));
  auto outcome = cache_.reserve(request.sequence, done + count);
  if (const auto* const shortage = std::get_if<OutOfBlocks>(&outcome)) {
    expect_refusal(*shortage, asked);
    return close(index);
  }
  expect_granted(asked);
  request.copies = std::get<std::vector<Copy>>(outcome);
  request.tokens_room = count;
  if (random(2) == 0) land(request);
}

// Rows are written as far as there is room; some of them may turn out to be wrong guesses and are
// not committed.
void Simulation::compute(Request& request) {
  const std::uint64_t done = request.tokens.size();
  for (std::uint64_t i = done; i < done + request.tokens_room; ++i) write_row(request, i);
  const std::uint64_t count = request.tokens_room - (random(4) == 0 ? random(2) : 0);
  log("commit " + text(count) + " of " + text(request.tokens_room));
  request.tokens_room = 0;
  const auto first = request.plan.begin() + static_cast<std::ptrdiff_t>(done);
  request.tokens.insert(request.tokens.end(), first, first + static_cast<std::ptrdiff_t>(count));
  cache_.commit(request.sequence, std::span(request.tokens).subspan(done));
  oracle_.commit(request.client, request.public_tokens, request.tokens);
}

void Simulation::fork(std::size_t index) {
  log("fork " + text(index));
  Request& request = requests_[index];
  land(request);
  request.tokens_room = 0;  // what it reserved is shared now, and is to be reserved again
  Request twin = {.sequence = cache_.fork(request.sequence),
                  .client = request.client,
                  .public_tokens = request.public_tokens,
                  .tokens = request.tokens,
                  .plan = {},
                  .digests = {},
                  .copies = {}};
  extend_plan(twin, request.tokens);
  extend_plan(twin, random_tokens(1 + random(6)));
  requests_.push_back(std::move(twin));
}

// Whatever the request was about to do is not done.
void Simulation::close(std::size_t index) {
  log("close " + text(index));
  Request& request = requests_[index];
  report_.cancelled_with_room += request.tokens_room > 0 ? 1 : 0;
  report_.cancelled_with_copies += request.copies.empty() ? 0 : 1;
  pinned_.insert(pinned_.end(), request.copies.begin(), request.copies.end());
  requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Simulation::pass_time() {
  cache_.advance_time(cache_.clock().time_ns + static_cast<std::int64_t>(random(6)));
}

// What blocks are retained is the cache's business (check() holds it to its budgets); that they
// stay readable and never keep anything from being granted is verified as ever.
void Simulation::retain(std::size_t index) {
  const RetainTerms terms = {
      .tokens = random(24),
      .until_ns = cache_.clock().time_ns + 1 + static_cast<std::int64_t>(random(30)),
      .priority = static_cast<std::uint32_t>(random(3))};
  const std::uint64_t available = cache_.blocks_available();
  const Result<Retained> outcome = cache_.retain(requests_[index].sequence, terms);
  log("retain " + text(terms.tokens) + " tokens of " + text(index) +
      (outcome.ok() ? "" : ": " + outcome.error().message));
  ++(outcome.ok() ? report_.retained : report_.retain_refused);
  if (cache_.blocks_available() != available) fail("retaining took blocks away");
}

void Simulation::clear() {
  log("clear");
  cache_.clear();
  if (cache_.blocks_available() != cache_.pool().blocks_free()) fail("not all was cleared");
}

void Simulation::write_row(const Request& request, std::uint64_t position) {
  if (options_.sabotage == Sabotage::kStaleBlock && random(40) == 0) return;
  for (std::uint32_t group = 0; group < options_.groups.size(); ++group) {
    BlockId block = request.sequence.table(group)[position / options_.block_tokens];
    if (options_.sabotage == Sabotage::kForeignBlock && random(40) == 0) {
      block = BlockId(static_cast<std::uint32_t>(random(options_.blocks)));
    }
    row(block, position % options_.block_tokens) = request.digests[position];
  }
}

// The request's copies are performed; their pins end later, whatever happens meanwhile.
void Simulation::land(Request& request) {
  for (const Copy& copy : request.copies) {
    const bool torn = options_.sabotage == Sabotage::kTornCopy;
    const std::uint32_t shift = options_.sabotage == Sabotage::kShiftedRows ? 1 : 0;
    for (std::uint32_t t = 0; t < (torn ? copy.tokens / 2 : copy.tokens); ++t) {
      row(copy.to, t) = row(copy.from, (t + shift) % options_.block_tokens);
    }
    pinned_.push_back(copy);
  }
  request.copies.clear();
  if (random(2) == 0) report_copies();
}

void Simulation::report_copies() {
  const bool leak = options_.sabotage == Sabotage::kLeakedPin && pinned_.size() > 1;
  for (const Copy& copy : std::span(pinned_).subspan(leak ? 1 : 0)) cache_.copied(copy);
  pinned_.clear();
  if (options_.sabotage != Sabotage::kEarlyPin) return;
  for (Request& request : requests_) {
    for (const Copy& copy : std::exchange(request.copies, {})) {
      cache_.copied(copy);
      row(copy.from, 0) = SimMemory::kNothing;  // whoever takes the block next
    }
  }
}

// All that is available can be had at once, and no more.
void Simulation::squeeze() {
  log("squeeze");
  const CacheScope scope = scope_of(0, 0);
  auto outcome = cache_.open(scope, {}, {});
  Sequence& sequence = std::get<Opened>(outcome).sequence;
  const std::uint64_t blocks = cache_.blocks_available() / options_.groups.size();
  const auto more = cache_.reserve(sequence, (blocks + 1) * options_.block_tokens);
  if (std::holds_alternative<std::vector<Copy>>(more)) fail("granted more than there is");
  const auto all = cache_.reserve(sequence, blocks * options_.block_tokens);
  if (std::holds_alternative<OutOfBlocks>(all)) fail("refused what there is room for");
}

// Nothing refers to anything any more.
void Simulation::finish() {
  while (!pages_out_.empty() && !report_.failure) unpin_pages();
  report_copies();
  if (!options_.share && cache_.pool().blocks_idle() != 0) fail("a block stayed without sharing");
  cache_.clear();
  cache_.check();
  if (cache_.pool().blocks_free() != options_.blocks) fail("a reference leaked");
  if (cache_.tree().nodes() > 3) fail("a node without blocks was left");
  if (cache_.salts().salts() != 0) fail("a salt was left");
}

SimReport simulate(const SimOptions& options) {
  static const bool kReady = [] {
    abort_handler_before = std::signal(SIGABRT, print_history);
    return abort_handler_before != SIG_ERR;
  }();
  ASSERT(kReady, "SIGABRT can be handled");
  Simulation simulation(options);
  history_of_now = &simulation.history();
  SimReport report = simulation.run();
  history_of_now = nullptr;
  return report;
}

}  // namespace pagoda::kv
