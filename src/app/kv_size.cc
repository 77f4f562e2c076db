#include "app/kv_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "app/kv_dtype.h"
#include "kv/memory/blocks_held.h"

namespace pagoda::app {
namespace {

// fp4 is known to other engines and to arithmetic; kv_dtype.h has the types that are kept here.
constexpr std::string_view kScalePerRow = "one fp16 scale per token and KV head, for K and for V";
constexpr std::array<KvFormat, 9> kFormats = {{
    {"fp32", 32, 32, 0, 0, 0, 0, ""},
    {"bf16", 16, 16, 0, 0, 0, 0, ""},
    {"fp16", 16, 16, 0, 0, 0, 0, ""},
    {"fp8", 8, 8, 0, 0, 2, 2, kScalePerRow},
    {"fp8_e5m2", 8, 8, 0, 0, 0, 0, ""},
    {"int8", 8, 8, 0, 0, 2, 2, kScalePerRow},
    {"k8v4", 8, 4, 0, 32, 2, 2,
     "one fp16 scale per token and KV head of K, and per 32 values of V"},
    {"fp4", 4, 4, 32, 32, 1, 1, "one 8-bit scale per 32 values (MXFP4)"},
    {"int4", 4, 4, 32, 32, 2, 2, "one fp16 scale per 32 values"},
}};

const KvFormat* find_named(std::string_view name) {
  const auto* const found = std::find_if(kFormats.begin(), kFormats.end(),
                                         [&](const KvFormat& f) { return f.name == name; });
  return found == kFormats.end() ? nullptr : found;
}

struct PairedFormat {
  std::string name;
  std::string scale_rule;
  KvFormat format;
};

std::string pair_rule(char vector, std::int64_t group) {
  return group == 0 ? fmt::format("of {} one fp16 scale per token and KV head", vector)
                    : fmt::format("of {} one fp16 scale per {} values", vector, group);
}

// Every pair of types that are kept here, keys before values.
std::map<std::string, PairedFormat, std::less<>> paired_formats() {
  std::map<std::string, PairedFormat, std::less<>> pairs;
  for (const KvFormat& keys : kFormats) {
    for (const KvFormat& values : kFormats) {
      const std::string name = fmt::format("{}/{}", keys.name, values.name);
      if (!parse_kv_dtype(name).ok() || keys.name == values.name) continue;
      PairedFormat& pair = pairs[name];
      pair.name = name;
      if (keys.quantised()) pair.scale_rule = pair_rule('K', keys.key_group);
      if (keys.quantised() && values.quantised()) pair.scale_rule += "; ";
      if (values.quantised()) pair.scale_rule += pair_rule('V', values.value_group);
      pair.format = {.name = pair.name,
                     .key_bits = keys.key_bits,
                     .value_bits = values.value_bits,
                     .key_group = keys.key_group,
                     .value_group = values.value_group,
                     .key_group_bytes = keys.key_group_bytes,
                     .value_group_bytes = values.value_group_bytes,
                     .scale_rule = pair.scale_rule};
    }
  }
  return pairs;
}

// One head's K and V cannot overflow below this, whatever the format.
constexpr std::int64_t kHeadDimMax = std::int64_t{1} << 58;

// Limits of a model file, far above any known model.
constexpr std::uint64_t kModelLayersMax = 1 << 16;
constexpr std::uint64_t kModelDimMax = 1 << 20;
constexpr std::uint64_t kModelContextMax = std::uint64_t{1} << 32;

constexpr std::int64_t round_up_div(std::int64_t value, std::int64_t step) {
  return value / step + (value % step != 0 ? 1 : 0);
}

// Returns the bytes of one head's K or V: `bits` of a value, scales of every `group_values`.
KvBytes vector_bytes(std::int64_t bits, std::int64_t group_values, std::int64_t group_bytes,
                     std::int64_t dim) {
  if (dim == 0) return {};
  const std::int64_t values_per_8_bytes = 64 / bits;
  const std::int64_t rest_bits = dim % values_per_8_bytes * bits;
  const std::int64_t payload = dim / values_per_8_bytes * 8 + round_up_div(rest_bits, 8);
  const std::int64_t groups = group_values == 0 ? 1 : round_up_div(dim, group_values);
  return {payload, payload + groups * group_bytes};
}

std::int64_t heads_of_rank(const KvLayers& group, std::int64_t ranks) {
  return group.latent ? group.kv_heads : round_up_div(group.kv_heads, ranks);
}

std::int64_t heads_of_all_ranks(const KvLayers& group, std::int64_t ranks) {
  return group.latent ? group.kv_heads * ranks : group.kv_heads;
}

// Multiplies both counts; `stored` is never the smaller, so it alone can overflow first.
Result<KvBytes> scaled(KvBytes bytes, std::int64_t factor, std::string_view field) {
  ASSIGN_OR_RETURN(const std::int64_t stored, checked_product(bytes.stored, factor, field));
  return KvBytes{bytes.payload * factor, stored};
}

Result<KvBytes> sum(KvBytes a, KvBytes b, std::string_view field) {
  std::int64_t stored = 0;
  if (__builtin_add_overflow(a.stored, b.stored, &stored)) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("`{}`: the layers together pass 2^63 - 1 bytes", field)};
  }
  return KvBytes{a.payload + b.payload, stored};
}

