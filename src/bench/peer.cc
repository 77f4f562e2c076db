// pagoda bench peer: the same work by this program and by llama.cpp, alternately.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/synthetic_request.h"
#include "bench/benchmarks.h"
#include "bench/fastest_cores.h"
#include "bench/peer_program.h"
#include "bench/ratio_interval.h"
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

// Tokens per second at one work.
struct WorkRates {
  struct PeerRates {
    std::vector<double> all;           // empty: not measured
    std::vector<double> round_ratios;  // ours over this peer's, medians of a round
  };
  Work work;
  std::vector<double> ours;
  std::vector<PeerRates> peers;
  std::vector<double> core_speeds;  // TMAC/s of the slowest core before and after each turn

  // Index of the fastest peer; peers.size() when none was measured.
  std::size_t best_peer() const {
    std::size_t best = peers.size();
    for (std::size_t i = 0; i < peers.size(); ++i) {
      if (peers[i].all.empty()) continue;
      if (best == peers.size() || median(peers[i].all) > median(peers[best].all)) best = i;
    }
    return best;
  }
  bool is_hopeless(std::size_t peer) const {
    return !peers[peer].all.empty() &&
           median(peers[peer].all) < kHopeless * median(peers[best_peer()].all);
  }
  // Returns that of the ratio to the fastest peer; nothing before the second round.
  std::optional<RatioInterval> interval() const {
    const std::size_t best = best_peer();
    return best == peers.size() ? std::nullopt : ratio_interval(peers[best].round_ratios);
  }
};

// Processes that ran or waited to run, over the last minute.
double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

class PeerBench {
 public:
  // `model_path`: the file of the model that `options` may give by its name.
  PeerBench(const BenchPeerOptions& options, const std::string& model_path, const BenchRun& run,
            BenchEngine& engine)
      : options_(options),
        run_(run),
        engine_(engine),
        cores_(options.threads, run.clock()),
        load_average_(load_average()) {
    for (const std::string& program : options.llama_benches) {
      peers_.push_back({program, model_path});
      for (const std::string& model : options.peer_models) peers_.push_back({program, model});
    }
    failures_.resize(peers_.size());
    for (const Work& work : compared_works()) {
      if (std::count(options.works.begin(), options.works.end(), work.name) == 0) continue;
      rates_.push_back({work, {}, std::vector<WorkRates::PeerRates>(peers_.size()), {}});
    }
  }

