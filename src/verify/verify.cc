#include "verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/machine.h"
#include "app/synthetic_request.h"
#include "kernels/select.h"
#include "terminal/json_text.h"
#include "terminal/messages.h"
#include "terminal/progress_bar.h"
#include "verify/ways.h"

namespace pagoda::verify {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kInterrupted = 130;  // what shells expect after Ctrl-C

// A row of the table.
struct WayRow {
  std::string name;
  std::string digest;    // empty where the way is lacking
  std::string evidence;  // or what is lacking
  bool is_lacking = false;
  std::optional<OutputDifference> difference;
};

class Verification {
 public:
  Verification(const VerifyOptions& options, const VerifyHarness& harness)
      : options_(options), harness_(harness) {}

  // Stops behind the first difference.
  Status run() {
    const std::vector<Way> ways = verified_ways(harness_);
    terminal::ProgressBar progress("verifying", "ways", harness_.clock());
    for (std::size_t i = 0; i < ways.size() && !differs(); ++i) {
      progress.show(i, ways.size());
      Result<WayResult> answers = ways[i].go(harness_);
      if (!answers.ok()) {
        return Error{answers.error().code,
                     fmt::format("{}: {}", ways[i].name, answers.error().message)};
      }
      if (i == 0) expected_ = answers.value().rounds[0];
      add_row(ways[i].name, answers.value());
    }
    return ok_status();
  }

  bool differs() const { return !rows_.empty() && rows_.back().difference.has_value(); }

  std::string difference_text() const {
    const WayRow& row = rows_.back();
    const OutputDifference& found = *row.difference;
    return fmt::format("{} differs from {} in prompt {} at position {}: {} instead of {}", row.name,
                       rows_.front().name, found.question + 1, found.position, found.got,
                       found.expected);
  }

  std::string table() const {
    std::string text = fmt::format("{:<12} {:<32}  {}\n", "way", "digest", "how");
    std::size_t shown = 0;
    for (const WayRow& row : rows_) {
      if (row.is_lacking) continue;
      text += fmt::format("{:<12} {:<32}  {}{}\n", row.name, row.digest, row.evidence,
                          row.difference ? "  DIFFERS" : "");
      ++shown;
    }
    for (const WayRow& row : rows_) {
      if (row.is_lacking) text += fmt::format("{:<12} not here: {}\n", row.name, row.evidence);
    }
    if (!differs()) {
      text += fmt::format("{} ways, the same {} tokens and log-probabilities to the last bit\n",
                          shown, tokens());
    }
    return text;
  }

  Json json(const terminal::BenchMachine& machine) const {
    Json ways = Json::array();
    for (const WayRow& row : rows_) {
      ways.push_back({{"way", row.name},
                      {"shown", !row.is_lacking},
                      {"digest", row.is_lacking ? Json() : Json(row.digest)},
                      {"equal", row.is_lacking ? Json() : Json(!row.difference.has_value())},
                      {"note", row.evidence}});
    }
    Json difference;
    if (differs()) {
      const OutputDifference& found = *rows_.back().difference;
      difference = {{"way", rows_.back().name},
                    {"question", found.question + 1},
                    {"position", found.position},
                    {"got", found.got},
                    {"expected", found.expected}};
    }
    return {
        {"model", std::filesystem::path(options_.model).filename().string()},
        {"machine", {{"cpu", machine.cpu}, {"kernels", machine.kernels}, {"build", machine.build}}},
        {"equal", !differs()},
        {"tokens", tokens()},
        {"difference", std::move(difference)},
        {"ways", std::move(ways)}};
  }

 private:
  void add_row(const std::string& name, const WayResult& answers) {
    WayRow row{name, {}, answers.evidence, false, {}};
    if (!answers.rounds.empty()) row.digest = digest_of(answers.rounds.back());
    // Outputs are compared also where this machine could not show the way (`lacking`).
    for (const std::vector<VerifiedOutput>& round : answers.rounds) {
      row.difference = first_difference(round, expected_);
      if (!row.difference) continue;
      row.digest = digest_of(round);
      break;
    }
    if (!answers.lacking.empty() && !row.difference) {
      row.is_lacking = true;
      row.evidence = answers.lacking;
    }
    rows_.push_back(std::move(row));
  }

  std::size_t tokens() const {
    std::size_t count = 0;
    for (const VerifiedOutput& answer : expected_) count += answer.scores.size();
    return count;
  }

  const VerifyOptions& options_;
  const VerifyHarness& harness_;
  std::vector<VerifiedOutput> expected_;
  std::vector<WayRow> rows_;
};

}  // namespace

int verify(const VerifyOptions& options) {
  const auto fail_with = [](const std::string& message) {
    terminal::print_error(message);
    return 1;
  };
  const Result<const kernels::KernelSet*> kernels = kernels::select_set();
  if (!kernels.ok()) return fail_with(kernels.error().message);
  const auto model = app::LoadedModel::load(options.model, *kernels.value());
  if (!model.ok()) return fail_with(model.error().message);
  const Status fits = app::check_context(fmt::format("`prompt_tokens={}` and `new_tokens={}`",
                                                     options.prompt_tokens, options.new_tokens),
                                         std::uint64_t{options.prompt_tokens} + options.new_tokens,
                                         model.value()->config().context);
  if (!fits.ok()) {
    terminal::print_error(fits.error().message);
    return 2;
  }
  const VerifyHarness harness(options, *model.value(), *kernels.value());
  Verification verification(options, harness);
  const Status outcome = verification.run();
  if (harness.interrupted()) {
    terminal::print_error("interrupted");
    return kInterrupted;
  }
  if (!outcome.ok()) return fail_with(outcome.error().message);
  fmt::print(
      "{}",
      options.json
          ? terminal::json_text(verification.json(app::describe_machine(*kernels.value()))) + "\n"
          : verification.table());
  std::fflush(stdout);
  return verification.differs() ? fail_with(verification.difference_text()) : 0;
}

}  // namespace pagoda::verify