// Tokens of a sequence that layers of the group keep.
std::int64_t tokens_kept(const KvSizeQuery& question, const KvLayers& group) {
  const std::int64_t all = question.sequence_length;
  if (group.window == 0 || group.window >= all) return all;
  if (question.block_size == 0) return group.window;
  const auto window = static_cast<std::uint32_t>(std::min<std::int64_t>(group.window, UINT32_MAX));
  const std::uint64_t blocks =
      kv::memory::blocks_held({.window = window}, static_cast<std::uint64_t>(all),
                              static_cast<std::uint32_t>(question.block_size));
  return std::min(all, static_cast<std::int64_t>(blocks) * question.block_size);
}

// All layers, `heads(group)` of each; one token, or all that are kept of a sequence.
template <class Heads>
Result<KvBytes> sequence_bytes(const KvSizeQuery& question, bool one_token, const Heads& heads) {
  KvBytes all;
  for (const KvLayers& group : question.groups) {
    const KvFormat& format = question.format;
    const KvBytes key =
        vector_bytes(format.key_bits, format.key_group, format.key_group_bytes, group.key_dim);
    const KvBytes value = vector_bytes(format.value_bits, format.value_group,
                                       format.value_group_bytes, group.value_dim);
    const KvBytes head = {key.payload + value.payload, key.stored + value.stored};
    ASSIGN_OR_RETURN(const KvBytes layer, scaled(head, heads(group), "num_kv_heads"));
    ASSIGN_OR_RETURN(KvBytes bytes, scaled(layer, group.layers, "num_layers"));
    if (!one_token) {
      ASSIGN_OR_RETURN(bytes, scaled(bytes, tokens_kept(question, group), "sequence_length"));
    }
    ASSIGN_OR_RETURN(all, sum(all, bytes, one_token ? "num_layers" : "sequence_length"));
  }
  return all;
}

class ModelReader {
 public:
  ModelReader(const gguf::Metadata& metadata, std::string_view architecture)
      : metadata_(metadata), prefix_(fmt::format("{}.", architecture)) {}

  bool has(std::string_view name) const { return metadata_.contains(prefix_ + std::string(name)); }

  Result<std::int64_t> number(std::string_view name, std::uint64_t max) const {
    const std::string key = prefix_ + std::string(name);
    ASSIGN_OR_RETURN(const std::uint64_t value, metadata_.unsigned_value(key));
    if (value < 1 || value > max) return out_of_range(key, fmt::format("{}", value), 1, max);
    return static_cast<std::int64_t>(value);
  }

