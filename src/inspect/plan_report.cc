#include "inspect/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "app/kv_dtype.h"
#include "app/step_defaults.h"
#include "base/byte_size.h"
#include "inspect/kv_layers_json.h"
#include "terminal/json_text.h"

namespace pagoda::inspect {
namespace {

using PlanJson = nlohmann::ordered_json;

constexpr std::array<std::int64_t, 7> kPlanTokens = {2048, 4096, 8192, 16384, 32768, 65536, 131072};
// Those that `serve` keeps, the most exact first.
constexpr std::array<std::string_view, 6> kPlanFormats = {"fp32", "bf16", "int8",
                                                          "fp8",  "k8v4", "int4"};
// `serve` takes so many ranks and sequences at once.
constexpr std::int64_t kServedRanksMax = 64;
constexpr std::int64_t kServedSequencesMax = 4096;

constexpr std::string_view kOneGpu = "Pagoda computes on one GPU today, and ranks are for CPUs";

bool is_of_several_gpus(const PlanQuestion& question) {
  return question.gpu_bytes && question.query.ranks > 1;
}

// Contexts whose requests are counted: none is longer than a model was trained on, unless a longer
// one is asked for.
std::vector<std::int64_t> counted_contexts(const PlanQuestion& question) {
  std::vector<std::int64_t> contexts(kPlanTokens.begin(), kPlanTokens.end());
  if (question.context_length == 0) return contexts;
  const std::int64_t longest = std::max(question.context_length, question.context);
  std::erase_if(contexts, [&](std::int64_t tokens) { return tokens > longest; });
  if (contexts.empty()) contexts.push_back(longest);
  return contexts;
}

std::string plan_bytes(std::int64_t bytes) {
  return fmt::format("{} bytes ({})", format_grouped(static_cast<std::uint64_t>(bytes)),
                     format_byte_size(static_cast<double>(bytes)));
}

std::string plan_count(std::int64_t count) {
  return format_grouped(static_cast<std::uint64_t>(count));
}

std::string plan_line(std::string_view label, std::string_view value) {
  return fmt::format("  {:<18}{}\n", label, value);
}

// The asked format, and those that are smaller than it.
Result<std::vector<app::KvFormat>> formats_from(const PlanQuestion& question) {
  std::vector<app::KvFormat> formats = {question.query.format};
  ASSIGN_OR_RETURN(const std::int64_t asked, app::request_bytes(question.query, question.context));
  app::MemoryQuery other = question.query;
  for (const std::string_view name : kPlanFormats) {
    other.format = *app::find_kv_format(name);
    const bool kept = std::all_of(
        other.groups.begin(), other.groups.end(),
        [&](const app::KvLayers& layers) { return app::keeps_rows(other.format, layers); });
    if (!kept) continue;
    ASSIGN_OR_RETURN(const std::int64_t bytes, app::request_bytes(other, question.context));
    if (bytes < asked) formats.push_back(other.format);
  }
  return formats;
}

std::string sum_lines(const PlanQuestion& question, const app::MemoryPlan& plan) {
  const app::MemoryQuery& query = question.query;
  const std::string each = query.ranks > 1 ? fmt::format(", each of {}", query.ranks) : "";
  std::string text;
  if (question.gpu_bytes) {
    text += plan_line("GPU", plan_bytes(*question.gpu_bytes) + each);
    text += plan_line("used of it", fmt::format("{:g}, {}", question.gpu_memory_utilization,
                                                plan_bytes(query.memory_bytes)));
  } else {
    text += plan_line("memory", plan_bytes(query.memory_bytes) + each);
  }
  text += plan_line("weights", plan_bytes(plan.weights_bytes));
  if (query.draft) text += plan_line("draft model", plan_bytes(query.draft->weights_bytes));
  if (query.workspace_bytes > 0) text += plan_line("workspace", plan_bytes(query.workspace_bytes));
  if (plan.kv_bytes < 0) {
    const bool has_workspace = query.workspace_bytes > 0;
    return text + plan_line("KV cache", fmt::format("none: {} are lacking for weights{} alone",
                                                    plan_bytes(-plan.kv_bytes),
                                                    has_workspace ? " and workspace" : ""));
  }
  text += plan_line(
      "KV cache",
      plan_bytes(plan.kv_bytes) +
          (query.draft ? fmt::format(", of the draft model {}",
                                     format_byte_size(static_cast<double>(plan.draft_kv_bytes)))
                       : ""));
  text += plan_line(
      "bytes per token",
      fmt::format("{} per sequence in {}", plan_count(plan.token_bytes), query.format.name));
  return text + plan_line("tokens", fmt::format("{} in blocks of {}", plan_count(plan.tokens),
                                                query.block_size));
}

struct PlanRow {
  app::KvFormat format;
  std::vector<std::int64_t> requests = {};  // of each counted context
};

Result<std::vector<PlanRow>> rows_from(const PlanQuestion& question) {
  ASSIGN_OR_RETURN(const std::vector<app::KvFormat> formats, formats_from(question));
  std::vector<PlanRow> rows;
  app::MemoryQuery query = question.query;
  for (const app::KvFormat& format : formats) {
    query.format = format;
    PlanRow& row = rows.emplace_back(PlanRow{.format = format});
    for (const std::int64_t tokens : counted_contexts(question)) {
      ASSIGN_OR_RETURN(row.requests.emplace_back(), app::requests_at(query, tokens));
    }
  }
  return rows;
}

std::string rows_table(const PlanQuestion& question, const std::vector<PlanRow>& rows) {
  std::string text = fmt::format("\n  {:<18}", "requests at once");
  for (const std::int64_t tokens : counted_contexts(question)) {
    text += fmt::format(
        "{:>9}", tokens % 1024 == 0 ? fmt::format("{}K", tokens / 1024) : plan_count(tokens));
  }
  for (const PlanRow& row : rows) {
    text += fmt::format("\n  {:<18}", row.format.name);
    for (const std::int64_t requests : row.requests)
      text += fmt::format("{:>9}", plan_count(requests));
  }
  return text + "\n";
}

// A PlanAdvice says what would make the asked requests fit.
struct PlanAdvice {
  bool fits = false;
  std::int64_t at_once = 0;             // of the asked context, in the asked format
  std::optional<app::KvFormat> format;  // the most exact one in which they do
  std::int64_t context = 0;             // at which they do in the asked format; 0: at none
  std::int64_t ranks = 0;               // with which they do; 0: with no number of them
};

Result<PlanAdvice> advise(const PlanQuestion& question, const std::vector<PlanRow>& rows) {
  const std::int64_t wanted = question.requests.value_or(1);
  PlanAdvice advice;
  ASSIGN_OR_RETURN(advice.at_once, app::requests_at(question.query, question.context));
  advice.fits = advice.at_once >= wanted;
  app::MemoryQuery query = question.query;
  for (const PlanRow& row : rows) {
    query.format = row.format;
    ASSIGN_OR_RETURN(const std::int64_t at, app::requests_at(query, question.context));
    if (at < wanted) continue;
    advice.format = row.format;
    break;
  }
  ASSIGN_OR_RETURN(advice.context, app::longest_context(question.query, wanted));
  if (!question.query.draft) {  // ranks refuse one
    ASSIGN_OR_RETURN(advice.ranks, app::ranks_for(question.query, question.context, wanted));
  }
  return advice;
}

// Why nothing fits, where no memory is left for a cache.
std::string lack_of_memory(const PlanQuestion& question, const app::MemoryPlan& plan) {
  const app::MemoryQuery& query = question.query;
  const auto shown = [](std::int64_t bytes) {
    return format_byte_size(static_cast<double>(bytes));
  };
  std::string taken = fmt::format("The weights ({})", shown(plan.weights_bytes));
  const bool has_workspace = query.workspace_bytes > 0;
  if (query.draft) {
    taken += fmt::format("{} the draft model ({})", has_workspace ? "," : " and",
                         shown(query.draft->weights_bytes));
  }
  if (has_workspace) taken += fmt::format(" and the workspace ({})", shown(query.workspace_bytes));
  return fmt::format("{} {} {}: no request fits.", taken,
                     plan.kv_bytes < 0 ? "exceed the memory of" : "leave nothing of",
                     shown(query.memory_bytes));
}

// Says that the question does not fit, and why.
std::string refusal_line(const PlanQuestion& question, const PlanAdvice& advice,
                         const app::MemoryPlan& plan, std::string_view asked) {
  if (plan.kv_bytes <= 0) return lack_of_memory(question, plan);
  return fmt::format("{} {} not fit in {}: {} would.", asked,
                     question.requests.value_or(1) == 1 ? "does" : "do", question.query.format.name,
                     advice.at_once == 0 ? "none" : plan_count(advice.at_once));
}

std::string advice_lines(const PlanQuestion& question, const PlanAdvice& advice,
                         const app::MemoryPlan& plan) {
  const bool is_one = question.requests.value_or(1) == 1;
  const std::string asked =
      fmt::format("{} request{} of {} tokens", plan_count(question.requests.value_or(1)),
                  is_one ? "" : "s", plan_count(question.context));
  if (advice.fits) {
    return fmt::format("\n{} fit{} in {}: {} would.\n", asked, is_one ? "s" : "",
                       question.query.format.name, plan_count(advice.at_once));
  }
  std::string text = "\n" + refusal_line(question, advice, plan, asked);
  if (!advice.format && advice.context == 0 && advice.ranks <= question.query.ranks) {
    return text + (plan.kv_bytes > 0
                       ? " Neither a smaller KV dtype nor a shorter context alone is enough.\n"
                       : "\n");
  }
  text += is_one ? " It fits\n" : " They fit\n";
  if (advice.format) text += fmt::format("  as {} KV, in the same memory\n", advice.format->name);
  if (advice.context > 0) {
    text += fmt::format("  with at most {} tokens each\n", plan_count(advice.context));
  }
  if (advice.ranks > question.query.ranks && question.gpu_bytes) {
    text +=
        fmt::format("  on {} such GPUs, if it computed on several: {}\n", advice.ranks, kOneGpu);
  } else if (advice.ranks > question.query.ranks && advice.ranks <= kServedRanksMax) {
    text += fmt::format("  on {} ranks with as much memory each (`tensor_parallel_size`)\n",
                        advice.ranks);
  }
  return text;
}

// Does `serve` keep KV in the format on this device? A GPU has no fp32 KV.
bool is_served(const PlanQuestion& question, const app::KvFormat& format) {
  return app::parse_kv_dtype(format.name).ok() && !(question.gpu_bytes && format.name == "fp32");
}

// How large the steps of `serve` are with so many sequences at once, or if it is not told.
app::StepChoice steps_of(const PlanQuestion& question, std::optional<std::int64_t> sequences) {
  const auto bytes =
      static_cast<std::uint64_t>(std::max<std::int64_t>(question.gpu_bytes.value_or(0), 0));
  app::StepFlags flags;
  if (sequences) flags.sequences_max = static_cast<std::uint32_t>(*sequences);
  return app::choose_steps(flags, {.gpu_bytes = bytes});
}

// The most tokens of a prompt that a server computes before windows forget: a GPU launches the next
// step while one runs.
std::int64_t chunk_tokens_of(const PlanQuestion& question) {
  const std::int64_t step = steps_of(question, question.requests).batched_tokens_max;
  return question.gpu_bytes ? 2 * step : step;
}

// A size that is exactly so many bytes, in the largest unit that it is a multiple of.
std::string exact_size(std::int64_t bytes) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 6> kUnits = {{
      {"GiB", std::int64_t{1} << 30},
      {"GB", 1'000'000'000},
      {"MiB", 1 << 20},
      {"MB", 1'000'000},
      {"KiB", 1 << 10},
      {"KB", 1'000},
  }};
  for (const auto& [name, unit] : kUnits) {
    if (bytes % unit == 0) return fmt::format("{}{}", bytes / unit, name);
  }
  return fmt::format("{}B", bytes);
}

// The line to serve it with: what was asked where that fits, else in a format or with a context
// that makes it fit; empty where nothing does, and where `serve` would refuse it.
Result<std::string> serve_line(const PlanQuestion& question, const PlanAdvice& advice,
                               const app::MemoryPlan& plan) {
  if (plan.kv_bytes <= 0 || (!advice.format && advice.context == 0)) return std::string();
  const app::KvFormat& format = advice.format ? *advice.format : question.query.format;
  // More sequences than it would choose take workspace of a GPU that is not in the plan.
  const std::int64_t most =
      question.gpu_bytes ? std::int64_t{steps_of(question, {}).sequences_max} : kServedSequencesMax;
  const std::int64_t requests =
      question.requests.value_or(std::clamp<std::int64_t>(advice.at_once, 1, most));
  if (is_of_several_gpus(question) || question.query.ranks > kServedRanksMax ||
      requests > kServedSequencesMax || !is_served(question, format)) {
    return std::string();
  }
  const std::string model = question.model.empty() ? "MODEL" : question.model;
  std::string line = fmt::format("pagoda serve {} `device={}` `max_model_len={}`", model,
                                 question.gpu_bytes ? "cuda" : "cpu",
                                 advice.format ? question.context : advice.context);
  line += fmt::format(" `max_num_seqs={}`", requests);
  const std::uint32_t tokens = steps_of(question, requests).batched_tokens_max;
  if (tokens != steps_of(question, {}).batched_tokens_max) {
    line += fmt::format(" `max_num_batched_tokens={}`", tokens);
  }
  line += fmt::format(" `kv_cache_dtype={}`", format.name);
  if (question.gpu_bytes) {
    line += fmt::format(" `gpu_memory_utilization={:g}`", question.gpu_memory_utilization);
  } else {
    app::MemoryQuery served = question.query;
    served.format = format;
    ASSIGN_OR_RETURN(const std::int64_t bytes, app::served_kv_bytes(served));
    line += fmt::format(" `kv_cache_memory_bytes={}`", exact_size(bytes));
  }
  if (question.query.draft) line += fmt::format(" `model_draft={}`", question.draft_model);
  if (question.query.ranks > 1) {
    line += fmt::format(" `tensor_parallel_size={}`", question.query.ranks);
  }
  return line;
}

PlanJson json_of(const PlanQuestion& question, const app::MemoryPlan& plan,
                 const std::vector<PlanRow>& rows, const PlanAdvice& advice,
                 const std::string& line) {
  PlanJson json;
  if (!question.model.empty()) json["model"] = question.model;
  json["memory_bytes"] = question.query.memory_bytes;
  json["weights_bytes"] = plan.weights_bytes;
  json["workspace_bytes"] = question.query.workspace_bytes;
  json["kv_bytes"] = plan.kv_bytes;
  if (question.query.draft) {
    json["draft_model"] = question.draft_model;
    json["draft_weights_bytes"] = question.query.draft->weights_bytes;
    json["draft_kv_bytes"] = plan.draft_kv_bytes;
  }
  json["tensor_parallel_size"] = question.query.ranks;
  json["dtype"] = question.query.format.name;
  json["bytes_per_token"] = plan.token_bytes;
  json["tokens"] = plan.tokens;
  for (const app::KvLayers& group : question.query.groups) {
    json["layer_groups"].push_back(kv_layers_json(group));
  }
  const std::vector<std::int64_t> contexts = counted_contexts(question);
  for (const PlanRow& row : rows) {
    for (std::size_t i = 0; i < contexts.size(); ++i) {
      json["requests_at_once"].push_back(
          {{"dtype", row.format.name}, {"tokens", contexts[i]}, {"requests", row.requests[i]}});
    }
  }
  json["context"] = question.context;
  json["requests"] = question.requests ? PlanJson(*question.requests) : PlanJson();
  json["fits"] = advice.fits;
  json["would_fit"] = {{"dtype", advice.format ? PlanJson(advice.format->name) : PlanJson()},
                       {"context", advice.context},
                       {"tensor_parallel_size", advice.ranks}};
  json["serve"] = line;
  return json;
}

}  // namespace

Result<SizeReport> plan_report(const PlanQuestion& asked) {
  PlanQuestion question = asked;
  question.query.chunk_tokens = chunk_tokens_of(question);
  ASSIGN_OR_RETURN(const app::MemoryPlan plan, app::plan_memory(question.query));
  ASSIGN_OR_RETURN(const std::vector<PlanRow> rows, rows_from(question));
  ASSIGN_OR_RETURN(const PlanAdvice advice, advise(question, rows));
  std::string text =
      fmt::format("Memory of {}\n", question.model.empty() ? "a shape" : question.model);
  text +=
      sum_lines(question, plan) + rows_table(question, rows) + advice_lines(question, advice, plan);
  if (question.context_length > 0 && question.context > question.context_length) {
    text += fmt::format("The model was trained on {} tokens of context.\n",
                        plan_count(question.context_length));
  }
  if (is_of_several_gpus(question)) {
    text += fmt::format("{}: these numbers are for comparison.\n", kOneGpu);
  }
  ASSIGN_OR_RETURN(const std::string line, serve_line(question, advice, plan));
  if (!line.empty()) text += "\n" + line + "\n";
  return SizeReport{std::move(text),
                    terminal::json_text(json_of(question, plan, rows, advice, line))};
}

}  // namespace pagoda::inspect
