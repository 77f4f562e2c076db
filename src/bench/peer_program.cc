#include "bench/peer_program.h"
#include "process/program_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>


namespace pagoda::bench {
namespace {

using PeerJson = nlohmann::json;

bool is_batched(const Work& work) { return work.sequences > 1; }

Error not_understood(const std::string& printed) {
  constexpr std::size_t kExcerpt = 60;
  return {ErrorCode::kCorrupt,
          fmt::format("what it printed is not understood: {:?}{}", printed.substr(0, kExcerpt),
                      printed.size() > kExcerpt ? "…" : "")};
}

// Is `test` about this many tokens? Fields that are missing or of another kind are no answer.
bool says(const PeerJson& test, const char* field, std::uint64_t tokens) {
  const auto found = test.find(field);
  return found != test.end() && found->is_number_unsigned() &&
         found->get<std::uint64_t>() == tokens;
}

bool is_rate(const PeerJson& value) { return value.is_number() && value.get<double>() > 0; }

Result<std::vector<double>> read_tests(const Work& work, const std::string& printed) {
  const PeerJson tests = PeerJson::parse(printed, nullptr, false);
  if (!tests.is_array() || tests.size() != 1 || !tests[0].is_object()) {
    return not_understood(printed);
  }
  const PeerJson& test = tests[0];
  const auto samples = test.find("samples_ts");
  const bool understood =
      says(test, "n_prompt", work.prompt_tokens) && says(test, "n_gen", work.new_tokens) &&
      says(test, "n_depth", work.depth) && samples != test.end() && samples->is_array() &&
      !samples->empty() && std::all_of(samples->begin(), samples->end(), is_rate);
  if (!understood) return not_understood(printed);
  return samples->get<std::vector<double>>();
}

// Lines that are objects, among others.
Result<std::vector<double>> read_batches(const Work& work, const std::string& printed) {
  std::vector<double> rates;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('{')) continue;
    const PeerJson test = PeerJson::parse(line, nullptr, false);
    if (!test.is_object() || !says(test, "pp", work.depth) || !says(test, "tg", work.new_tokens) ||
        !says(test, "pl", work.sequences) || !is_rate(test.value("speed_tg", PeerJson()))) {
      return not_understood(line);
    }
    rates.push_back(test["speed_tg"].get<double>());
  }
  if (rates.empty()) return not_understood(printed);
  return rates;
}

}  // namespace

std::string short_path(const std::string& path) {
  const std::filesystem::path whole(path);
  return (whole.parent_path().filename() / whole.filename()).string();
}

std::string Peer::program_for(const Work& work) const {
  if (!is_batched(work)) return llama_bench;
  return (std::filesystem::path(llama_bench).parent_path() / "llama-batched-bench").string();
}

std::string Peer::name() const {
  return fmt::format("{}, {}", short_path(llama_bench),
                     std::filesystem::path(model).filename().string());
}

std::vector<std::string> peer_command(const Peer& peer, const Work& work,
                                      const PeerSettings& settings) {
  std::vector<std::string> words = {peer.program_for(work), "-m", peer.model};
  const auto add = [&](const char* flag, std::uint64_t value) {
    words.emplace_back(flag);
    words.push_back(std::to_string(value));
  };
  add("-t", settings.threads);
  add("-b", settings.batched_tokens_max);
  add("-ub", settings.batched_tokens_max);
  if (is_batched(work)) {
    const std::vector<std::uint32_t> again(settings.tries, work.sequences);
    add("-npp", work.depth);
    add("-ntg", work.new_tokens);
    // Measured once for each number in the list.
    words.insert(words.end(), {"-npl", fmt::format("{}", fmt::join(again, ","))});
    add("-c", std::uint64_t{work.sequences} * (work.depth + work.new_tokens));
    words.insert(words.end(), {"--output-format", "jsonl"});
    return words;
  }
  add("-p", work.prompt_tokens);
  add("-n", work.new_tokens);
  add("-d", work.depth);
  add("-r", settings.tries);
  words.insert(words.end(), {"-o", "json"});
  return words;
}

Result<std::vector<double>> read_peer_rates(const Work& work, const std::string& printed) {
  return is_batched(work) ? read_batches(work, printed) : read_tests(work, printed);
}

Result<std::vector<double>> measure_peer(const Peer& peer, const Work& work,
                                         const PeerSettings& settings,
                                         const std::function<bool()>& stopped) {
  ASSIGN_OR_RETURN(const process::ProgramOutput output,
                   process::run_program(peer_command(peer, work, settings), stopped));
  if (!output.succeeded()) {
    return Error{ErrorCode::kIo, fmt::format("{} {}", peer.program_for(work), output.end())};
  }
  Result<std::vector<double>> rates = read_peer_rates(work, output.out);
  if (rates.ok()) return rates;
  return Error{rates.error().code,
               fmt::format("{}: {}", peer.program_for(work), rates.error().message)};
}

}  // namespace pagoda::bench