  // A scalar for all layers, or one value for each; 0 is allowed (a layer without attention).
  Result<std::vector<std::int64_t>> per_layer(std::string_view name, std::int64_t layers) const {
    const std::string key = prefix_ + std::string(name);
    ASSIGN_OR_RETURN(std::vector<std::int64_t> values, metadata_.integers(key));
    if (values.size() == 1) values.resize(static_cast<std::size_t>(layers), values.front());
    if (values.size() != static_cast<std::size_t>(layers)) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{}: {} has {} values for {} layers", metadata_.source(), key,
                               values.size(), layers)};
    }
    for (const std::int64_t value : values) {
      if (value < 0 || value > static_cast<std::int64_t>(kModelDimMax)) {
        return out_of_range(key, fmt::format("{}", value), 0, kModelDimMax);
      }
    }
    return values;
  }

  // For each layer the tokens it keeps, 0 for all.
  Result<std::vector<std::int64_t>> windows(std::string_view architecture,
                                            std::int64_t layers) const {
    std::vector<std::int64_t> result(static_cast<std::size_t>(layers), 0);
    if (!has("attention.sliding_window")) return result;
    ASSIGN_OR_RETURN(const std::uint64_t window,
                     metadata_.unsigned_value(prefix_ + "attention.sliding_window"));
    if (window > kModelContextMax) {
      return out_of_range(prefix_ + "attention.sliding_window", fmt::format("{}", window), 0,
                          kModelContextMax);
    }
    ASSIGN_OR_RETURN(const std::vector<bool> windowed, windowed_layers(architecture, layers));
    for (std::size_t layer = 0; layer < result.size(); ++layer) {
      if (windowed[layer]) result[layer] = static_cast<std::int64_t>(window);
    }
    return result;
  }

 private:
  // A pattern n makes every n-th layer full and the others windowed; it may also be written out,
  // one flag per layer, true for windowed. Where it is absent, what the architecture is known for.
  Result<std::vector<bool>> windowed_layers(std::string_view architecture,
                                            std::int64_t layers) const {
    const std::string key = prefix_ + "attention.sliding_window_pattern";
    std::vector<bool> windowed(static_cast<std::size_t>(layers), false);
    const gguf::MetadataValue* const value = metadata_.find(key);
    if (value != nullptr && value->type == gguf::ValueType::kArray) {
      const auto& flags = std::get<gguf::Array>(value->data);
      if (flags.element_type != gguf::ValueType::kBool || flags.count != windowed.size()) {
        return Error{ErrorCode::kCorrupt,
                     fmt::format("{}: {} must be one flag per layer", metadata_.source(), key)};
      }
      for (std::size_t i = 0; i < windowed.size(); ++i)
        windowed[i] = flags.bytes[i] != std::byte{0};
      return windowed;
    }
    constexpr std::array<std::pair<std::string_view, std::uint64_t>, 5> kKnown = {
        {{"gemma2", 2}, {"gemma3", 6}, {"gemma4", 6}, {"gpt-oss", 2}, {"cohere2", 4}}};
    std::uint64_t pattern = 1;
    for (const auto& [name, known] : kKnown) {
      if (name == architecture) pattern = known;
    }
    ASSIGN_OR_RETURN(pattern, metadata_.unsigned_value_or(key, pattern));
    for (std::size_t i = 0; i < windowed.size(); ++i) {
      windowed[i] = pattern == 0 || (i + 1) % pattern != 0;
    }
    return windowed;
  }

  Error out_of_range(std::string_view key, std::string_view value, std::uint64_t min,
                     std::uint64_t max) const {
    return {ErrorCode::kOutOfRange, fmt::format("{}: {} is {}, expected {} to {}",
                                                metadata_.source(), key, value, min, max)};
  }

  const gguf::Metadata& metadata_;
  std::string prefix_;
};

}  // namespace

