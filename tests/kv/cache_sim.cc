#include "kv/cache_sim.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/assert.h"
#include "base/random.h"
#include "kv/cache_oracle.h"

namespace pagoda::kv {
namespace {

constexpr std::uint64_t kNothing = 0xDEADull;

// The digest of tokens[0 .. last] from that of tokens[0 .. last - 1].
std::uint64_t digest(std::uint64_t before, TokenId token) {
  const std::uint64_t hash = (before ^ token.value()) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

struct Request {
  Sequence sequence;
  CacheOracle::Asker asker;
  std::uint64_t public_tokens;         // whole blocks
  std::vector<TokenId> tokens;         // computed
  std::vector<TokenId> plan;           // what it will compute
  std::vector<std::uint64_t> digests;  // of plan
  std::uint64_t tokens_room = 0;       // reserved since the last commit, to be written
  std::vector<Copy> copies;            // not landed yet
};

// The operations so far, for when an invariant stops the program.
const std::string* history_of_now = nullptr;
void (*abort_handler_before)(int) = SIG_DFL;

extern "C" void print_history(int signal) {
  if (history_of_now != nullptr) {
    (void)!write(STDERR_FILENO, history_of_now->data(), history_of_now->size());
  }
  if (abort_handler_before != SIG_DFL) abort_handler_before(signal);  // libFuzzer keeps the input
}

class Simulation {
 public:
  explicit Simulation(const SimOptions& options)
      : options_(options),
        cache_({.blocks = options.blocks,
                .block_tokens = options.block_tokens,
                .slices = options.slices,
                .policy = options.policy,
                .hash_seed = options.seed,
                .on_join = [this](BlockId mine, BlockId existing) { compare(mine, existing); }}),
        rows_(std::size_t{options.blocks} * options.block_tokens, kNothing) {
    history_ = "seed " + std::to_string(options.seed) + "\n";
    history_of_now = &history_;
  }
  ~Simulation() { history_of_now = nullptr; }

  SimReport run() {
    for (; !is_over() && !report_.failure; ++step_) {
      operate();
      verify();
    }
    while (!requests_.empty() && !report_.failure) {
      close(requests_.size() - 1);
      verify();
    }
    if (!report_.failure) {
      report_copies();
      cache_.clear();
      cache_.check();
      if (cache_.pool().blocks_free() != options_.blocks) fail("a reference leaked");
      if (cache_.tree().nodes() > 2) fail("a node without blocks was left");
    }
    report_.blocks_evicted = cache_.blocks_evicted();
    report_.blocks_joined = cache_.blocks_joined();
    return report_;
  }

 private:
  bool is_over() const {
    return options_.script ? draws_ >= options_.script->size() : step_ >= options_.operations;
  }

  std::uint64_t random(std::uint64_t bound) {
    const std::uint64_t index = draws_++;
    if (!options_.script) return random_bits(options_.seed, 0, index) % bound;
    return index < options_.script->size() ? (*options_.script)[index] % bound : 0;
  }

  void operate() {
    if (random(4) == 0) report_copies();
    const std::uint64_t dice = random(32);
    if (dice == 0 && !options_.exact) return clear();
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
    close(index);
  }

  // Prompts from a small alphabet and a few shared beginnings, so that they meet often.
  std::vector<TokenId> random_tokens(std::uint64_t length) {
    std::vector<TokenId> tokens;
    const std::uint64_t family = random(3);
    for (std::uint64_t i = 0; i < length; ++i) {
      const bool shared = i < 10 && random(12) != 0;
      const std::uint64_t value = shared ? family * 7 + i : random(3);
      tokens.push_back(TokenId(static_cast<std::uint32_t>(value)));
    }
    return tokens;
  }

  void extend_plan(Request& request, const std::vector<TokenId>& more) {
    for (const TokenId token : more) {
      const std::uint64_t before =
          request.digests.empty() ? 0x1234 + request.asker.space : request.digests.back();
      request.plan.push_back(token);
      request.digests.push_back(digest(before, token));
    }
  }

  Domain domain_of(std::uint64_t space, std::uint64_t tenant) {
    return cache_
        .domain("space" + std::to_string(space),
                tenant == 0 ? "" : "tenant" + std::to_string(tenant))
        .value();
  }

  void open() {
    CacheOracle::Asker asker = {.space = random(8) == 0 ? 1u : 0u, .tenant = 0};
    if (options_.tenants) asker.tenant = options_.exact ? 1 + random(3) : random(3);
    Domain domain = domain_of(asker.space, asker.tenant);
    if (asker.tenant != 0) domain.public_tokens = options_.exact ? 6 : random(3) * 5;
    const std::vector<TokenId> prompt = random_tokens(1 + random(24));
    const Match match = find(asker, domain, prompt);
    log("open " + std::to_string(prompt.size()) + " tokens as " + std::to_string(asker.tenant) +
        ", matched " + std::to_string(match.tokens));
    if (report_.failure) return;
    const std::uint64_t evicted = cache_.blocks_evicted();
    auto outcome = cache_.open(domain, match, prompt);
    if (const auto* const shortage = std::get_if<OutOfBlocks>(&outcome)) {
      return expect_refusal(*shortage, evicted);
    }
    auto& opened = std::get<Opened>(outcome);
    report_.tokens_matched += match.tokens;
    requests_.push_back(
        {.sequence = std::move(opened.sequence),
         .asker = asker,
         .public_tokens = domain.public_tokens / options_.block_tokens * options_.block_tokens,
         .tokens = {prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(match.tokens)},
         .plan = {},
         .digests = {},
         .copies = opened.copies});
    extend_plan(requests_.back(), prompt);
    if (random(2) == 0) land(requests_.back());
  }

  Match find(const CacheOracle::Asker& asker, const Domain& domain,
             const std::vector<TokenId>& prompt) {
    const bool swapped = options_.sabotage == Sabotage::kForeignRegion;
    Match match = swapped ? cache_.match(domain_of(asker.space, 1 + asker.tenant % 3), prompt)
                          : cache_.match(domain, prompt);
    const std::uint64_t longest = oracle_.longest(asker, prompt);
    if (match.tokens > longest) {
      fail("matched " + std::to_string(match.tokens) + " of the " + std::to_string(longest) +
           " tokens that the asker may see");
    }
    if (options_.exact && match.tokens < longest) {
      fail("matched " + std::to_string(match.tokens) + " where " + std::to_string(longest) +
           " are cached");
    }
    if (swapped) match = cache_.match(domain, prompt);  // it was not noticed this time
    return match;
  }

  // Running out is told exactly, and nothing was evicted for it.
  void expect_refusal(const OutOfBlocks& shortage, std::uint64_t evicted) {
    ++report_.refusals;
    if (options_.exact) return fail("the pool is too small for an exact run");
    if (shortage.blocks_needed <= shortage.blocks_available) fail("refused what there is room for");
    if (cache_.blocks_evicted() != evicted) fail("evicted for nothing");
  }

  // One half of a step: room for what comes next, or that and its rows.
  void grow(std::size_t index) {
    Request& request = requests_[index];
    land(request);
    if (request.tokens_room > 0) return compute(request);
    const std::uint64_t done = request.tokens.size();
    if (done == request.plan.size()) extend_plan(request, random_tokens(1 + random(3)));
    const std::uint64_t count = 1 + random(request.plan.size() - done);
    log("reserve " + std::to_string(count) + " for " + std::to_string(index));
    const std::uint64_t evicted = cache_.blocks_evicted();
    auto outcome = cache_.reserve(request.sequence, done + count);
    if (const auto* const shortage = std::get_if<OutOfBlocks>(&outcome)) {
      expect_refusal(*shortage, evicted);
      return close(index);
    }
    request.copies = std::get<std::vector<Copy>>(outcome);
    request.tokens_room = count;
    if (random(2) == 0) land(request);
  }

  // Rows are written as far as there is room; some of them may turn out to be wrong guesses and are
  // not committed.
  void compute(Request& request) {
    const std::uint64_t done = request.tokens.size();
    for (std::uint64_t i = done; i < done + request.tokens_room; ++i) write_row(request, i);
    const std::uint64_t count = request.tokens_room - (random(4) == 0 ? random(2) : 0);
    log("commit " + std::to_string(count) + " of " + std::to_string(request.tokens_room));
    request.tokens_room = 0;
    const auto first = request.plan.begin() + static_cast<std::ptrdiff_t>(done);
    request.tokens.insert(request.tokens.end(), first, first + static_cast<std::ptrdiff_t>(count));
    cache_.commit(request.sequence, std::span(request.tokens).subspan(done));
    oracle_.commit(request.asker, request.public_tokens, request.tokens);
  }

  void fork(std::size_t index) {
    log("fork " + std::to_string(index));
    Request& request = requests_[index];
    land(request);
    request.tokens_room = 0;  // what it reserved is shared now, and is to be reserved again
    Request twin = {.sequence = cache_.fork(request.sequence),
                    .asker = request.asker,
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
  void close(std::size_t index) {
    log("close " + std::to_string(index));
    Request& request = requests_[index];
    report_.cancelled_with_room += request.tokens_room > 0 ? 1 : 0;
    report_.cancelled_with_copies += request.copies.empty() ? 0 : 1;
    pinned_.insert(pinned_.end(), request.copies.begin(), request.copies.end());
    requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  void clear() {
    log("clear");
    cache_.clear();
    const bool pins = !pinned_.empty() ||
                      std::any_of(requests_.begin(), requests_.end(),
                                  [](const Request& request) { return !request.copies.empty(); });
    if (!pins && cache_.pool().blocks_idle() != 0) fail("an idle block was not cleared");
  }

  std::uint64_t& row(BlockId block, std::uint64_t token) {
    return rows_[std::size_t{block.value()} * options_.block_tokens + token];
  }

  void write_row(const Request& request, std::uint64_t position) {
    if (options_.sabotage == Sabotage::kStaleBlock && random(40) == 0) return;
    for (std::uint32_t slice = 0; slice < options_.slices.size(); ++slice) {
      BlockId block = request.sequence.table(slice)[position / options_.block_tokens];
      if (options_.sabotage == Sabotage::kForeignBlock && random(40) == 0) {
        block = BlockId(static_cast<std::uint32_t>(random(options_.blocks)));
      }
      row(block, position % options_.block_tokens) = request.digests[position];
    }
  }

  // The request's copies are performed; their pins end later, whatever happens meanwhile.
  void land(Request& request) {
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

  void report_copies() {
    const bool leak = options_.sabotage == Sabotage::kLeakedPin && pinned_.size() > 1;
    for (const Copy& copy : std::span(pinned_).subspan(leak ? 1 : 0)) cache_.copied(copy);
    pinned_.clear();
    if (options_.sabotage != Sabotage::kEarlyPin) return;
    for (Request& request : requests_) {
      for (const Copy& copy : std::exchange(request.copies, {})) {
        cache_.copied(copy);
        row(copy.from, 0) = kNothing;  // whoever takes the block next
      }
    }
  }

  // Two blocks that hold the same tokens must hold the same rows.
  void compare(BlockId mine, BlockId existing) {
    for (std::uint32_t t = 0; t < options_.block_tokens; ++t) {
      if (row(mine, t) != row(existing, t)) fail("a joined block differs from its twin");
    }
  }

  void verify() {
    if (report_.failure) return;
    cache_.check();
    for (const Request& request : requests_) {
      if (request.sequence.tokens_computed() != request.tokens.size()) {
        return fail("a sequence lost count of its tokens");
      }
      for (std::uint32_t slice = 0; slice < options_.slices.size(); ++slice) {
        verify_rows(request, slice);
      }
    }
  }

  void verify_rows(const Request& request, std::uint32_t slice) {
    const std::uint64_t tokens = request.tokens.size();
    const std::uint32_t window = options_.slices[slice].window;
    const std::uint64_t first = window != 0 && tokens + 1 > window ? tokens + 1 - window : 0;
    const std::uint64_t tail = tokens / options_.block_tokens * options_.block_tokens;
    for (std::uint64_t p = first; p < tokens; ++p) {
      // While a copy is under way its source has the rows.
      BlockId block = request.sequence.table(slice)[p / options_.block_tokens];
      if (p >= tail && !request.copies.empty()) block = request.copies[slice].from;
      if (row(block, p % options_.block_tokens) != request.digests[p]) {
        return fail("row " + std::to_string(p) + " of slice " + std::to_string(slice) +
                    " is not what its tokens make it");
      }
    }
  }

  void log(const std::string& line) { history_ += std::to_string(step_) + ": " + line + "\n"; }
  void fail(const std::string& what) {
    if (!report_.failure) {
      report_.failure = "step " + std::to_string(step_) + ": " + what + "\n" + history_;
    }
  }

  SimOptions options_;
  Cache cache_;
  CacheOracle oracle_;
  std::vector<std::uint64_t> rows_;  // [block, token]
  std::vector<Request> requests_;
  std::vector<Copy> pinned_;  // landed or cancelled, not reported yet
  std::uint64_t draws_ = 0;
  int step_ = 0;
  std::string history_;
  SimReport report_;
};

}  // namespace

SimReport simulate(const SimOptions& options) {
  static const bool kReady = [] {
    abort_handler_before = std::signal(SIGABRT, print_history);
    return abort_handler_before != SIG_ERR;
  }();
  ASSERT(kReady, "SIGABRT can be handled");
  return Simulation(options).run();
}

}  // namespace pagoda::kv
