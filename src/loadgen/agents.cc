#include "loadgen/agents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/random.h"
#include "loadgen/random_streams.h"

namespace pagoda::loadgen {
namespace {

constexpr double kRequestTimeoutS = 600;

class AgentsWorkload final : public Workload {
 public:
  explicit AgentsWorkload(const AgentsOptions& options)
      : options_(options), turns_asked_(options.agents(), 0), waiting_(options.agents()) {}

  std::optional<PlannedRequest> next() override {
    if (begun_ == (options_.one_by_one ? 1 : options_.agents())) return std::nullopt;
    ++begun_;
    return options_.one_by_one ? next_in_order(0) : begin(begun_ - 1);
  }

  std::optional<PlannedRequest> follow(const PlannedRequest& asked, const std::string& answer,
                                       std::int64_t now_ns) override {
    std::optional<PlannedRequest> planned = go_on(asked, answer, now_ns);
    if (!options_.one_by_one) return planned;
    waiting_[asked.user] = std::move(planned);
    return next_in_order(now_ns);
  }

  std::uint64_t count() const override { return std::uint64_t{options_.agents()} * options_.turns; }

 private:
  // The request of an agent that is drawn from those with turns left.
  std::optional<PlannedRequest> next_in_order(std::int64_t now_ns) {
    std::vector<std::uint32_t> left;
    for (std::uint32_t agent = 0; agent < options_.agents(); ++agent) {
      if (turns_asked_[agent] == 0 || waiting_[agent]) left.push_back(agent);
    }
    if (left.empty()) return std::nullopt;
    const double unit = random_unit(options_.seed, kArrivalStream, drawn_++);
    const std::uint32_t agent =
        left[static_cast<std::size_t>(unit * static_cast<double>(left.size()))];
    PlannedRequest planned = turns_asked_[agent] == 0 ? begin(agent) : std::move(*waiting_[agent]);
    waiting_[agent].reset();
    planned.scheduled_ns = now_ns;
    return planned;
  }

  PlannedRequest begin(std::uint32_t agent) {
    PlannedRequest planned = {.prompt = {}, .user = agent};
    planned.session = fmt::format("agent-{}-{}", options_.seed, agent);
    const std::uint32_t tokens = agent == 0 ? options_.main_tokens : options_.sub_tokens;
    planned.prompt.push_back(
        {.symbols = random_symbols(options_.seed, prefix_stream(agent), tokens),
         .is_system = true});
    add_turn(planned);
    return planned;
  }