std::span<const KvFormat> kv_formats() { return kFormats; }

const KvFormat* find_kv_format(std::string_view name) {
  if (const KvFormat* const found = find_named(name)) return found;
  const auto elements = parse_kv_dtype(name);
  if (!elements.ok() || !elements.value()) return nullptr;
  const std::string spelt = kv_dtype_name(*elements.value());
  if (const KvFormat* const found = find_named(spelt)) return found;
  static const auto pairs = paired_formats();
  const auto pair = pairs.find(spelt);
  return pair == pairs.end() ? nullptr : &pair->second.format;
}

Result<std::int64_t> checked_product(std::int64_t a, std::int64_t b, std::string_view field) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  ASSERT(a > 0, "a product with 0 does not overflow");
  return Error{ErrorCode::kOutOfRange,
               fmt::format("`{}`: {} is out of range: with the other values it may be 1 to {}, or "
                           "the result would pass 2^63 - 1",
                           field, b, INT64_MAX / a)};
}

bool keeps_rows(const KvFormat& format, const KvLayers& layers) {
  const auto divides = [](std::int64_t group, std::int64_t dim) {
    return group == 0 || dim % group == 0;
  };
  return divides(format.key_group, layers.key_dim) &&
         divides(format.value_group, layers.value_dim) &&
         (!layers.latent || format.key_bits == format.value_bits);
}

Result<KvSize> kv_size(const KvSizeQuery& question) {
  for (const KvLayers& group : question.groups) {
    if (std::max(group.key_dim, group.value_dim) > kHeadDimMax) {
      return Error{ErrorCode::kOutOfRange, fmt::format("`head_dim`: {} is out of range: 1 to {}",
                                                       group.key_dim, kHeadDimMax)};
    }
  }
  const std::int64_t ranks = question.ranks;
  const auto every_head = [](const KvLayers& group) { return group.kv_heads; };
  const auto of_rank = [&](const KvLayers& group) { return heads_of_rank(group, ranks); };
  const auto of_ranks = [&](const KvLayers& group) { return heads_of_all_ranks(group, ranks); };
  KvSize size;
  ASSIGN_OR_RETURN(size.per_token, sequence_bytes(question, true, every_head));
  ASSIGN_OR_RETURN(const KvBytes sequence, sequence_bytes(question, false, every_head));
  ASSIGN_OR_RETURN(size.total, scaled(sequence, question.batch_size, "batch_size"));
  ASSIGN_OR_RETURN(const KvBytes share, sequence_bytes(question, false, of_rank));
  ASSIGN_OR_RETURN(size.per_rank, scaled(share, question.batch_size, "batch_size"));
  // An upper bound of what follows, so that an overflow is blamed on the ranks.
  RETURN_IF_ERROR(scaled(size.per_rank, ranks, "tp_size"));
  ASSIGN_OR_RETURN(const KvBytes shares, sequence_bytes(question, false, of_ranks));
  ASSIGN_OR_RETURN(size.all_ranks, scaled(shares, question.batch_size, "batch_size"));
  for (const KvLayers& group : question.groups) {
    size.rank_heads = std::max(size.rank_heads, of_rank(group));
    const bool shared = ranks > 1 && group.latent;
    size.replicated = size.replicated || shared;
    size.uneven = size.uneven || (!shared && group.kv_heads % ranks != 0);
  }
  return size;
}

Result<KvBlocks> kv_blocks(std::int64_t tokens, std::int64_t block_size, std::int64_t block_bytes) {
  const std::int64_t blocks = round_up_div(tokens, block_size);
  const std::int64_t blocks_max = INT64_MAX / std::max(block_size, block_bytes);
  if (blocks > blocks_max) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("`tokens`: {} is out of range: in blocks of {} it may be 1 to {}, or "
                             "the blocks would pass 2^63 - 1 bytes",
                             tokens, block_size, blocks_max * block_size)};
  }
  return KvBlocks{blocks, blocks * block_size - tokens};
}

