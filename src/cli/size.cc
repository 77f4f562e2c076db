// pagoda size: KV memory arithmetic. Flags in, one report out; the numbers come from kv_size.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "app/kv_size.h"
#include "app/loaded_model.h"
#include "base/byte_size.h"
#include "base/result.h"
#include "cli/commands.h"
#include "cli/kv_size_json.h"
#include "cli/options.h"
#include "gguf/file.h"
#include "terminal/json_text.h"

namespace pagoda::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSizeExamples = R"(Examples:
  pagoda size
      64 sequences of 8,192 tokens of an 8B-class model in bf16: 64.00 GiB
  pagoda size --num-layers 80 --batch-size 1 --sequence-length 131072 --tp-size 8
  pagoda size --dtype int4 --json
      payload, and the real size with scales
  pagoda size --compare-heads
      the same model with MHA, GQA, MQA and MLA
  pagoda size --tokens 35 --block-size 16
      3 blocks, 13 slots unused
  pagoda size --model SmolLM2-135M-Instruct.Q4_1.gguf --batch-size 1
  pagoda size --table)";

// MLA as DeepSeek has it: a latent and the rotated part of the key.
constexpr std::int64_t kLatentDim = 512;
constexpr std::int64_t kLatentRopeDim = 64;
constexpr const char* kBlockSizeDefault = "16";

struct Report {
  std::string text;
  std::string json;
};

// The command's options as typed. A value that came from the environment gives way to a flag it
// does not go with; two typed flags that do not go together are an error.
class Flags {
 public:
  void add(const CommandSpec& command, const std::string& name, const char* kind,
           const char* help) {
    flags_.insert_or_assign(name, command.add_option(name, texts_[name], help).type_name(kind));
  }
  void add_model(const CommandSpec& command) {
    constexpr const char* kHelp =
        "take layers, heads and windows from this model: a GGUF file, a folder or a name";
    flags_.insert_or_assign("--model",
                            command.add_option("-m,--model,MODEL", texts_["--model"], kHelp));
  }
  void add_switch(const CommandSpec& command, const std::string& name, const std::string& help) {
    flags_.insert_or_assign(name, command.add_flag(name, help));
  }

  bool given(const std::string& name) const { return flags_.at(name).count() > 0; }
  bool is_from_environment(const std::string& name) const {
    return flags_.at(name).is_from_environment();
  }
  bool on(const std::string& name) const { return flags_.at(name).is_on(); }
  std::string text(const std::string& name, const std::string& fallback) const {
    return given(name) ? texts_.at(name) : fallback;
  }

  Result<std::int64_t> number(const std::string& name, const std::string& fallback) const {
    const std::string digits = text(name, fallback);
    std::int64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, value);
    if (parsed.ec != std::errc{} || parsed.ptr != end || value < 1) {
      return invalid(
          fmt::format("{}: '{}' is not a whole number from 1 to {}", name, digits, INT64_MAX));
    }
    return value;
  }

  // Fails when one of `others` was typed beside `name`; drops those the environment gave.
  Status refuse_beside(const std::string& name, std::initializer_list<const char*> others) {
    for (const char* const other : others) {
      if (!given(other)) continue;
      if (!is_from_environment(other)) {
        return invalid(fmt::format("{} cannot be combined with {}", other, name));
      }
      flags_.at(other).clear();
    }
    return ok_status();
  }

 private:
  std::map<std::string, std::string> texts_;
  std::map<std::string, Flag> flags_;
};

std::string grouped(std::int64_t value) {
  return format_grouped(static_cast<std::uint64_t>(value));
}

std::string bytes_text(std::int64_t bytes) {
  return fmt::format("{} bytes ({})", grouped(bytes), format_byte_size(static_cast<double>(bytes)));
}

std::string count_text(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(count), noun, count == 1 ? "" : "s");
}

std::string size_text(std::int64_t bytes) { return format_byte_size(static_cast<double>(bytes)); }

std::string size_line(std::string_view label, std::string_view value) {
  return fmt::format("  {:<18}{}\n", label, value);
}

// "total_bytes", "total_payload_bytes" and "total", the size as people read it.
void put_bytes(Json& json, const std::string& name, const app::KvBytes& bytes) {
  json[name + "_bytes"] = bytes.stored;
  json[name + "_payload_bytes"] = bytes.payload;
  json[name] = size_text(bytes.stored);
}

