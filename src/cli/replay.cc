// pagoda replay: a recorded stream of requests against caches of several policies and sizes.
#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_size.h"
#include "base/result.h"
#include "cli/commands.h"
#include "cli/fleet_flags.h"
#include "cli/options.h"
#include "kv/evict/policy.h"
#include "replay/capacity.h"
#include "replay/replay_files.h"
#include "replay/replay_trace.h"

namespace pagoda::cli {
namespace {

constexpr const char* kReplayExamples = R"(Examples:
  pagoda replay conversation_trace.jsonl.gz
      every policy at 1% to 50% of the trace's different blocks
  pagoda replay trace.jsonl --policy lru,belady --capacity 2000,10%
  pagoda replay trace.jsonl --capacity 16GiB,64GiB --bytes-per-token 131072
  pagoda replay day1.jsonl day2.jsonl --json
      each trace starts with an empty cache
  pagoda replay trace.jsonl --plot curves.svg
  pagoda replay trace.jsonl --policy lru --curve
      beside it what the live curve of a running cache would have said
  pagoda replay trace.jsonl --servers 1,8,64 --router all --policy lru --capacity 110GiB
      caches behind a router, in simulated time: hit rate, TTFT, balance
  pagoda replay trace.jsonl --servers 64 --load 0.7 --tier host:400GiB --tier shared:8TiB
A trace has one JSON object a line, plain or gzip: {"timestamp": 0, "input_length": 1000,
"output_length": 9, "hash_ids": [1, 2]}. A hit is a block whose whole prefix is cached. belady
knows the future and may bypass blocks: no policy of that size hits more.)";

constexpr std::uint64_t kBlockTokensMax = UINT32_MAX;

struct ReplayFlags {
  std::vector<std::string> traces;
  std::string policy = "all";
  std::string capacity = "1%,2%,5%,10%,25%,50%";
  std::string block_tokens = "512";
  std::string bytes_per_token;
  std::string plot;
  bool curve = false;
  bool json = false;
  FleetFlags fleet;
};

// The cache's own policies, and belady, which is none of them.
std::vector<const kv::EvictionPolicy*> every_policy() {
  std::vector<const kv::EvictionPolicy*> every(kv::eviction_policies().begin(),
                                               kv::eviction_policies().end());
  every.push_back(nullptr);
  return every;
}

std::string policy_names() {
  std::string names;
  for (const kv::EvictionPolicy* const policy : every_policy()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", replay::policy_name(policy));
  }
  return names;
}

Result<std::vector<const kv::EvictionPolicy*>> parse_policies(std::string_view list) {
  const std::vector<const kv::EvictionPolicy*> every = every_policy();
  std::vector<const kv::EvictionPolicy*> asked;
  for (bool more = true; more;) {
    const std::size_t comma = list.find(',');
    const std::string_view word = list.substr(0, comma);
    more = comma != std::string_view::npos;
    list.remove_prefix(more ? comma + 1 : list.size());
    bool known = false;
    for (const kv::EvictionPolicy* const policy : every) {
      if (word != "all" && word != replay::policy_name(policy)) continue;
      asked.push_back(policy);
      known = true;
    }
    if (known) continue;
    return invalid(fmt::format("--policy: '{}' is not one of all, {}", word, policy_names()));
  }
  return asked;
}

Result<std::uint64_t> parse_block_tokens(const std::string& digits) {
  std::uint64_t tokens = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, tokens);
  if (parsed.ec != std::errc{} || parsed.ptr != end || tokens < 1 || tokens > kBlockTokensMax) {
    return invalid(fmt::format("--block-tokens: '{}' is not a whole number from 1 to {}", digits,
                               kBlockTokensMax));
  }
  return tokens;
}

Result<std::uint64_t> parse_token_bytes(const std::string& text, std::uint64_t block_tokens) {
  const Result<std::uint64_t> bytes = parse_byte_size(text);
  const std::uint64_t bytes_max = INT64_MAX / block_tokens;
  if (bytes.ok() && bytes.value() >= 1 && bytes.value() <= bytes_max) return bytes;
  return invalid(
      fmt::format("--bytes-per-token: '{}' is not a size from 1 to {} bytes", text, bytes_max));
}

