// pagoda bench agents: seconds to the first token, turn by turn, of agents that share a small
// cache.
#include "loadgen/agents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "bench/agent_servers.h"
#include "bench/benchmarks.h"
#include "bench/scratch_folder.h"
#include "bench/server_process.h"
#include "loadgen/probe.h"
#include "loadgen/summary.h"
#include "terminal/progress_bar.h"

namespace pagoda::bench {
namespace {

using Json = nlohmann::ordered_json;
using loadgen::AgentsMeasurement;

// The first turns fill the cache.
constexpr std::uint32_t kFirstTurn = 5;

// A server to be measured, and how it is started.
struct AgentsRow {
  std::string name;
  bool with_sessions = false;
  bool is_own = false;  // another program that does not run is no reason to end
  // The words of its command, for a port.
  std::function<Result<std::vector<std::string>>(std::uint16_t)> words;
};

Json optional_json(const std::optional<std::uint64_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}

class AgentsBench {
 public:
  AgentsBench(const BenchAgentsOptions& options, const BenchRun& bench)
      : options_(options), bench_(bench) {}

  Result<terminal::BenchReport> measure() {
    if (!options_.url.empty()) {
      RETURN_IF_ERROR(measure_url());
    } else {
      RETURN_IF_ERROR(size_cache());
      RETURN_IF_ERROR(measure_servers());
    }
    return report();
  }

 private:
  // Every run has a fresh server, and every other round goes from the last row to the first: a
  // machine that gets slower, or warmer, is no row's advantage.
  Status measure_servers() {
    std::error_code none;
    const ScratchFolder folder(std::filesystem::temp_directory_path(none));
    const std::vector<AgentsRow> rows = rows_of(folder);
    for (run_ = 1; run_ <= options_.repeats; ++run_) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        RETURN_IF_ERROR(measure_row(rows[run_ % 2 == 1 ? i : rows.size() - 1 - i]));
      }
    }
    const auto place = [&](const AgentsMeasurement& measured) {
      return std::find_if(rows.begin(), rows.end(),
                          [&](const AgentsRow& row) { return row.name == measured.name; });
    };
    std::stable_sort(measured_.begin(), measured_.end(),
                     [&](const auto& one, const auto& other) { return place(one) < place(other); });
    return ok_status();
  }

  std::vector<AgentsRow> rows_of(const ScratchFolder& folder) const {
    using Words = Result<std::vector<std::string>>;
    const auto same_bytes = [this](std::uint16_t port) -> Words {
      return serve_words(options_, port, kv_bytes_);
    };
    std::vector<AgentsRow> rows = {{"pagoda, sessions", true, true, same_bytes},
                                   {"pagoda, no sessions", false, true, same_bytes}};
    if (options_.llama_server.empty()) return rows;
    const auto llama = [this](std::uint32_t slots) {
      return [this, slots](std::uint16_t port) {
        return llama_server_words(options_, port, slots, llama_tokens());
      };
    };
    // The folder of the disk tier is another one than the default: what earlier runs left there is
    // not found.
    const auto defaults = [this, &folder](std::uint16_t port) -> Words {
      std::error_code none;
      std::filesystem::remove_all(folder.path(), none);
      return serve_words(options_, port, folder.path().string());
    };
    rows.push_back(
        {"llama-server, the same KV bytes", false, false, llama(options_.agents.agents())});
    rows.push_back({"llama-server, the same KV bytes, one slot", false, false, llama(1)});
    rows.push_back({"pagoda, its defaults", true, true, defaults});
    rows.push_back({"llama-server, its defaults", false, false, llama(0)});
    return rows;
  }

  // Another server that does not start, or ends, has a row that says so.
  Status measure_row(const AgentsRow& row) {
    ASSIGN_OR_RETURN(const std::uint16_t port, free_port());
    ASSIGN_OR_RETURN(const std::vector<std::string> words, row.words(port));
    const auto measure = [&]() -> Status {
      ASSIGN_OR_RETURN(const auto server, ServerProcess::start(words, port, stopped()));
      return run(row.name, command_text(words), server->target(), row.with_sessions);
    };
    const Status done = measure();
    if (done.ok() || row.is_own || bench_.interrupted()) return done;
    AgentsMeasurement measured;
    measured.name = row.name;
    measured.flags = command_text(words);
    measured.options = options_.agents;
    measured.run = run_;
    measured.load.first_failure = done.error().message;
    measured_.push_back(std::move(measured));
    return ok_status();
  }