Result<KvModel> read_kv_model(const gguf::File& file) {
  const gguf::Metadata& metadata = file.metadata();
  ASSIGN_OR_RETURN(const std::string_view architecture, metadata.text("general.architecture"));
  const ModelReader reader(metadata, architecture);
  ASSIGN_OR_RETURN(const std::int64_t layers, reader.number("block_count", kModelLayersMax));
  KvModel model;
  ASSIGN_OR_RETURN(model.context_length, reader.number("context_length", kModelContextMax));
  ASSIGN_OR_RETURN(const auto windows, reader.windows(architecture, layers));

  KvLayers latent;
  if (reader.has("attention.kv_lora_rank")) {
    ASSIGN_OR_RETURN(const auto rank, reader.number("attention.kv_lora_rank", kModelDimMax));
    ASSIGN_OR_RETURN(const auto rope, reader.number("rope.dimension_count", kModelDimMax));
    latent = {.layers = 1, .kv_heads = 1, .key_dim = rank + rope, .latent = true};
  }
  ASSIGN_OR_RETURN(const auto heads, reader.per_layer("attention.head_count", layers));
  std::vector<std::int64_t> kv_heads = heads;
  if (reader.has("attention.head_count_kv")) {
    ASSIGN_OR_RETURN(kv_heads, reader.per_layer("attention.head_count_kv", layers));
  }
  ASSIGN_OR_RETURN(const auto width, reader.number("embedding_length", kModelDimMax));
  const std::int64_t heads_most = *std::max_element(heads.begin(), heads.end());
  KvLayers plain = {.layers = 1};
  plain.key_dim = plain.value_dim = heads_most == 0 ? 0 : width / heads_most;
  if (reader.has("attention.key_length")) {
    ASSIGN_OR_RETURN(plain.key_dim, reader.number("attention.key_length", kModelDimMax));
  }
  if (reader.has("attention.value_length")) {
    ASSIGN_OR_RETURN(plain.value_dim, reader.number("attention.value_length", kModelDimMax));
  }

  // Layers with a window may have heads of another size, and the last layers no rows of their own.
  KvLayers windowed = plain;
  if (reader.has("attention.key_length_swa")) {
    ASSIGN_OR_RETURN(windowed.key_dim, reader.number("attention.key_length_swa", kModelDimMax));
  }
  if (reader.has("attention.value_length_swa")) {
    ASSIGN_OR_RETURN(windowed.value_dim, reader.number("attention.value_length_swa", kModelDimMax));
  }
  ASSIGN_OR_RETURN(
      const std::uint64_t shared,
      metadata.unsigned_value_or(fmt::format("{}.attention.shared_kv_layers", architecture), 0));
  ASSIGN_OR_RETURN(
      const std::uint64_t more,
      metadata.unsigned_value_or(fmt::format("{}.nextn_predict_layers", architecture), 0));
  for (const std::uint64_t without_rows : {more, shared}) {
    kv_heads.resize(kv_heads.size() - std::min<std::size_t>(without_rows, kv_heads.size()));
  }

  for (std::size_t layer = 0; layer < kv_heads.size(); ++layer) {
    if (kv_heads[layer] == 0) continue;
    KvLayers one = latent.latent ? latent : windows[layer] > 0 ? windowed : plain;
    if (!latent.latent) one.kv_heads = kv_heads[layer];
    one.window = windows[layer];
    const auto same = std::find_if(model.groups.begin(), model.groups.end(), [&](KvLayers group) {
      group.layers = 1;
      return group == one;
    });
    if (same == model.groups.end()) {
      model.groups.push_back(one);
    } else {
      ++same->layers;
    }
  }
  if (model.groups.empty()) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: no layer of this model has a KV cache", metadata.source())};
  }
  return model;
}

}  // namespace pagoda::app
