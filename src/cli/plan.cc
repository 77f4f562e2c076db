// pagoda plan: what fits into a machine's or GPU's memory. Flags in, one report out.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "app/kv_size.h"
#include "app/loaded_model.h"
#include "app/step_defaults.h"
#include "base/result.h"
#include "cli/commands.h"
#include "cli/kv_format_flag.h"
#include "cli/options.h"
#include "gguf/file.h"
#include "inspect/plan_report.h"

namespace pagoda::cli {
namespace {

constexpr const char* kPlanExamples = R"(Examples:
  pagoda plan --model Qwen2.5-7B-Instruct-Q4_0.gguf --gpu 80GiB --requests 24
  pagoda plan --model SmolLM2-135M-Instruct.Q4_1.gguf --memory 2GiB --context 2048 --kv int8
  pagoda plan --model large.gguf --model-draft small.gguf --memory 16GiB
  pagoda plan --weights 140GB --memory 320GB --num-layers 80 --num-kv-heads 64 --kv fp16
      a shape: 33 requests of 2K tokens at once, none of 128K
  pagoda plan --weights 140GB --gpu 80GB --num-layers 80 --tensor-parallel-size 4
      four GPUs, for comparison: Pagoda computes on one GPU today, and ranks are for CPUs
--memory is all that weights and cache may take; of --gpu a share is used, as `pagoda serve` does,
and --workspace is left for the CUDA runtime and what a step computes in.)";

constexpr std::uint64_t kKvHeadsDefault = 8;
constexpr std::int64_t kContextDefault = 8192;
constexpr std::uint64_t kPlanNumberMax = std::uint64_t{1} << 30;

struct PlanFlags {
  std::string model;
  std::string draft_model;
  std::optional<std::uint64_t> gpu;
  std::optional<std::uint64_t> memory;
  std::optional<std::uint64_t> weights;
  std::optional<std::uint64_t> workspace;
  double gpu_memory_utilization = 0.92;
  std::uint64_t context = kContextDefault;
  std::string format = "bf16";
  std::string element_bytes;  // empty: `format` says it
  std::optional<std::uint64_t> requests;
  std::uint64_t ranks = 1;
  std::uint64_t layers = 32;
  std::optional<std::uint64_t> kv_heads;
  std::optional<std::uint64_t> query_heads;
  std::uint64_t head_dim = 128;
  std::uint64_t block_size = 16;
  bool json = false;
};

// The model's part of the question: layers, weights and trained context.
Status read_model(const PlanFlags& flags, inspect::PlanQuestion& question) {
  const auto failed = [](const Error& error) {
    return Error{ErrorCode::kCorrupt, fmt::format("--model: {}", error.message)};
  };
  const Result<gguf::File> file = app::open_model_file(flags.model);
  if (!file.ok()) return failed(file.error());
  Result<app::KvModel> model = app::read_kv_model(file.value());
  if (!model.ok()) return failed(model.error());
  question.model = flags.model;
  question.query.groups = std::move(model.value().groups);
  question.context_length = model.value().context_length;
  question.query.weights_bytes = app::weights_in_file(file.value());
  return ok_status();
}

// The draft model's part of the question: its layers and weights.
Status read_draft_model(const PlanFlags& flags, inspect::PlanQuestion& question) {
  if (flags.ranks > 1) {
    return invalid("--model-draft: ranks do not take one; --tensor-parallel-size 1 does");
  }
  const auto failed = [](const Error& error) {
    return Error{ErrorCode::kCorrupt, fmt::format("--model-draft: {}", error.message)};
  };
  const Result<gguf::File> file = app::open_model_file(flags.draft_model);
  if (!file.ok()) return failed(file.error());
  Result<app::KvModel> model = app::read_kv_model(file.value());
  if (!model.ok()) return failed(model.error());
  question.draft_model = flags.draft_model;
  question.query.draft = app::DraftMemory{.groups = std::move(model.value().groups),
                                          .weights_bytes = app::weights_in_file(file.value())};
  return ok_status();
}

Result<std::int64_t> bytes_of(const std::optional<std::uint64_t>& bytes, std::int64_t fallback,
                              const char* flag) {
  if (!bytes) return fallback;
  if (*bytes <= std::numeric_limits<std::int64_t>::max()) return static_cast<std::int64_t>(*bytes);
  return invalid(fmt::format("{}: {} is more than 2^63 - 1 bytes", flag, *bytes));
}

// An allowance: where steps are larger (app/step_defaults.h) what they compute in is, too.
std::int64_t workspace_of(const std::optional<std::uint64_t>& gpu_bytes) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  if (!gpu_bytes) return 0;
  return app::choose_steps({}, {.gpu_bytes = *gpu_bytes}).batched_tokens_max > 4096 ? 2 * kGiB
                                                                                    : kGiB;
}

