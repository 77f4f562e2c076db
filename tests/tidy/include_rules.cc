#include "tidy/include_rules.h"

#include <algorithm>
#include <array>
#include <set>

namespace pagoda::tidy {
namespace {

struct Arrows {
  std::string_view from;             // a folder of src/, or the beginning of a file's path
  std::vector<std::string_view> to;  // folders end in '/', everything else is one header
};

// The longest `from` that fits decides; a folder may always include itself.
const std::vector<Arrows>& arrow_table() {
  static const std::vector<Arrows> kTable = {
      {"base/", {}},
      {"process/", {"base/"}},
      {"ranks/", {"base/", "process/"}},
      {"kv/", {"base/"}},
      {"kv/memory/", {"base/", "kv/ids.h"}},
      {"gguf/", {"base/"}},
      {"device/", {"base/"}},
      {"store/", {"base/", "kv/", "net/"}},
      {"kernels/", {"base/", "kv/memory/", "gguf/tensor_type.h"}},
      {"kernels/cuda/", {"base/", "device/", "kernels/", "kv/memory/", "gguf/tensor_type.h"}},
      {"model/",
       {"base/", "device/", "gguf/", "kernels/exp.h", "kernels/hadamard.h", "kernels/ops.h",
        "kernels/routing.h", "kernels/cuda/ops.h", "kernels/cuda/expert_ops.h",
        "kernels/cuda/digest.h", "kv/memory/", "ranks/communicator.h"}},
      {"text/", {"base/", "gguf/"}},
      {"structured/", {"base/"}},
      {"chat/", {"base/", "text/"}},
      {"hf/", {"base/", "gguf/", "text/"}},
      {"sched/", {"base/", "kv/"}},
      {"speculate/", {"base/", "kv/"}},
      {"engine/",
       {"base/", "kernels/ops.h", "kv/", "model/decoder.h", "sched/", "speculate/", "structured/"}},
      {"engine/backends/",
       {"base/", "device/", "engine/", "kernels/cuda/ops.h", "kv/", "model/", "ranks/", "sched/",
        "speculate/"}},
      {"events/", {"base/", "kv/events/", "kv/memory/cache_groups.h"}},
      {"server/",
       {"base/", "chat/", "text/", "structured/", "engine/engine.h", "engine/request.h",
        "engine/reply.h", "engine/distributions.h", "engine/snapshot.h", "engine/tenant.h",
        "kv/explanation.h", "kv/cache_snapshot.h", "kv/retention.h", "kv/curve.h", "kv/kv_policy.h",
        "kv/retained_accounts.h"}},
      {"net/", {"base/"}},
      {"terminal/", {"base/"}},
      {"app/",
       {"base/", "chat/", "engine/", "events/", "gguf/", "hf/", "kernels/", "kv/", "model/", "net/",
        "process/", "ranks/", "server/", "speculate/options.h", "store/", "structured/",
        "terminal/", "text/"}},
      {"replay/", {"base/", "kv/", "terminal/"}},
      {"loadgen/", {"base/", "net/", "replay/", "terminal/"}},
      {"bench/",
       {"app/", "base/", "engine/", "gguf/", "kernels/", "kv/", "loadgen/", "model/", "process/",
        "speculate/", "store/", "structured/", "terminal/"}},
      {"eval/",
       {"app/", "base/", "chat/", "engine/", "gguf/", "kernels/", "kv/", "model/", "structured/",
        "terminal/", "text/"}},
      {"verify/", {"app/", "base/", "engine/", "kernels/", "kv/", "speculate/", "terminal/"}},
      {"inspect/",
       {"app/", "base/", "chat/", "gguf/", "kernels/", "net/", "store/", "terminal/", "text/"}},
      {"serve/",
       {"app/", "base/", "chat/", "engine/", "eval/", "gguf/", "hf/", "kernels/", "kv/", "process/",
        "server/", "terminal/", "text/"}},
      {"rank/", {"app/", "base/", "ranks/"}},
      {"cli/", {"app/",     "base/",   "bench/",    "chat/",    "engine/",  "speculate/options.h",
                "eval/",    "gguf/",   "hf/",       "inspect/", "kernels/", "kv/",
                "loadgen/", "model/",  "net/",      "process/", "ranks/",   "replay/",
                "serve/",   "server/", "terminal/", "text/",    "verify/"}},
      {"python/",
       {"app/", "base/", "chat/", "engine/", "kernels/", "kv/", "replay/", "server/", "terminal/",
        "text/"}},
  };
  return kTable;
}

// The flag library costs each file that includes it seconds: these do.
constexpr std::string_view kFlagLibrary = "CLI/";
constexpr std::array<std::string_view, 4> kFlagFiles = {
    "src/cli/flags.cc", "src/cli/flag_spelling.cc", "src/cli/flag_variables.cc",
    "src/cli/help_format.cc"};

constexpr std::array<std::string_view, 5> kHostLibraries = {"fmt/", "boost/", "nlohmann/",
                                                            "spdlog/", "CLI/"};

const Arrows* arrows_of(std::string_view path) {
  const Arrows* best = nullptr;
  for (const Arrows& row : arrow_table()) {
    const bool longer = best == nullptr || row.from.size() > best->from.size();
    if (path.starts_with(row.from) && longer) best = &row;
  }
  return best;
}

bool fits(std::string_view include, std::string_view to) {
  return to.ends_with('/') ? include.starts_with(to) : include == to;
}

bool allowed(const Arrows& row, std::string_view include) {
  if (row.from.ends_with('/') && include.starts_with(row.from)) return true;
  return std::any_of(row.to.begin(), row.to.end(),
                     [&](std::string_view to) { return fits(include, to); });
}

std::string listed(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text.empty() ? "nothing else" : text;
}

bool is_host_library(std::string_view path) {
  return std::any_of(kHostLibraries.begin(), kHostLibraries.end(),
                     [&](std::string_view library) { return path.starts_with(library); });
}

// Follows includes from one file; each file once.
class Reach {
 public:
  explicit Reach(const Sources& sources) : sources_(sources) {}