  Result<terminal::BenchReport> measure() {
    RETURN_IF_ERROR(check_room());
    for (const Peer& peer : peers_) {
      for (const WorkRates& rates : rates_) RETURN_IF_ERROR(check_program(peer, rates.work));
    }
    terminal::ProgressBar progress("peer", "rounds", run_.clock());
    const std::uint32_t rounds_max = std::max(options_.repeats, options_.repeats_max);
    const std::uint64_t rounds = std::uint64_t{rounds_max} * rates_.size();
    std::uint64_t skipped = 0;  // rounds that were not needed count as done
    for (std::uint32_t round = 0; round < rounds_max; ++round) {
      for (std::size_t i = 0; i < rates_.size(); ++i) {
        if (round >= options_.repeats && is_precise(rates_[i])) {
          ++skipped;
        } else {
          RETURN_IF_ERROR(take_round(rates_[i], round));
        }
        progress.show(round * rates_.size() + i + 1, rounds);
      }
      if (skipped == rates_.size()) break;
      skipped = 0;
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

  bool is_precise(const WorkRates& rates) const {
    const std::optional<RatioInterval> interval = rates.interval();
    return interval && interval->width() <= options_.precision;
  }

  // Every second round begins with the last peer, so that a machine that slows down steadily
  // slows both programs down.
  Status take_round(WorkRates& rates, std::uint32_t round) {
    std::vector<std::optional<double>> peers(peers_.size());
    std::optional<double> ours;
    const std::size_t turns = 1 + peers_.size();
    for (std::size_t i = 0; i < turns; ++i) {
      const std::size_t turn = round % 2 == 0 ? i : turns - 1 - i;
      if (turn == 0) {
        ASSIGN_OR_RETURN(ours, take_turn(rates));
      } else {
        ASSIGN_OR_RETURN(peers[turn - 1], take_peers_turn(rates, turn - 1));
      }
    }
    for (std::size_t i = 0; i < peers.size(); ++i) {
      if (peers[i]) rates.peers[i].round_ratios.push_back(*ours / *peers[i]);
    }
    return ok_status();
  }

  // If asked, whichever program is measured has the fastest cores.
  Status before_turn(WorkRates& rates) {
    ASSIGN_OR_RETURN(const double speed,
                     options_.fastest_cores ? cores_.choose() : cores_.speed_now());
    rates.core_speeds.push_back(speed);
    return ok_status();
  }
  Status after_turn(WorkRates& rates) const {
    ASSIGN_OR_RETURN(const double speed, cores_.speed_now());
    rates.core_speeds.push_back(speed);
    return ok_status();
  }

  // The median of the turn.
  Result<double> take_turn(WorkRates& rates) {
    RETURN_IF_ERROR(before_turn(rates));
    std::vector<double> turn;
    for (std::uint32_t i = 0; i < kPeerTries; ++i) {
      ASSIGN_OR_RETURN(const double rate, tokens_per_second(engine_, rates.work, ++measurements_));
      turn.push_back(rate);
    }
    rates.ours.insert(rates.ours.end(), turn.begin(), turn.end());
    RETURN_IF_ERROR(after_turn(rates));
    return median(turn);
  }

  // The median of the turn; nothing of a peer that was not asked. One that fails is left out from
  // then on; an error when none is left.
  Result<std::optional<double>> take_peers_turn(WorkRates& rates, std::size_t peer) {
    if (!failures_[peer].empty() || rates.is_hopeless(peer)) return std::optional<double>();
    RETURN_IF_ERROR(before_turn(rates));
    const Result<std::vector<double>> measured =
        measure_peer(peers_[peer], rates.work,
                     {.threads = options_.threads,
                      .batched_tokens_max = options_.batched_tokens_max,
                      .tries = kPeerTries},
                     [this] { return run_.interrupted(); });
    RETURN_IF_ERROR(run_.check_interrupt());
    if (measured.ok()) {
      std::vector<double>& all = rates.peers[peer].all;
      all.insert(all.end(), measured.value().begin(), measured.value().end());
      RETURN_IF_ERROR(after_turn(rates));
      return std::optional(median(measured.value()));
    }
    failures_[peer] = fmt::format("{} left out at {}: {}", peers_[peer].name(), rates.work.title,
                                  measured.error().message);
    if (std::none_of(failures_.begin(), failures_.end(), std::mem_fn(&std::string::empty))) {
      return Error{measured.error().code, fmt::format("no peer is left to compare with:\n  {}",
                                                      fmt::join(failures_, "\n  "))};
    }
    terminal::print_warning(failures_[peer]);
    return std::optional<double>();
  }

  terminal::BenchReport report() const {
    terminal::BenchReport report("peer", {{"work", "work"},
                                          {"tokens_per_second", "pagoda tok/s", 1},
                                          {"peer_tokens_per_second", "llama.cpp tok/s", 1},
                                          {"ratio", "ratio", 2},
                                          {"ratio_from", "95 % from", 2},
                                          {"ratio_to", "to", 2},
                                          {"rounds", "rounds"},
                                          {"peer_program", "its best program"},
                                          {"peer_model", "and model"},
                                          {"core_tmac_per_second_min", "core TMAC/s from", 2},
                                          {"core_tmac_per_second_max", "to", 2}});
    run_.add_settings(report);
    report.add_setting("llama_bench", options_.llama_benches);
    report.add_setting("peer_models", options_.peer_models);
    report.add_setting("repeats", options_.repeats);
    report.add_setting("repeats_max", options_.repeats_max);
    report.add_setting("precision", options_.precision);
    report.add_setting("load_average_before", load_average_);
    Json all = Json::array();
    for (const WorkRates& rates : rates_) {
      add_row(report, rates);
      for (std::size_t i = 0; i < peers_.size(); ++i) {
        if (rates.peers[i].all.empty()) continue;
        all.push_back({{"work", rates.work.title},
                       {"program", peers_[i].llama_bench},
                       {"model", peers_[i].model},
                       {"tokens_per_second", median(rates.peers[i].all)},
                       {"round_ratios", rates.peers[i].round_ratios}});
      }
    }
    report.add_detail("peers", all);
    Json left_out = Json::array();
    for (const std::string& failure : failures_) {
      if (!failure.empty()) left_out.push_back(failure);
    }
    report.add_detail("left_out", left_out);
    add_precision(report);
    return report;
  }

  void add_precision(terminal::BenchReport& report) const {
    std::vector<std::string_view> wide;
    for (const WorkRates& rates : rates_) {
      if (!is_precise(rates)) wide.push_back(rates.work.name);
    }
    const double percent = 100 * options_.precision;
    report.add_figure(
        "is_precise", wide.empty(),
        wide.empty()
            ? fmt::format("every ratio's 95 % interval is at most {:g} % wide", percent)
            : fmt::format("wider than {:g} % after {} rounds: {}", percent,
                          std::max(options_.repeats, options_.repeats_max), fmt::join(wide, ", ")));
  }

  void add_row(terminal::BenchReport& report, const WorkRates& rates) const {
    const auto [least, most] = std::ranges::minmax(rates.core_speeds);
    const std::size_t best = rates.best_peer();
    if (best == peers_.size()) {  // every peer was left out before this work
      report.add_row({rates.work.title, median(rates.ours), nullptr, nullptr, nullptr, nullptr,
                      nullptr, nullptr, nullptr, least, most});
      return;
    }
    const WorkRates::PeerRates& peer = rates.peers[best];
    const std::optional<RatioInterval> interval = rates.interval();
    using Value = terminal::ReportValue;
    report.add_row({rates.work.title, median(rates.ours), median(peer.all),
                    interval ? interval->ratio : peer.round_ratios.front(),
                    interval ? Value(interval->from) : Value(),
                    interval ? Value(interval->to) : Value(), peer.round_ratios.size(),
                    short_path(peers_[best].llama_bench),
                    std::filesystem::path(peers_[best].model).filename().string(), least, most});
  }

  const BenchPeerOptions& options_;
  const BenchRun& run_;
  BenchEngine& engine_;
  FastestCores cores_;
  std::vector<Peer> peers_;            // every program with every model
  std::vector<std::string> failures_;  // [peers], empty: none
  std::vector<WorkRates> rates_;
  std::uint64_t measurements_ = 0;
  double load_average_;  // of the minute before
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