Result<app::KvFormat> read_format(const Flags& flags, const std::string& fallback) {
  const std::string name = flags.text("--dtype", fallback);
  if (const app::KvFormat* const format = app::find_kv_format(name)) return *format;
  std::string names;
  for (const app::KvFormat& format : app::kv_formats()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name);
  }
  return invalid(fmt::format("--dtype: '{}' is not one of {}", name, names));
}

// Reads the model's KV layout; a fault of the file is a failure, not a wrong flag.
Result<app::KvModel> open_model(const std::string& path) {
  const auto failed = [](const Error& error) {
    return Error{ErrorCode::kCorrupt, fmt::format("--model: {}", error.message)};
  };
  const Result<gguf::File> file = app::open_model_file(path);
  if (!file.ok()) return failed(file.error());
  Result<app::KvModel> model = app::read_kv_model(file.value());
  if (!model.ok()) return failed(model.error());
  return model;
}

std::string group_text(const app::KvLayers& group) {
  const std::string layers = count_text(group.layers, "layer");
  if (group.latent) return fmt::format("{} x one latent of {}", layers, group.key_dim);
  return fmt::format("{} x {} x ({} key + {} value){}", layers,
                     count_text(group.kv_heads, "KV head"), group.key_dim, group.value_dim,
                     group.window == 0 ? "" : fmt::format(", last {} tokens", group.window));
}

std::string rank_text(const app::KvSizeQuery& question, const app::KvSize& size) {
  const std::string bytes = bytes_text(size.per_rank.stored);
  if (size.replicated) {
    return fmt::format("{}: {}, so that all ranks hold {}", bytes,
                       question.groups.front().latent ? "latents are on every rank"
                                                      : "more ranks than KV heads replicate heads",
                       size_text(size.all_ranks.stored));
  }
  const std::string heads = count_text(size.rank_heads, "KV head");
  if (!size.uneven) return fmt::format("{}: {} on each rank", bytes, heads);
  return fmt::format("{}: {} on the fullest rank, as {} ranks do not divide them evenly", bytes,
                     heads, question.ranks);
}

std::string size_lines(const app::KvSizeQuery& question, const app::KvSize& size,
                       std::int64_t tokens) {
  std::string text;
  for (const app::KvLayers& group : question.groups) {
    text += size_line(text.empty() ? "shape" : "", group_text(group));
  }
  text += size_line("element type", question.format.name);
  text += size_line("bytes per token",
                    fmt::format("{} per sequence ({})", grouped(size.per_token.stored),
                                size_text(size.per_token.stored)));
  text +=
      size_line("tokens", fmt::format("{} of {} = {}", count_text(question.batch_size, "sequence"),
                                      grouped(question.sequence_length), grouped(tokens)));
  text += size_line("total", bytes_text(size.total.stored));
  if (question.format.quantised()) {
    text +=
        size_line("payload alone", fmt::format("{}, {} per token", bytes_text(size.total.payload),
                                               grouped(size.per_token.payload)));
    text += size_line("scales", question.format.scale_rule);
  }
  text += size_line(fmt::format("per rank (tp {})", question.ranks), rank_text(question, size));
  return text;
}

Json size_json(const app::KvSizeQuery& question, const app::KvSize& size) {
  Json json;
  json["dtype"] = question.format.name;
  if (question.format.quantised()) json["scale_rule"] = question.format.scale_rule;
  for (const app::KvLayers& group : question.groups)
    json["layer_groups"].push_back(kv_layers_json(group));
  json["batch_size"] = question.batch_size;
  json["sequence_length"] = question.sequence_length;
  json["bytes_per_token"] = size.per_token.stored;
  json["payload_bytes_per_token"] = size.per_token.payload;
  put_bytes(json, "total", size.total);
  json["tp_size"] = question.ranks;
  put_bytes(json, "per_rank", size.per_rank);
  json["per_rank_kv_heads"] = size.rank_heads;
  json["replicated"] = size.replicated;
  put_bytes(json, "all_ranks", size.all_ranks);
  return json;
}