  void follow(const SourceText& source, int first_line, const std::string& chain) {
    for (const Include& include : list_includes(source)) {
      const int line = first_line == 0 ? include.line : first_line;
      const std::string longer = chain + " -> " + include.path;
      if (is_host_library(include.path)) findings_.push_back({line, longer});
      for (const std::string_view root : {"src/", "tests/", "microbench/"}) {
        const auto found = sources_.find(std::string(root) + include.path);
        if (!include.quoted || found == sources_.end()) continue;
        if (seen_.insert(found->first).second) follow(found->second, line, longer);
      }
    }
  }

  Findings take() { return std::move(findings_); }

 private:
  const Sources& sources_;
  std::set<std::string> seen_;
  Findings findings_;
};

}  // namespace

std::vector<Include> list_includes(const SourceText& source) {
  std::vector<Include> includes;
  int number = 0;
  for (std::string_view line : split_lines(source.literals)) {
    ++number;
    line = trimmed(line);
    if (!line.starts_with('#')) continue;
    line = trimmed(line.substr(1));
    if (!line.starts_with("include")) continue;
    line = trimmed(line.substr(7));
    const bool quoted = line.starts_with('"');
    if (!quoted && !line.starts_with('<')) continue;
    const std::size_t end = line.find(quoted ? '"' : '>', 1);
    if (end == std::string_view::npos) continue;
    includes.push_back({number, std::string(line.substr(1, end - 1)), quoted});
  }
  return includes;
}

Findings wrong_arrows(const SourceText& source) {
  const std::string_view path = source.path;
  for (const std::string_view free : {"tests/", "microbench/", "docs/examples/"}) {
    if (path.starts_with(free)) return {};
  }
  const Arrows* const row = path.starts_with("src/") ? arrows_of(path.substr(4)) : nullptr;
  if (row == nullptr) return {{1, "in no folder that the table of arrows knows"}};
  Findings findings;
  for (const Include& include : list_includes(source)) {
    const bool may_have_flags =
        std::find(kFlagFiles.begin(), kFlagFiles.end(), path) != kFlagFiles.end();
    if (include.path.starts_with(kFlagLibrary) && !may_have_flags) {
      findings.push_back({include.line, "<" + include.path + "> stands behind cli/flags.h"});
    }
    const bool ours = include.quoted || arrows_of(include.path) != nullptr;
    if (!ours || allowed(*row, include.path)) continue;
    if (!include.quoted) {
      findings.push_back({include.line, "<" + include.path + "> is ours and wants quotes"});
    } else if (arrows_of(include.path) == nullptr) {
      findings.push_back({include.line, "\"" + include.path + "\" is not a path from src/"});
    } else {
      findings.push_back({include.line, std::string(row->from) + " may not include \"" +
                                            include.path + "\", only " + listed(row->to)});
    }
  }
  return findings;
}

std::vector<std::string> unused_arrows(const Sources& sources) {
  std::set<std::pair<std::string_view, std::string_view>> used;  // (from, to)
  for (const auto& [path, source] : sources) {
    const std::string_view all = path;
    const Arrows* const row = all.starts_with("src/") ? arrows_of(all.substr(4)) : nullptr;
    if (row == nullptr) continue;
    for (const Include& include : list_includes(source)) {
      for (const std::string_view to : row->to) {
        if (include.quoted && fits(include.path, to)) used.emplace(row->from, to);
      }
    }
  }
  std::vector<std::string> unused;
  for (const Arrows& row : arrow_table()) {
    for (const std::string_view to : row.to) {
      if (used.contains({row.from, to})) continue;
      unused.push_back(std::string(row.from) + " -> " + std::string(to));
    }
  }
  return unused;
}

Findings host_libraries_in_cuda(const SourceText& source, const Sources& sources) {
  const std::string_view end = extension(source.path);
  if (end != "cu" && end != "cuh") return {};
  Reach reach(sources);
  reach.follow(source, 0, source.path);
  return reach.take();
}

}  // namespace pagoda::tidy