  Status measure_url() {
    ASSIGN_OR_RETURN(const loadgen::Target target, loadgen::parse_target(options_.url, "`url`"));
    RETURN_IF_ERROR(run(options_.url + ", sessions", "", target, true));
    return run(options_.url + ", no sessions", "", target, false);
  }

  // Tokens of llama-server's cache, which keeps 16 bits, in the bytes of ours.
  std::uint64_t llama_tokens() const { return kv_dtype_ == "f32" ? 2 * kv_tokens_ : kv_tokens_; }

  // A server says how many bytes of its cache a token takes.
  Status size_cache() {
    constexpr std::uint64_t kProbeBytes = 1 << 30;
    const auto tokens =
        static_cast<std::uint64_t>(options_.kv_factor * options_.agents.main_tokens);
    if (options_.agents.context_tokens() > tokens) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("the main agent comes to {} tokens, and the cache holds {}: give "
                               "fewer turns or more of `kv_factor`",
                               options_.agents.context_tokens(), tokens)};
    }
    ASSIGN_OR_RETURN(const std::uint16_t port, free_port());
    ASSIGN_OR_RETURN(
        const auto server,
        ServerProcess::start(serve_words(options_, port, kProbeBytes), port, stopped()));
    ASSIGN_OR_RETURN(const loadgen::WholeReply reply,
                     loadgen::fetch(server->target(),
                                    loadgen::get_request(server->target(), "/server_info"), 60));
    const Json info = Json::parse(reply.body, nullptr, false);
    if (!info.is_object() || !info.contains("kv_cache_bytes") ||
        !info.contains("kv_cache_tokens")) {
      return Error{ErrorCode::kIo, "/server_info does not say how large the cache is"};
    }
    const auto bytes = info["kv_cache_bytes"].get<double>();
    kv_tokens_ = tokens;
    kv_bytes_ = static_cast<std::uint64_t>(bytes / info["kv_cache_tokens"].get<double>() *
                                           static_cast<double>(tokens));
    kv_dtype_ = info.value("kv_cache_dtype", "");
    return ok_status();
  }

  Status run(const std::string& name, const std::string& flags, const loadgen::Target& target,
             bool with_sessions) {
    std::string model = options_.served_model;
    if (model.empty()) {
      ASSIGN_OR_RETURN(model, loadgen::first_model(target));
    }
    terminal::ProgressBar progress(name, "turns", bench_.clock());
    const std::uint64_t turns = std::uint64_t{options_.agents.agents()} * options_.agents.turns;
    const loadgen::LoadEvents events = {
        .stopped = stopped(),
        .on_progress = [&](std::uint64_t ended, double) { progress.show(ended, turns); }};
    ASSIGN_OR_RETURN(
        AgentsMeasurement measured,
        loadgen::measure_agents(options_.agents, target, model, with_sessions, events));
    if (bench_.interrupted()) return Error{ErrorCode::kIo, "interrupted"};
    measured.name = name;
    measured.flags = flags;
    measured.run = run_;
    measured_.push_back(std::move(measured));
    return ok_status();
  }

  std::function<bool()> stopped() const {
    return [this] { return bench_.interrupted(); };
  }

  terminal::BenchReport report() const {
    terminal::BenchReport report("agents", {{"server", "server"},
                                            {"run", "run"},
                                            {"ttft_p50_ms", "TTFT p50 ms", 1},
                                            {"ttft_p95_ms", "p95", 1},
                                            {"ttft_max_ms", "max", 1},
                                            {"seconds", "seconds in all", 1},
                                            {"prompt_tokens_computed", "prompt tokens computed"},
                                            {"prompt_tokens_computed_again", "again"},
                                            {"blocks_evicted", "blocks evicted"},
                                            {"blocks_evicted_by_sessions", "by sessions"},
                                            {"turns_failed", "failed turns"},
                                            {"failure", "first failure"}});
    const loadgen::AgentsOptions& agents = options_.agents;
    report.add_setting("main_tokens", agents.main_tokens);
    report.add_setting("sub_agents", agents.sub_agents);
    report.add_setting("sub_tokens", agents.sub_tokens);
    report.add_setting("turns", agents.turns);
    report.add_setting("repeats", options_.repeats);
    report.add_setting("from_turn", kFirstTurn);
    report.add_setting("pause_s", agents.pause_s);
    report.add_setting("one_by_one", agents.one_by_one);
    report.add_setting("kv_bytes", kv_bytes_);
    report.add_setting("seed", agents.seed);
    Json details = Json::array();
    for (const AgentsMeasurement& measured : measured_) {
      add_row(report, measured);
      details.push_back(turns_json(measured));
    }
    report.add_detail("servers", details);
    for (std::size_t i = 0; i < measured_.size(); ++i) {
      const std::string& failure = measured_[i].load.first_failure;
      if (!failure.empty()) {
        report.add_figure(fmt::format("failure_{}", i), failure,
                          fmt::format("{}: first failure: {}", measured_[i].name, failure));
      }
      if (measured_[i].flags.empty() || measured_[i].run > 1) continue;
      report.add_figure(fmt::format("flags_{}", i), measured_[i].flags,
                        fmt::format("{}: {}", measured_[i].name, measured_[i].flags));
    }
    return report;
  }

  static void add_row(terminal::BenchReport& report, const AgentsMeasurement& measured) {
    using Value = terminal::ReportValue;
    const loadgen::Distribution ttft = loadgen::distribution_of(measured.ttft_from(kFirstTurn));
    // Failed turns have infinite times, which JSON cannot hold: their cells are empty.
    const auto ms = [](double seconds) {
      return std::isfinite(seconds) ? Value(seconds * 1e3) : Value();
    };
    const auto count = [](const std::optional<std::uint64_t>& tokens) {
      return tokens ? Value(*tokens) : Value();
    };
    const std::optional<loadgen::EvictedBlocks>& evicted = measured.evicted;
    const std::string failure = loadgen::failure_words(measured.load.first_failure);
    report.add_row({measured.name, measured.run, ms(ttft.p50), ms(ttft.p95), ms(ttft.max),
                    measured.load.seconds, count(measured.tokens_computed()),
                    count(measured.tokens_computed_again()),
                    evicted ? Value(evicted->all) : Value(),
                    evicted ? Value(evicted->by_sessions) : Value(), measured.turns_failed(),
                    failure.empty() ? Value() : Value(failure)});
  }

  static Json turns_json(const AgentsMeasurement& measured) {
    Json turns = Json::array();
    for (const loadgen::Outcome& outcome : measured.load.outcomes) {
      const double ttft_s = seconds_between(outcome.sent_ns, outcome.first_ns);
      turns.push_back({{"agent", outcome.user},
                       {"turn", outcome.turn},
                       {"outcome", loadgen::outcome_name(outcome.kind)},
                       {"ttft_ms", outcome.answered() ? Json(ttft_s * 1e3) : Json(nullptr)},
                       {"prompt_tokens", optional_json(outcome.prompt_tokens)},
                       {"cached_tokens", optional_json(outcome.cached_tokens)}});
    }
    return {{"server", measured.name},
            {"run", measured.run},
            {"flags", measured.flags},
            {"first_failure", measured.load.first_failure},
            {"turns", std::move(turns)}};
  }

  const BenchAgentsOptions& options_;
  const BenchRun& bench_;
  std::uint64_t kv_tokens_ = 0;
  std::uint64_t kv_bytes_ = 0;
  std::string kv_dtype_;
  std::uint32_t run_ = 1;
  std::vector<AgentsMeasurement> measured_;
};

}  // namespace

Result<terminal::BenchReport> bench_agents(const BenchAgentsOptions& options, const BenchRun& run) {
  return AgentsBench(options, run).measure();
}

}  // namespace pagoda::bench
