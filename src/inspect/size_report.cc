#include "inspect/size_report.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/byte_size.h"
#include "inspect/kv_layers_json.h"
#include "terminal/json_text.h"

namespace pagoda::inspect {
namespace {

using Json = nlohmann::ordered_json;

// MLA as DeepSeek has it: a latent and the rotated part of the key.
constexpr std::int64_t kLatentDim = 512;
constexpr std::int64_t kLatentRopeDim = 64;

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
    return fmt::format("{}: latents are on every rank, so that all ranks hold {}", bytes,
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

// Adds the blocks that a sequence takes to both forms of a report.
Status add_blocks(const BlockQuestion& asked, const app::KvSizeQuery& query,
                  const app::KvSize& size, std::string& text, Json& json) {
  ASSIGN_OR_RETURN(const auto block_bytes,
                   app::checked_product(size.per_token.stored, asked.block_size, "block_size"));
  ASSIGN_OR_RETURN(const app::KvBlocks blocks,
                   app::kv_blocks(asked.tokens, asked.block_size, block_bytes));
  const std::int64_t held_bytes = block_bytes * blocks.blocks;
  text += size_line(
      "blocks", fmt::format("{} in blocks of {}: {}, {} unused", count_text(asked.tokens, "token"),
                            asked.block_size, count_text(blocks.blocks, "block"),
                            count_text(blocks.slots_unused, "slot")));
  text += size_line("block", bytes_text(block_bytes));
  text += size_line("held by blocks", bytes_text(held_bytes));
  bool windowed = false;
  for (const app::KvLayers& group : query.groups) windowed = windowed || group.window != 0;
  if (windowed) text += size_line("", "before windowed layers give back what left their window");
  json["blocks"] = {{"tokens", asked.tokens},     {"block_size", asked.block_size},
                    {"blocks", blocks.blocks},    {"slots_unused", blocks.slots_unused},
                    {"block_bytes", block_bytes}, {"held_bytes", held_bytes}};
  return ok_status();
}

struct HeadKind {
  const char* name;
  app::KvLayers group;
};

Result<std::vector<HeadKind>> head_kinds(const HeadCounts& counts) {
  const auto [layers, heads, kv_heads, dim] = counts;
  if (kv_heads > heads || heads % kv_heads != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("`num_kv_heads`: {} does not divide `num_heads` {}; expected a "
                             "divisor from 1 to {}",
                             kv_heads, heads, heads)};
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

// What a table that many tutorials repeat prints instead of its own formula.
struct PublishedSize {
  const char* model;
  std::int64_t tokens;
  double gib;
};
constexpr auto kPublishedSizes = std::to_array<PublishedSize>(
    {{"7B", 2048, 0.5}, {"7B", 32768, 8}, {"70B", 2048, 3}, {"405B", 2048, 24}});

void add_published(std::string& text, Json& json) {
  std::string list;
  for (const PublishedSize& size : kPublishedSizes) {
    list += fmt::format("{}{} at {}K {:g} GiB", list.empty() ? "" : ", ", size.model,
                        size.tokens / 1024, size.gib);
    json["published_differ"].push_back(
        {{"name", size.model}, {"tokens", size.tokens}, {"gib", size.gib}});
  }
  text +=
      fmt::format("  A table that tutorials repeat differs from this formula, its own: {}\n", list);
}

}  // namespace

Result<SizeReport> size_report(const SizeQuestion& question) {
  const app::KvSizeQuery& query = question.query;
  ASSIGN_OR_RETURN(const app::KvSize size, app::kv_size(query));
  ASSIGN_OR_RETURN(const std::int64_t tokens_total,
                   app::checked_product(query.sequence_length, query.batch_size, "batch_size"));

  std::string text = size_lines(query, size, tokens_total);
  Json json = size_json(query, size);
  std::string heading = "KV cache";
  if (const std::int64_t context = question.context_length; context != 0) {
    heading += " of " + question.model;
    json["model"] = question.model;
    json["model_context_length"] = context;
    if (query.sequence_length > context) {
      text += size_line(
          "note", fmt::format("the model was trained on {} tokens of context", grouped(context)));
    }
  }
  if (question.blocks) RETURN_IF_ERROR(add_blocks(*question.blocks, query, size, text, json));
  return SizeReport{heading + "\n" + text, terminal::json_text(json)};
}

Result<SizeReport> compare_heads(const HeadCounts& counts, const app::KvSizeQuery& query) {
  ASSIGN_OR_RETURN(const std::vector<HeadKind> kinds, head_kinds(counts));
  app::KvSizeQuery question = query;
  const bool quantised = question.format.quantised();
  std::string text =
      fmt::format("KV cache of {} of {} tokens, {} layers, {}\n  {:<5}{:<18}{:>14}{:>14}{:>10}",
                  count_text(question.batch_size, "sequence"), question.sequence_length,
                  kinds.front().group.layers, question.format.name, "", "keeps", "per token",
                  "total", "% of MHA");
  if (quantised) text += fmt::format("{:>14}", "payload");
  text += fmt::format("{:>14}\n", fmt::format("rank of {}", question.ranks));
  Json json = {{"dtype", question.format.name},
               {"batch_size", question.batch_size},
               {"sequence_length", question.sequence_length},
               {"tp_size", question.ranks},
               {"heads", Json::array()}};
  std::int64_t all_heads_bytes = 0;  // MHA is the first
  for (const auto& [name, group] : kinds) {
    question.groups = {group};
    ASSIGN_OR_RETURN(const app::KvSize size, app::kv_size(question));
    if (all_heads_bytes == 0) all_heads_bytes = size.per_token.stored;
    const double percent =
        100 * static_cast<double>(size.per_token.stored) / static_cast<double>(all_heads_bytes);
    const std::string keeps = group.latent
                                  ? fmt::format("latent {} + {}", kLatentDim, kLatentRopeDim)
                                  : count_text(group.kv_heads, "KV head");
    text += fmt::format("  {:<5}{:<18}{:>14}{:>14}{:>10.1f}", name, keeps,
                        size_text(size.per_token.stored), size_text(size.total.stored), percent);
    if (quantised) text += fmt::format("{:>14}", size_text(size.total.payload));
    text += fmt::format("{:>14}\n", size_text(size.per_rank.stored));
    Json row = {
        {"name", name}, {"bytes_per_token", size.per_token.stored}, {"percent_of_mha", percent}};
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
  return SizeReport{std::move(text), terminal::json_text(json)};
}

Result<SizeReport> known_sizes() {
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
  add_published(text, json);
  return SizeReport{std::move(text), terminal::json_text(json)};
}

}  // namespace pagoda::inspect
