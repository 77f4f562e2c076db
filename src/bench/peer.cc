// pagoda bench peer: the same work by this program and by llama.cpp, alternately.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "app/synthetic_request.h"
#include "bench/benchmarks.h"
#include "bench/fastest_cores.h"
#include "bench/machine_speed.h"
#include "bench/peer_program.h"
#include "bench/samples.h"
#include "bench/work.h"
#include "terminal/messages.h"
#include "terminal/progress_bar.h"

namespace pagoda::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint32_t kPeerTries = 3;  // of either program, in each round
// A peer this far behind the best one at some work is not asked for it again.
constexpr double kHopeless = 0.75;

// Tokens per second at one work, all measurements.
struct WorkRates {
  Work work;
  std::vector<double> ours;
  std::vector<std::vector<double>> peers;  // [peers]; empty: not measured
  std::vector<double> core_speeds;         // TMAC/s before and after each; empty: not probed

  // Index of the fastest peer; peers.size() when none was measured.
  std::size_t best_peer() const {
    std::size_t best = peers.size();
    for (std::size_t i = 0; i < peers.size(); ++i) {
      if (peers[i].empty()) continue;
      if (best == peers.size() || median(peers[i]) > median(peers[best])) best = i;
    }
    return best;
  }
  bool cores_moved() const {
    const auto [least, most] = std::ranges::minmax_element(core_speeds);
    return !core_speeds.empty() && *most > kSpeedMoveMax * *least;
  }
  bool is_hopeless(std::size_t peer) const {
    return !peers[peer].empty() && median(peers[peer]) < kHopeless * median(peers[best_peer()]);
  }
};

class PeerBench {
 public:
  // `model_path`: the file of the model that `options` may give by its name.
  PeerBench(const BenchPeerOptions& options, const std::string& model_path, const BenchRun& run,
            BenchEngine& engine)
      : options_(options), run_(run), engine_(engine), cores_(options.threads, run.clock()) {
    for (const std::string& program : options.llama_benches) {
      peers_.push_back({program, model_path});
      for (const std::string& model : options.peer_models) peers_.push_back({program, model});
    }
    failures_.resize(peers_.size());
    for (const Work& work : compared_works()) {
      if (std::count(options.works.begin(), options.works.end(), work.name) == 0) continue;
      rates_.push_back({work, {}, std::vector<std::vector<double>>(peers_.size()), {}});
    }
  }

