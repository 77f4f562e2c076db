// pagoda bench agents: seconds to the first token, turn by turn, of agents that share a small
// cache.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/loaded_model.h"
#include "app/machine.h"
#include "app/model_finder.h"
#include "cli/bench_flags.h"
#include "cli/model_flags.h"
#include "cli/options.h"
#include "cli/server_process.h"
#include "kernels/select.h"
#include "loadgen/agents.h"
#include "loadgen/probe.h"
#include "loadgen/summary.h"
#include "terminal/progress_bar.h"

namespace pagoda::cli {
namespace {

using Json = nlohmann::ordered_json;
using loadgen::AgentsMeasurement;

// The first turns fill the cache.
constexpr std::uint32_t kFirstTurn = 5;

struct BenchAgentsOptions {
  std::string model = app::default_model_path();
  loadgen::AgentsOptions agents;
  double kv_factor = 1.5;
  std::uint32_t threads = 0;
  std::string url;
  std::string served_model;
  std::string llama_server;
  std::string llama_model;
  std::string llama_flags;
  std::uint32_t repeats = 2;
  bool json = false;
};

// A server to be measured, and how it is started.
struct AgentsRow {
  std::string name;
  bool with_sessions = false;
  bool is_own = false;  // another program that does not run is no reason to end
  // The words of its command, for a port.
  std::function<Result<std::vector<std::string>>(std::uint16_t)> words;
};

// A folder that goes with all that is in it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::error_code none;
    path_ = std::filesystem::temp_directory_path(none) /
            fmt::format("pagoda-bench-agents-{}", static_cast<long>(getpid()));
  }
  ~ScratchFolder() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

Json optional_json(const std::optional<std::uint64_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// This program's own path.
std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

class AgentsBench {
 public:
  AgentsBench(const BenchAgentsOptions& options, const terminal::Interrupt& interrupt)
      : options_(options), interrupt_(interrupt) {}

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
    const ScratchFolder folder;
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
      return pagoda_words(port, kv_bytes_);
    };
    std::vector<AgentsRow> rows = {{"pagoda, sessions", true, true, same_bytes},
                                   {"pagoda, no sessions", false, true, same_bytes}};
    if (options_.llama_server.empty()) return rows;
    const auto llama = [this](std::uint32_t slots) {
      return [this, slots](std::uint16_t port) { return llama_words(port, slots); };
    };
    // The folder of the disk tier is another one than the default: what earlier runs left there is
    // not found.
    const auto defaults = [this, &folder](std::uint16_t port) -> Words {
      std::error_code none;
      std::filesystem::remove_all(folder.path(), none);
      std::vector<std::string> words = pagoda_words(port);
      words.insert(words.end(), {"--kv-disk", folder.path()});
      return words;
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
    if (done.ok() || row.is_own || interrupt_.requested()) return done;
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

  std::vector<std::string> pagoda_words(std::uint16_t port) const {
    std::vector<std::string> words = {own_program(),        "serve",   "--port",
                                      std::to_string(port), "--model", options_.model,
                                      "--log-format",       "none"};
    if (options_.threads > 0) {
      words.insert(words.end(), {"--threads", std::to_string(options_.threads)});
    }
    return words;
  }

  // So many bytes of KV in all: nothing is kept on disk.
  std::vector<std::string> pagoda_words(std::uint16_t port, std::uint64_t kv_bytes) const {
    std::vector<std::string> words = pagoda_words(port);
    words.insert(words.end(),
                 {"--max-model-len", std::to_string(options_.agents.context_tokens()),
                  "--kv-cache-memory-bytes", std::to_string(kv_bytes), "--kv-disk", "off"});
    return words;
  }

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
    ASSIGN_OR_RETURN(const auto server,
                     ServerProcess::start(pagoda_words(port, kProbeBytes), port, stopped()));
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

  // With `slots` it has as many bytes of KV in all; 0: its defaults.
  Result<std::vector<std::string>> llama_words(std::uint16_t port, std::uint32_t slots) const {
    std::string model = options_.llama_model;
    if (model.empty()) {
      ASSIGN_OR_RETURN(const app::FoundModel found,
                       app::find_model(options_.model, app::ModelEnvironment::of_process()));
      model = found.path;
    }
    std::vector<std::string> words = {options_.llama_server, "-m", model, "--port",
                                      std::to_string(port)};
    if (options_.threads > 0) words.insert(words.end(), {"-t", std::to_string(options_.threads)});
    if (slots > 0) {
      const std::uint64_t tokens = kv_dtype_ == "f32" ? 2 * kv_tokens_ : kv_tokens_;
      words.insert(words.end(), {"-c", std::to_string(tokens), "-np", std::to_string(slots),
                                 "--kv-unified", "--cache-ram", "0"});
    }
    std::istringstream flags(options_.llama_flags);
    for (std::string flag; flags >> flag;) words.push_back(flag);
    return words;
  }

  Status run(const std::string& name, const std::string& flags, const loadgen::Target& target,
             bool with_sessions) {
    std::string model = options_.served_model;
    if (model.empty()) {
      ASSIGN_OR_RETURN(model, loadgen::first_model(target));
    }
    const SteadyClock clock;
    terminal::ProgressBar progress(name, "turns", clock);
    const std::uint64_t turns = std::uint64_t{options_.agents.agents()} * options_.agents.turns;
    const loadgen::LoadEvents events = {
        .stopped = stopped(),
        .on_progress = [&](std::uint64_t ended, double) { progress.show(ended, turns); }};
    ASSIGN_OR_RETURN(
        AgentsMeasurement measured,
        loadgen::measure_agents(options_.agents, target, model, with_sessions, events));
    if (interrupt_.requested()) return Error{ErrorCode::kIo, "interrupted"};
    measured.name = name;
    measured.flags = flags;
    measured.run = run_;
    measured_.push_back(std::move(measured));
    return ok_status();
  }

  std::function<bool()> stopped() const {
    return [this] { return interrupt_.requested(); };
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
  const terminal::Interrupt& interrupt_;
  std::uint64_t kv_tokens_ = 0;
  std::uint64_t kv_bytes_ = 0;
  std::string kv_dtype_;
  std::uint32_t run_ = 1;
  std::vector<AgentsMeasurement> measured_;
};

int run_bench_agents(const BenchCommand& bench, const BenchAgentsOptions& options) {
  const Result<const kernels::KernelSet*> kernels = kernels::select_set();
  if (!kernels.ok()) {
    print_error(kernels.error().message);
    return 1;
  }
  const terminal::Interrupt interrupt;
  const Result<terminal::BenchReport> report = AgentsBench(options, interrupt).measure();
  if (interrupt.requested()) {
    print_error("interrupted");
    return kInterrupted;
  }
  if (!report.ok()) {
    print_error(report.error().message);
    return report.error().code == ErrorCode::kInvalidArgument ? 2 : 1;
  }
  const terminal::BenchMachine machine = app::describe_machine(*kernels.value());
  fmt::print("{}", options.json ? report.value().json_text(machine, bench.command_line)
                                : report.value().text(machine, bench.command_line));
  std::fflush(stdout);
  return 0;
}

constexpr const char* kBenchAgentsExamples =
    "Examples:\n"
    "  pagoda bench agents\n"
    "  pagoda bench agents --llama-server ~/llama.cpp/build/bin/llama-server -t 8\n"
    "  pagoda bench agents --model Qwen/Qwen3-8B-GGUF --main-tokens 28000 --sub-tokens 7000 "
    "--pause 5\n"
    "  pagoda bench agents --url http://127.0.0.1:8080 --turns 10 --json\n"
    "A main agent and sub-agents run side by side. Each turn has a tool's result, and a note that "
    "the next turn leaves out, as agents send reminders. The cache holds --kv-factor times the "
    "main "
    "agent's prompt, so that agents evict each other. Servers are started one after the other, "
    "with "
    "and without session keys, --repeats times each, every other round from the last to the first; "
    "TTFT is shown from turn 5 on, each turn's with --json. A llama-server that does not start or "
    "answer has a row that says why.";

void add_agents_options(const CommandSpec& command, BenchAgentsOptions& options) {
  loadgen::AgentsOptions& agents = options.agents;
  add_model_option(command, options.model);
  add_count_option(command, "--main-tokens", agents.main_tokens,
                   "tokens of the main agent's system prompt");
  add_count_option(command, "--sub-tokens", agents.sub_tokens, "tokens of a sub-agent's");
  add_count_option(command, "--sub-agents", agents.sub_agents, "sub-agents", 0);
  add_count_option(command, "--turns", agents.turns, "turns of each agent");
  add_count_option(command, "--result-tokens", agents.result_tokens, "tokens of a tool's result");
  add_count_option(command, "--note-tokens", agents.note_tokens,
                   "tokens of the note in the last turn");
  add_count_option(command, "--output-tokens", agents.output_tokens, "tokens of an answer");
  command.add_option("--pause", agents.pause_s, "mean seconds that a tool takes (default 0.2)")
      .range(0.0, 3600.0);
  command.add_flag("--one-by-one", agents.one_by_one,
                   "one agent after the other, in an order drawn by the seed, without pauses: "
                   "counts are the same in every run");
  command
      .add_option("--kv-factor", options.kv_factor,
                  "size of the KV cache, in prompts of the main agent (default 1.5)")
      .range(1.0, 100.0);
  command.add_option("-t,--threads", options.threads, "threads of servers (default: theirs)")
      .range(1u, 1024u);
  command.add_option("--seed", agents.seed, "seed of texts and pauses (default 0)");
  command.add_option("--url", options.url,
                     "measure this OpenAI-compatible server alone, which runs already");
  command.add_option("--served-model", options.served_model,
                     "name of the model (default: the first of /v1/models)");
  command.add_option("--llama-server", options.llama_server,
                     "llama.cpp's server: rows more, with the same KV bytes in a slot for each "
                     "agent, in one slot, and with its defaults");
  command.add_option("--llama-model", options.llama_model,
                     "the GGUF file that llama-server runs (default: the same)");
  command.add_option("--llama-flags", options.llama_flags,
                     "more flags of llama-server, in one argument, as \"--no-repack\"");
  add_count_option(command, "--repeats", options.repeats,
                   "runs of each server, in alternating order");
  command.add_flag("--json", options.json, "one JSON object on stdout instead of a table");
}

}  // namespace

void add_bench_agents(const BenchCommand& bench) {
  const CommandSpec command = bench.app.add_subcommand(
      "agents", "TTFT of agents that share a small cache, with sessions and without");
  const auto options = std::make_shared<BenchAgentsOptions>();
  add_agents_options(command, *options);
  command.footer(kBenchAgentsExamples);
  command.callback([bench, options] { bench.exit_status = run_bench_agents(bench, *options); });
}

}  // namespace pagoda::cli