Status add_blocks(const Flags& flags, const app::KvSizeQuery& question, const app::KvSize& size,
                  std::string& text, Json& json) {
  ASSIGN_OR_RETURN(const auto block_size, flags.number("--block-size", kBlockSizeDefault));
  ASSIGN_OR_RETURN(const auto tokens,
                   flags.number("--tokens", fmt::format("{}", question.sequence_length)));
  ASSIGN_OR_RETURN(const auto block_bytes,
                   app::checked_product(size.per_token.stored, block_size, "block_size"));
  ASSIGN_OR_RETURN(const app::KvBlocks blocks, app::kv_blocks(tokens, block_size, block_bytes));
  const std::int64_t held_bytes = block_bytes * blocks.blocks;
  text += size_line(
      "blocks",
      fmt::format("{} in blocks of {}: {}, {} unused", count_text(tokens, "token"), block_size,
                  count_text(blocks.blocks, "block"), count_text(blocks.slots_unused, "slot")));
  text += size_line("block", bytes_text(block_bytes));
  text += size_line("held by blocks", bytes_text(held_bytes));
  bool windowed = false;
  for (const app::KvLayers& group : question.groups) windowed = windowed || group.window != 0;
  if (windowed) text += size_line("", "before windowed layers give back what left their window");
  json["blocks"] = {{"tokens", tokens},           {"block_size", block_size},
                    {"blocks", blocks.blocks},    {"slots_unused", blocks.slots_unused},
                    {"block_bytes", block_bytes}, {"held_bytes", held_bytes}};
  return ok_status();
}

Result<Report> one_size(const Flags& flags) {
  app::KvSizeQuery question;
  std::int64_t context = 0;
  if (flags.given("--model")) {
    ASSIGN_OR_RETURN(app::KvModel model, open_model(flags.text("--model", "")));
    question.groups = std::move(model.groups);
    context = model.context_length;
  } else {
    app::KvLayers group;
    ASSIGN_OR_RETURN(group.layers, flags.number("--num-layers", "32"));
    ASSIGN_OR_RETURN(group.kv_heads, flags.number("--num-kv-heads", "8"));
    ASSIGN_OR_RETURN(group.key_dim, flags.number("--head-dim", "128"));
    group.value_dim = group.key_dim;
    question.groups = {group};
  }
  ASSIGN_OR_RETURN(question.format, read_format(flags, "bf16"));
  ASSIGN_OR_RETURN(
      question.sequence_length,
      flags.number("--sequence-length", context == 0 ? "8192" : fmt::format("{}", context)));
  ASSIGN_OR_RETURN(question.batch_size, flags.number("--batch-size", "64"));
  ASSIGN_OR_RETURN(question.ranks, flags.number("--tp-size", "1"));
  ASSIGN_OR_RETURN(const app::KvSize size, app::kv_size(question));
  ASSIGN_OR_RETURN(
      const std::int64_t tokens_total,
      app::checked_product(question.sequence_length, question.batch_size, "batch_size"));

  std::string text = size_lines(question, size, tokens_total);
  Json json = size_json(question, size);
  std::string heading = "KV cache";
  if (context != 0) {
    heading += " of " + flags.text("--model", "");
    json["model"] = flags.text("--model", "");
    json["model_context_length"] = context;
    if (question.sequence_length > context) {
      text += size_line(
          "note", fmt::format("the model was trained on {} tokens of context", grouped(context)));
    }
  }
  if (flags.given("--tokens") || flags.given("--block-size")) {
    RETURN_IF_ERROR(add_blocks(flags, question, size, text, json));
  }
  return Report{heading + "\n" + text, terminal::json_text(json)};
}

struct HeadKind {
  const char* name;
  app::KvLayers group;
};

Result<std::vector<HeadKind>> head_kinds(const Flags& flags) {
  ASSIGN_OR_RETURN(const auto layers, flags.number("--num-layers", "32"));
  ASSIGN_OR_RETURN(const auto heads, flags.number("--num-heads", "32"));
  ASSIGN_OR_RETURN(const auto kv_heads, flags.number("--num-kv-heads", "8"));
  ASSIGN_OR_RETURN(const auto dim, flags.number("--head-dim", "128"));
  if (kv_heads > heads || heads % kv_heads != 0) {
    return invalid(
        fmt::format("--num-kv-heads: {} does not divide --num-heads {}; expected a "
                    "divisor from 1 to {}",
                    kv_heads, heads, heads));
  }
  const app::KvLayers mha = {.layers = layers, .kv_heads = heads, .key_dim = dim, .value_dim = dim};
  app::KvLayers gqa = mha;
  gqa.kv_heads = kv_heads;
  app::KvLayers mqa = mha;
  mqa.kv_heads = 1;
  const app::KvLayers mla = {
      .layers = layers, .kv_heads = 1, .key_dim = kLatentDim + kLatentRopeDim, .latent = true};
  return std::vector<HeadKind>{{"MHA", mha}, {"GQA", gqa}, {"MQA", mqa}, {"MLA", mla}};
}