Result<inspect::PlanQuestion> understand_plan(const PlanFlags& flags, bool context_given) {
  inspect::PlanQuestion question;
  app::MemoryQuery& query = question.query;
  if (flags.gpu.has_value() == flags.memory.has_value()) {
    return invalid("one of --gpu and --memory says how much there is");
  }
  if (!flags.model.empty()) {
    RETURN_IF_ERROR(read_model(flags, question));
  } else if (!flags.weights) {
    return invalid("--model or, of a shape, --weights is needed");
  } else {
    const auto layers = static_cast<std::int64_t>(flags.layers);
    query.groups = {{.layers = layers,
                     .kv_heads = static_cast<std::int64_t>(
                         flags.kv_heads.value_or(flags.query_heads.value_or(kKvHeadsDefault))),
                     .key_dim = static_cast<std::int64_t>(flags.head_dim),
                     .value_dim = static_cast<std::int64_t>(flags.head_dim)}};
  }
  if (!flags.draft_model.empty()) RETURN_IF_ERROR(read_draft_model(flags, question));
  ASSIGN_OR_RETURN(query.format, flags.element_bytes.empty()
                                     ? kv_format_named("--kv", flags.format)
                                     : kv_format_of_bytes(flags.element_bytes));
  query.ranks = static_cast<std::int64_t>(flags.ranks);
  query.block_size = static_cast<std::int64_t>(flags.block_size);
  ASSIGN_OR_RETURN(query.weights_bytes, bytes_of(flags.weights, query.weights_bytes, "--weights"));
  ASSIGN_OR_RETURN(query.workspace_bytes,
                   bytes_of(flags.workspace, workspace_of(flags.gpu), "--workspace"));
  ASSIGN_OR_RETURN(query.memory_bytes, bytes_of(flags.memory, 0, "--memory"));
  if (flags.gpu) {
    ASSIGN_OR_RETURN(const std::int64_t all, bytes_of(flags.gpu, 0, "--gpu"));
    question.gpu_bytes = all;
    question.gpu_memory_utilization = flags.gpu_memory_utilization;
    query.memory_bytes =
        static_cast<std::int64_t>(static_cast<double>(all) * flags.gpu_memory_utilization);
  }
  question.context = static_cast<std::int64_t>(flags.context);
  if (question.context == 0) {  // the model's own, as llama.cpp means it
    question.context = question.context_length > 0 ? question.context_length : kContextDefault;
  }
  if (!context_given && question.context_length > 0) {
    question.context = std::min(question.context, question.context_length);
  }
  if (flags.requests) question.requests = static_cast<std::int64_t>(*flags.requests);
  return question;
}

int print_plan(const PlanFlags& flags, bool context_given) {
  const Result<inspect::PlanQuestion> question = understand_plan(flags, context_given);
  const Result<inspect::SizeReport> report =
      question.ok() ? inspect::plan_report(question.value()) : question.error();
  if (!report.ok()) {
    print_error(report.error().message);
    const ErrorCode code = report.error().code;
    return code == ErrorCode::kInvalidArgument || code == ErrorCode::kOutOfRange ? 2 : 1;
  }
  fmt::print("{}", terminal::worded(flags.json ? report.value().json + "\n" : report.value().text));
  return 0;
}

}  // namespace

void add_plan_command(const CommandSpec& app, int& exit_status) {
  const CommandSpec command = app.add_subcommand(
      "plan", "What fits into memory: weights, cache and requests at once, and what would help");
  command.footer(kPlanExamples);
  const auto flags = std::make_shared<PlanFlags>();
  command.add_option("-m,--model,MODEL", flags->model,
                     "a GGUF file, a folder or a name; else a shape by its numbers");
  command
      .add_option("--model-draft,--spec-draft-model", flags->draft_model,
                  "a draft model beside it, as serve takes it: its weights, and a cache of as many "
                  "tokens")
      .type_name("MODEL");
  command.add_byte_size("--gpu", flags->gpu, "memory of a GPU, of each with several").capacity();
  command
      .add_byte_size("--memory", flags->memory,
                     "instead: bytes that weights and cache may take, all of them")
      .capacity();
  command
      .add_option("--gpu-memory-utilization", flags->gpu_memory_utilization,
                  "share of --gpu that is used (0.92)")
      .range(0.01, 1.0);
  const Flag context = command.add_option(
      "-c,--context,--max-model-len,--sequence-length", flags->context,
      "tokens of a request, prompt and output (8192, or as trained); 0: as trained");
  context.token_count(0, kPlanNumberMax);
  command.add_option("--kv,--kv-cache-dtype,--dtype", flags->format, kKvFormatHelp)
      .type_name("TYPE");
  command.add_option(kElementBytesFlag, flags->element_bytes, kElementBytesHelp)
      .type_name("N")
      .excludes("--kv");
  command
      .add_option("--requests,--max-num-seqs,--batch-size", flags->requests,
                  "requests that should fit at once")
      .range(std::uint64_t{1}, kPlanNumberMax);
  command
      .add_option("--tensor-parallel-size,--tp-size", flags->ranks,
                  "ranks that weights and KV heads divide over; of GPUs for comparison alone (1)")
      .range(std::uint64_t{1}, std::uint64_t{1024});
  command.add_byte_size("--weights", flags->weights, "bytes of the weights (the model's)")
      .capacity();
  command
      .add_byte_size(
          "--workspace", flags->workspace,
          "bytes besides weights and cache (with --gpu 1GiB, or 2GiB of 60GiB and more; else none)")
      .capacity();
  command.add_option("--num-layers", flags->layers, "layers of a shape (32)")
      .range(std::uint64_t{1}, kPlanNumberMax);
  command.add_option("--num-kv-heads", flags->kv_heads, "KV heads of a layer (8, or --query-heads)")
      .range(std::uint64_t{1}, kPlanNumberMax);
  command
      .add_option("--num-heads,--query-heads", flags->query_heads,
                  "query heads of a layer: the cache keeps as many, unless --num-kv-heads says "
                  "how many")
      .range(std::uint64_t{1}, kPlanNumberMax);
  command
      .add_option("--head-dim", flags->head_dim, "values of a head's key, and of its value (128)")
      .range(std::uint64_t{1}, kPlanNumberMax);
  command.add_option("--block-size", flags->block_size, "tokens of a block (16)")
      .range(std::uint64_t{1}, std::uint64_t{1} << 20);
  command.add_flag("--json", flags->json, "one JSON value on stdout");
  command.callback(
      [flags, context, &exit_status] { exit_status = print_plan(*flags, context.count() > 0); });
}

}  // namespace pagoda::cli
