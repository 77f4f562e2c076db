#include "loadgen/agents.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "base/random.h"
#include "loadgen/random_streams.h"

namespace pagoda::loadgen {
namespace {

constexpr double kRequestTimeoutS = 600;

class AgentsWorkload final : public Workload {
 public:
  explicit AgentsWorkload(const AgentsOptions& options)
      : options_(options), turns_asked_(options.agents(), 0) {}

  std::optional<PlannedRequest> next() override {
    if (begun_ == options_.agents()) return std::nullopt;
    const std::uint32_t agent = begun_++;
    PlannedRequest planned = {.prompt = {}, .user = agent};
    planned.session = fmt::format("agent-{}-{}", options_.seed, agent);
    const std::uint32_t tokens = agent == 0 ? options_.main_tokens : options_.sub_tokens;
    planned.prompt.push_back(
        {.symbols = random_symbols(options_.seed, prefix_stream(agent), tokens),
         .is_system = true});
    add_turn(planned);
    return planned;
  }

  std::optional<PlannedRequest> follow(const PlannedRequest& asked, const std::string& answer,
                                       std::int64_t now_ns) override {
    const std::uint32_t turn = turns_asked_[asked.user];
    if (turn == options_.turns) return std::nullopt;
    const double unit = random_unit(options_.seed, kThinkStream, number(asked.user, turn));
    const double pause_s = -std::log1p(-unit) * options_.pause_s;
    PlannedRequest planned = asked;
    planned.scheduled_ns = now_ns + static_cast<std::int64_t>(pause_s * 1e9);
    planned.prompt.pop_back();  // the note of the last turn
    planned.prompt.push_back(
        {.symbols = {}, .text = answer.empty() ? " " : answer, .from_server = true});
    add_turn(planned);
    return planned;
  }

  std::uint64_t count() const override { return std::uint64_t{options_.agents()} * options_.turns; }

 private:
  std::uint64_t number(std::uint32_t agent, std::uint32_t turn) const {
    return std::uint64_t{agent} * options_.turns + turn;
  }

  // A tool's result, and a note behind it.
  void add_turn(PlannedRequest& planned) {
    planned.turn = ++turns_asked_[planned.user];
    const std::uint64_t index = 2 * number(planned.user, planned.turn - 1);
    planned.prompt.push_back(
        {.symbols = random_symbols(options_.seed, part_stream(index), options_.result_tokens)});
    planned.prompt.push_back(
        {.symbols = random_symbols(options_.seed, part_stream(index + 1), options_.note_tokens)});
    planned.output_tokens = options_.output_tokens;
  }

  AgentsOptions options_;
  std::uint32_t begun_ = 0;
  std::vector<std::uint32_t> turns_asked_;  // [agent]
};

// The sum of a counter of the server's metrics over its labels; nothing where it has none.
std::optional<std::uint64_t> count_evictions(const Target& target) {
  constexpr std::string_view kName = "pagoda:kv_blocks_evicted_total{";
  const Result<WholeReply> reply = fetch(target, get_request(target, "/metrics"), 10);
  if (!reply.ok() || reply.value().status != 200) return std::nullopt;
  const std::string& body = reply.value().body;
  std::optional<std::uint64_t> sum;
  for (std::size_t at = body.find(kName); at != std::string::npos; at = body.find(kName, at + 1)) {
    const std::size_t value = body.find("} ", at);
    if (value == std::string::npos) break;
    sum = sum.value_or(0) + std::strtoull(body.c_str() + value + 2, nullptr, 10);
  }
  return sum;
}

}  // namespace

std::unique_ptr<Workload> make_agents(const AgentsOptions& options) {
  return std::make_unique<AgentsWorkload>(options);
}

std::vector<float> AgentsMeasurement::ttft_from(std::uint32_t first) const {
  std::vector<float> times;
  for (const Outcome& outcome : load.outcomes) {
    if (!outcome.answered() || outcome.turn < first) continue;
    times.push_back(static_cast<float>(seconds_between(outcome.sent_ns, outcome.first_ns)));
  }
  return times;
}

std::uint64_t AgentsMeasurement::tokens_computed() const {
  std::uint64_t tokens = 0;
  for (const Outcome& outcome : load.outcomes) {
    tokens += outcome.prompt_tokens.value_or(0) - outcome.cached_tokens.value_or(0);
  }
  return tokens;
}

Result<AgentsMeasurement> measure_agents(const AgentsOptions& options, const Target& target,
                                         const std::string& model, bool with_sessions,
                                         const LoadEvents& events) {
  const CompletionForm form = {.chat = true,
                               .stream = true,
                               .ignore_eos = true,
                               .temperature = 0,
                               .prompts = PromptForm::kMessages,
                               .model = model,
                               .sends_sessions = with_sessions};
  const std::unique_ptr<Workload> workload = make_agents(options);
  const std::optional<std::uint64_t> before = count_evictions(target);
  const SteadyClock clock;
  AgentsMeasurement measured;
  ASSIGN_OR_RETURN(measured.load, run_load(target, form, *workload, {.timeout_s = kRequestTimeoutS},
                                           events, clock));
  const std::optional<std::uint64_t> after = count_evictions(target);
  measured.counts_evictions = before && after;
  if (measured.counts_evictions) measured.blocks_evicted = *after - *before;
  return measured;
}

}  // namespace pagoda::loadgen