  std::optional<PlannedRequest> go_on(const PlannedRequest& asked, const std::string& answer,
                                      std::int64_t now_ns) {
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
  std::vector<std::uint32_t> turns_asked_;              // [agent]
  std::vector<std::optional<PlannedRequest>> waiting_;  // [agent], with one_by_one
  std::uint64_t drawn_ = 0;
};

std::optional<EvictedBlocks> count_evictions(const Target& target) {
  const Result<WholeReply> reply = fetch(target, get_request(target, "/metrics"), 10);
  if (!reply.ok() || reply.value().status != 200) return std::nullopt;
  return read_evicted_blocks(reply.value().body);
}

std::optional<std::uint64_t> tokens_computed_of(const Outcome& outcome) {
  if (!outcome.prompt_tokens || !outcome.cached_tokens) return std::nullopt;
  return *outcome.prompt_tokens - std::min(*outcome.prompt_tokens, *outcome.cached_tokens);
}

}  // namespace

std::unique_ptr<Workload> make_agents(const AgentsOptions& options) {
  return std::make_unique<AgentsWorkload>(options);
}

std::optional<EvictedBlocks> read_evicted_blocks(std::string_view metrics) {
  constexpr std::string_view kName = "pagoda:kv_blocks_evicted_total{";
  std::optional<EvictedBlocks> evicted;
  for (std::size_t at = metrics.find(kName); at != std::string_view::npos;
       at = metrics.find(kName, at + 1)) {
    const std::size_t end = std::min(metrics.find('\n', at), metrics.size());
    const std::string line(metrics.substr(at, end - at));
    const std::size_t value = line.find("} ");
    if (value == std::string::npos) continue;
    const std::uint64_t blocks = std::strtoull(line.c_str() + value + 2, nullptr, 10);
    if (!evicted) evicted.emplace();
    evicted->all += blocks;
    if (line.find("cause=\"session\"") < value) evicted->by_sessions += blocks;
  }
  return evicted;
}

std::string failure_words(std::string_view failure) {
  constexpr std::size_t kBytesMax = 60;
  const std::size_t brace = std::min(failure.find('{'), failure.size());
  const auto body = nlohmann::json::parse(failure.substr(brace), nullptr, false);
  std::string words(failure);
  const auto message = nlohmann::json::json_pointer("/error/message");
  if (body.is_object() && body.contains(message) && body[message].is_string()) {
    words = body[message].get<std::string>();
  }
  if (words.size() <= kBytesMax) return words;
  std::size_t end = kBytesMax;
  while (end > 0 && (static_cast<unsigned char>(words[end]) & 0xC0) == 0x80) --end;
  return words.substr(0, end) + "…";
}

std::vector<float> AgentsMeasurement::ttft_from(std::uint32_t first) const {
  const std::size_t turns = options.turns < first ? 0 : options.turns - first + 1;
  std::vector<float> times;
  for (const Outcome& outcome : load.outcomes) {
    if (!outcome.answered() || outcome.turn < first) continue;
    times.push_back(static_cast<float>(seconds_between(outcome.sent_ns, outcome.first_ns)));
  }
  times.resize(std::max(times.size(), turns * options.agents()),
               std::numeric_limits<float>::infinity());
  return times;
}

std::uint64_t AgentsMeasurement::turns_failed() const {
  const auto answered = std::count_if(load.outcomes.begin(), load.outcomes.end(),
                                      [](const Outcome& outcome) { return outcome.answered(); });
  return std::uint64_t{options.agents()} * options.turns - static_cast<std::uint64_t>(answered);
}

std::optional<std::uint64_t> AgentsMeasurement::tokens_computed() const {
  std::uint64_t tokens = 0;
  if (turns_failed() == std::uint64_t{options.agents()} * options.turns) return std::nullopt;
  for (const Outcome& outcome : load.outcomes) {
    if (!outcome.answered()) continue;
    const auto computed = tokens_computed_of(outcome);
    if (!computed) return std::nullopt;
    tokens += *computed;
  }
  return tokens;
}

std::optional<std::uint64_t> AgentsMeasurement::tokens_computed_again() const {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> prompts;  // (agent, turn)
  for (const Outcome& outcome : load.outcomes) {
    if (outcome.answered())
      prompts[{outcome.user, outcome.turn}] = outcome.prompt_tokens.value_or(0);
  }
  if (!tokens_computed()) return std::nullopt;
  std::uint64_t tokens = 0;
  for (const Outcome& outcome : load.outcomes) {
    if (!outcome.answered()) continue;
    const auto computed = tokens_computed_of(outcome);
    if (!computed) return std::nullopt;
    const auto before = prompts.find({outcome.user, outcome.turn - 1});
    if (before == prompts.end()) continue;  // a first turn: all of it is new
    const std::uint64_t earlier = std::min(before->second, *outcome.prompt_tokens);
    const std::uint64_t fresh =
        *outcome.prompt_tokens - earlier + options.note_tokens + AgentsOptions::kTurnOverhead;
    tokens += *computed - std::min(*computed, fresh);
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
  const std::optional<EvictedBlocks> before = count_evictions(target);
  const SteadyClock clock;
  AgentsMeasurement measured;
  measured.options = options;
  ASSIGN_OR_RETURN(measured.load, run_load(target, form, *workload, {.timeout_s = kRequestTimeoutS},
                                           events, clock));
  const std::optional<EvictedBlocks> after = count_evictions(target);
  if (before && after) {
    measured.evicted = {after->all - before->all, after->by_sessions - before->by_sessions};
  }
  return measured;
}

}  // namespace pagoda::loadgen