Result<Report> compare_heads(const Flags& flags) {
  ASSIGN_OR_RETURN(const std::vector<HeadKind> kinds, head_kinds(flags));
  app::KvSizeQuery question;
  ASSIGN_OR_RETURN(question.format, read_format(flags, "bf16"));
  ASSIGN_OR_RETURN(question.sequence_length, flags.number("--sequence-length", "8192"));
  ASSIGN_OR_RETURN(question.batch_size, flags.number("--batch-size", "16"));
  ASSIGN_OR_RETURN(question.ranks, flags.number("--tp-size", "1"));

  const bool quantised = question.format.quantised();
  std::string text = fmt::format(
      "KV cache of {} of {} tokens, {} layers, {}\n  {:<5}{:<18}{:>14}{:>14}",
      count_text(question.batch_size, "sequence"), question.sequence_length,
      kinds.front().group.layers, question.format.name, "", "keeps", "per token", "total");
  if (quantised) text += fmt::format("{:>14}", "payload");
  text += fmt::format("{:>14}\n", fmt::format("rank of {}", question.ranks));
  Json json = {{"dtype", question.format.name},
               {"batch_size", question.batch_size},
               {"sequence_length", question.sequence_length},
               {"tp_size", question.ranks},
               {"heads", Json::array()}};
  for (const auto& [name, group] : kinds) {
    question.groups = {group};
    ASSIGN_OR_RETURN(const app::KvSize size, app::kv_size(question));
    const std::string keeps = group.latent
                                  ? fmt::format("latent {} + {}", kLatentDim, kLatentRopeDim)
                                  : count_text(group.kv_heads, "KV head");
    text += fmt::format("  {:<5}{:<18}{:>14}{:>14}", name, keeps, size_text(size.per_token.stored),
                        size_text(size.total.stored));
    if (quantised) text += fmt::format("{:>14}", size_text(size.total.payload));
    text += fmt::format("{:>14}\n", size_text(size.per_rank.stored));
    Json row = {{"name", name}, {"bytes_per_token", size.per_token.stored}};
    row.update(kv_layers_json(group));
    put_bytes(row, "total", size.total);
    put_bytes(row, "per_rank", size.per_rank);
    json["heads"].push_back(std::move(row));
  }
  if (question.ranks > 1) {
    text += "  a rank keeps one KV head at least; latents are on every rank\n";
  }
  if (quantised) {
    text += fmt::format("  scales: {}\n", question.format.scale_rule);
    json["scale_rule"] = question.format.scale_rule;
  }
  return Report{std::move(text), terminal::json_text(json)};
}

Result<Report> known_sizes() {
  struct Known {
    const char* name;
    std::int64_t layers;
    std::int64_t heads;
  };
  constexpr std::array<Known, 4> kModels = {
      {{"7B", 32, 32}, {"13B", 40, 40}, {"70B", 80, 64}, {"405B", 126, 128}}};
  constexpr std::array<std::int64_t, 4> kTokens = {2048, 8192, 32768, 131072};
  std::string text = fmt::format(
      "KV cache of one sequence, all heads kept (MHA), head size 128, fp16\n"
      "  {:<7}{:>7}{:>7}",
      "model", "layers", "heads");
  for (const std::int64_t tokens : kTokens) {
    text += fmt::format("{:>14}", fmt::format("{}K", tokens / 1024));
  }
  Json json = {{"dtype", "fp16"}, {"head_dim", 128}, {"models", Json::array()}};
  for (const Known& known : kModels) {
    text += fmt::format("\n  {:<7}{:>7}{:>7}", known.name, known.layers, known.heads);
    Json row = {{"name", known.name}, {"layers", known.layers}, {"kv_heads", known.heads}};
    for (const std::int64_t tokens : kTokens) {
      const app::KvLayers group = {
          .layers = known.layers, .kv_heads = known.heads, .key_dim = 128, .value_dim = 128};
      ASSIGN_OR_RETURN(const app::KvSize size, app::kv_size({.groups = {group},
                                                             .format = *app::find_kv_format("fp16"),
                                                             .sequence_length = tokens}));
      text += fmt::format("{:>14}", size_text(size.total.stored));
      row["sizes"].push_back({{"tokens", tokens},
                              {"bytes", size.total.stored},
                              {"text", size_text(size.total.stored)}});
    }
    json["models"].push_back(std::move(row));
  }
  text +=
      "\n  2 x layers x heads x 128 x 2 bytes x tokens; with grouped queries (8 KV heads "
      "of 64) an eighth\n";
  return Report{std::move(text), terminal::json_text(json)};
}