Result<replay::ReplayQuestion> understand(const ReplayFlags& flags) {
  replay::ReplayQuestion question;
  question.curve = flags.curve;
  ASSIGN_OR_RETURN(question.policies, parse_policies(flags.policy));
  ASSIGN_OR_RETURN(question.block_tokens, parse_block_tokens(flags.block_tokens));
  std::uint64_t block_bytes = 0;
  if (!flags.bytes_per_token.empty()) {
    ASSIGN_OR_RETURN(block_bytes, parse_token_bytes(flags.bytes_per_token, question.block_tokens));
    block_bytes *= question.block_tokens;
  }
  ASSIGN_OR_RETURN(question.capacities, replay::parse_capacities(flags.capacity, block_bytes));
  return question;
}

// A fleet has costs in bytes and so a size of a token, and its own defaults: one policy, one size.
Status replay_fleet(ReplayFlags flags, bool policy_given, bool capacity_given) {
  if (flags.curve) return invalid("--curve: only of one cache, without --servers");
  if (!policy_given) flags.policy = kv::lru_policy().name;
  if (!capacity_given) flags.capacity = "10%";
  if (flags.bytes_per_token.empty()) {
    flags.bytes_per_token = fmt::format("{}", flags.fleet.base.costs.bytes_per_token);
  }
  ASSIGN_OR_RETURN(const replay::ReplayQuestion question, understand(flags));
  for (const kv::EvictionPolicy* const policy : question.policies) {
    if (policy != nullptr) continue;
    return invalid("--policy: belady knows the future of one cache; name others with --servers");
  }
  FleetFlags fleet_flags = flags.fleet;
  ASSIGN_OR_RETURN(fleet_flags.base.costs.bytes_per_token,
                   parse_token_bytes(flags.bytes_per_token, question.block_tokens));
  ASSIGN_OR_RETURN(replay::FleetQuestion fleet,
                   understand_fleet(fleet_flags, question.block_tokens));
  fleet.policies = question.policies;
  fleet.capacities = question.capacities;
  return replay::fleet_files(flags.traces, fleet, {.plot = flags.plot, .json = flags.json});
}

Status replay(const ReplayFlags& flags) {
  RETURN_IF_ERROR(check_no_fleet(flags.fleet));
  ASSIGN_OR_RETURN(const replay::ReplayQuestion question, understand(flags));
  return replay::replay_files(flags.traces, question, {.plot = flags.plot, .json = flags.json});
}

}  // namespace

void add_replay_command(const CommandSpec& app, int& exit_status) {
  const CommandSpec command = app.add_subcommand(
      "replay", "Hit rates of a recorded stream of requests, by eviction policy and cache size");
  command.footer(kReplayExamples);
  const auto flags = std::make_shared<ReplayFlags>();
  command.add_option("TRACE", flags->traces, "request traces (JSONL, plain or gzip)").required();
  command
      .add_option("--policy", flags->policy,
                  fmt::format("{}; several with commas (all; lru with --servers)", policy_names()))
      .type_name("LIST");
  command
      .add_option("--capacity", flags->capacity,
                  "N% of the different blocks, N blocks or a size (1%,2%,5%,10%,25%,50%; 10% with "
                  "--servers)")
      .type_name("LIST");
  command.add_option("--block-tokens", flags->block_tokens, "tokens of a block (512)")
      .type_name("N");
  command
      .add_option(
          "--bytes-per-token", flags->bytes_per_token,
          "KV bytes of a token, for capacities given as sizes: see pagoda size (131072 with "
          "--servers)")
      .type_name("N");
  command.add_flag("--curve", flags->curve,
                   "also what the live curve of a cache of that size, a sample, says of policies");
  command.add_flag("--json", flags->json, "one JSON value on stdout");
  command.add_option("--plot", flags->plot, "draw the curves into this SVG file").type_name("FILE");
  add_fleet_options(command, flags->fleet);
  const Flag policy = command.flag("--policy");
  const Flag capacity = command.flag("--capacity");
  command.callback([flags, policy, capacity, &exit_status] {
    const Status done = flags->fleet.servers.empty()
                            ? replay(*flags)
                            : replay_fleet(*flags, policy.count() > 0, capacity.count() > 0);
    exit_status = 0;
    if (done.ok()) return;
    print_error(done.error().message);
    exit_status = done.error().code == ErrorCode::kInvalidArgument ? 2 : 1;
  });
}

}  // namespace pagoda::cli