  Result<terminal::BenchReport> measure() {
    RETURN_IF_ERROR(check_room());
    for (const Peer& peer : peers_) {
      for (const WorkRates& rates : rates_) RETURN_IF_ERROR(check_program(peer, rates.work));
    }
    terminal::ProgressBar progress("peer", "measurements", run_.clock());
    const std::uint64_t measurements = options_.repeats * rates_.size() * (1 + peers_.size());
    std::uint64_t done = 0;
    for (std::uint32_t repeat = 0; repeat < options_.repeats; ++repeat) {
      for (WorkRates& rates : rates_) {
        RETURN_IF_ERROR(take_turn(rates));
        progress.show(++done, measurements);
        for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
          RETURN_IF_ERROR(take_peers_turn(rates, peer));
          progress.show(++done, measurements);
        }
      }
    }
    return report();
  }

 private:
  Status check_room() const {
    for (const WorkRates& rates : rates_) {
      const Work& work = rates.work;
      RETURN_IF_ERROR(app::check_context(fmt::format("`works={}`: {}", work.name, work.title),
                                         work.context_tokens(), engine_.context_tokens()));
      RETURN_IF_ERROR(engine_.check_room(work.context_tokens() * work.sequences));
    }
    return ok_status();
  }

  static Status check_program(const Peer& peer, const Work& work) {
    const std::string program = peer.program_for(work);
    if (access(program.c_str(), X_OK) == 0) return ok_status();
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("`llama_bench`: {} cannot be run: {} (`works={}` needs it)", program,
                             strerror(errno), work.name)};
  }

  // Whichever program is measured has the fastest cores.
  Status before_turn(WorkRates& rates) {
    if (!options_.fastest_cores) return ok_status();
    ASSIGN_OR_RETURN(const double speed, cores_.choose());
    rates.core_speeds.push_back(speed);
    return ok_status();
  }
  Status after_turn(WorkRates& rates) const {
    if (!options_.fastest_cores) return ok_status();
    ASSIGN_OR_RETURN(const double speed, cores_.speed_now());
    rates.core_speeds.push_back(speed);
    return ok_status();
  }

  Status take_turn(WorkRates& rates) {
    RETURN_IF_ERROR(before_turn(rates));
    for (std::uint32_t i = 0; i < kPeerTries; ++i) {
      ASSIGN_OR_RETURN(const double rate, tokens_per_second(engine_, rates.work, ++measurements_));
      rates.ours.push_back(rate);
    }
    return after_turn(rates);
  }

  // A peer that fails is left out from then on; an error when none is left.
  Status take_peers_turn(WorkRates& rates, std::size_t peer) {
    if (!failures_[peer].empty() || rates.is_hopeless(peer)) return ok_status();
    RETURN_IF_ERROR(before_turn(rates));
    const Result<std::vector<double>> measured =
        measure_peer(peers_[peer], rates.work,
                     {.threads = options_.threads,
                      .batched_tokens_max = options_.batched_tokens_max,
                      .tries = kPeerTries},
                     [this] { return run_.interrupted(); });
    RETURN_IF_ERROR(run_.check_interrupt());
    if (measured.ok()) {
      std::vector<double>& all = rates.peers[peer];
      all.insert(all.end(), measured.value().begin(), measured.value().end());
      return after_turn(rates);
    }
    failures_[peer] = fmt::format("{} left out at {}: {}", peers_[peer].name(), rates.work.title,
                                  measured.error().message);
    if (std::none_of(failures_.begin(), failures_.end(), std::mem_fn(&std::string::empty))) {
      return Error{measured.error().code, fmt::format("no peer is left to compare with:\n  {}",
                                                      fmt::join(failures_, "\n  "))};
    }
    terminal::print_warning(failures_[peer]);
    return ok_status();
  }

  terminal::BenchReport report() const {
    std::vector<terminal::BenchColumn> columns = {{"work", "work"},
                                                  {"tokens_per_second", "pagoda tok/s", 1},
                                                  {"peer_tokens_per_second", "llama.cpp tok/s", 1},
                                                  {"ratio", "ratio", 2},
                                                  {"peer_program", "its best program"},
                                                  {"peer_model", "and model"}};
    if (options_.fastest_cores) {
      columns.push_back({"core_tmac_per_second_min", "core TMAC/s from", 2});
      columns.push_back({"core_tmac_per_second_max", "to", 2});
    }
    terminal::BenchReport report("peer", std::move(columns));
    run_.add_settings(report);
    report.add_setting("llama_bench", options_.llama_benches);
    report.add_setting("peer_models", options_.peer_models);
    report.add_setting("repeats", options_.repeats);
    Json all = Json::array();
    for (const WorkRates& rates : rates_) {
      add_row(report, rates);
      for (std::size_t i = 0; i < peers_.size(); ++i) {
        if (rates.peers[i].empty()) continue;
        all.push_back({{"work", rates.work.title},
                       {"program", peers_[i].llama_bench},
                       {"model", peers_[i].model},
                       {"tokens_per_second", median(rates.peers[i])}});
      }
    }
    report.add_detail("peers", all);
    Json left_out = Json::array();
    for (const std::string& failure : failures_) {
      if (!failure.empty()) left_out.push_back(failure);
    }
    report.add_detail("left_out", left_out);
    if (options_.fastest_cores) add_validity(report);
    return report;
  }

  void add_validity(terminal::BenchReport& report) const {
    std::vector<std::string_view> moved;
    for (const WorkRates& rates : rates_) {
      if (rates.cores_moved()) moved.push_back(rates.work.name);
    }
    report.add_figure(
        "valid", moved.empty(),
        moved.empty() ? fmt::format("valid: the speed of cores stayed within {:.0f} % at each work",
                                    100 * (kSpeedMoveMax - 1))
                      : fmt::format("NOT VALID: the speed of cores changed meanwhile: {}",
                                    fmt::join(moved, ", ")));
  }

  void add_row(terminal::BenchReport& report, const WorkRates& rates) const {
    const double ours = median(rates.ours);
    const std::size_t best = rates.best_peer();
    std::vector<terminal::ReportValue> cells = {rates.work.title, ours,    nullptr,
                                                nullptr,          nullptr, nullptr};
    if (best < peers_.size()) {
      const double theirs = median(rates.peers[best]);
      cells = {rates.work.title,
               ours,
               theirs,
               ours / theirs,
               short_path(peers_[best].llama_bench),
               std::filesystem::path(peers_[best].model).filename().string()};
    }
    if (options_.fastest_cores) {
      const auto [least, most] = std::ranges::minmax(rates.core_speeds);
      cells.insert(cells.end(), {least, most});
    }
    report.add_row(std::move(cells));
  }

  const BenchPeerOptions& options_;
  const BenchRun& run_;
  BenchEngine& engine_;
  FastestCores cores_;
  std::vector<Peer> peers_;            // every program with every model
  std::vector<std::string> failures_;  // [peers], empty: none
  std::vector<WorkRates> rates_;
  std::uint64_t measurements_ = 0;
};

}  // namespace

Result<terminal::BenchReport> bench_peer(const BenchPeerOptions& options, const BenchRun& run) {
  std::uint32_t sequences_max = 1;
  for (const Work& work : compared_works()) {
    sequences_max = std::max(sequences_max, work.sequences);
  }
  ASSIGN_OR_RETURN(const engine::BackendOptions backend, run.backend_options(sequences_max));
  ASSIGN_OR_RETURN(const std::unique_ptr<app::LoadedModel> model, run.load_model());
  ASSIGN_OR_RETURN(const std::unique_ptr<BenchEngine> engine,
                   BenchEngine::create(*model, run, backend));
  return PeerBench(options, model->file().path(), run, *engine).measure();
}

}  // namespace pagoda::bench