Result<Report> answer(Flags& flags) {
  if (flags.on("--table")) {
    RETURN_IF_ERROR(flags.refuse_beside(
        "--table", {"--compare-heads", "--model", "--batch-size", "--sequence-length",
                    "--num-layers", "--num-kv-heads", "--num-heads", "--head-dim", "--dtype",
                    "--tp-size", "--tokens", "--block-size"}));
    return known_sizes();
  }
  if (flags.on("--compare-heads")) {
    RETURN_IF_ERROR(
        flags.refuse_beside("--compare-heads", {"--model", "--tokens", "--block-size"}));
    return compare_heads(flags);
  }
  if (flags.given("--num-heads") && !flags.is_from_environment("--num-heads")) {
    return invalid("--num-heads: only with --compare-heads; the cache keeps --num-kv-heads");
  }
  for (const char* const shape : {"--num-layers", "--num-kv-heads", "--head-dim"}) {
    if (!flags.given("--model") || !flags.given(shape)) continue;
    if (flags.is_from_environment("--model")) {
      RETURN_IF_ERROR(flags.refuse_beside(shape, {"--model"}));
    } else {
      RETURN_IF_ERROR(flags.refuse_beside("--model", {shape}));
    }
  }
  return one_size(flags);
}

}  // namespace

void add_size_command(const CommandSpec& app, int& exit_status) {
  const CommandSpec command =
      app.add_subcommand("size", "KV memory arithmetic: bytes per token, totals, blocks, ranks");
  command.footer(kSizeExamples);
  const auto flags = std::make_shared<Flags>();
  flags->add(command, "--batch-size", "N", "sequences (64; 16 with --compare-heads)");
  flags->add(command, "--sequence-length", "N", "tokens of each (8192; with --model its context)");
  flags->add(command, "--num-layers", "N", "layers (32)");
  flags->add(command, "--num-kv-heads", "N", "KV heads of a layer (8)");
  flags->add(command, "--head-dim", "N", "values of a head's key, and of its value (128)");
  flags->add(command, "--dtype", "TYPE",
             "fp32, bf16, fp16, fp8, fp8_e5m2, int8, k8v4, int4 or fp4 (bf16)");
  flags->add(command, "--tp-size", "N", "tensor-parallel ranks the KV heads divide over (1)");
  flags->add(command, "--num-heads", "N", "query heads, for --compare-heads (32)");
  flags->add(command, "--tokens", "N", "also: blocks for a sequence of so many tokens");
  flags->add(command, "--block-size", "N", "tokens of a block (16)");
  flags->add_model(command);
  flags->add_switch(command, "--compare-heads", "MHA, GQA, MQA and MLA side by side");
  flags->add_switch(command, "--table", "7B, 13B, 70B and 405B at 2K, 8K, 32K and 128K tokens");
  flags->add_switch(command, "--json", "one JSON value on stdout");
  command.callback([flags, &exit_status] {
    const Result<Report> report = answer(*flags);
    if (!report.ok()) {
      print_error(report.error().message);
      const ErrorCode code = report.error().code;
      const bool asked_wrong =
          code == ErrorCode::kInvalidArgument || code == ErrorCode::kOutOfRange;
      exit_status = asked_wrong ? 2 : 1;
      return;
    }
    const Report& result = report.value();
    fmt::print("{}", flags->on("--json") ? result.json + "\n" : result.text);
    exit_status = 0;
  });
}

}  // namespace pagoda::cli
