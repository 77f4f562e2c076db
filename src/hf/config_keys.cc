#include "hf/config_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "hf/gemma4_keys.h"
#include "hf/key_writer.h"
#include "hf/rope_keys.h"

namespace pagoda::hf {
namespace {

// Fields that change logits. They are refused unless they are absent, null, false, 0, 1 or empty,
// or the family reads them.
struct RefusedField {
  std::string_view name;
  std::string_view what;
  std::string_view read_by = {};  // model types that begin so
};
constexpr auto kRefusedFields = std::to_array<RefusedField>({
    {"attn_logit_softcapping", "soft caps of scores are not supported", "gemma"},
    {"final_logit_softcapping", "soft caps of logits are not supported", "gemma"},
    {"clip_qkv", "clamped queries, keys and values are not supported"},
    // Qwen 3 has these norms in any case.
    {"use_qk_norm", "norms of queries and keys are not in this architecture", "qwen3"},
    // Gemma 4's word is checked by its own keys.
    {"use_bidirectional_attention", "attention that sees later tokens is not supported", "gemma4"},
    {"attention_chunk_size", "attention in chunks is not supported"},
    {"attn_temperature_tuning", "scores scaled by position are not supported"},
    {"llama_4_scaling", "scores scaled by position are not supported"},
    {"logit_scale", "a scale of logits is not in this architecture"},
    {"use_parallel_residual", "parallel branches are not supported"},
    {"parallel_attn", "parallel branches are not supported"},
    {"is_encoder_decoder", "encoders are not supported"},
    {"add_cross_attention", "cross attention is not supported"},
    {"alibi", "ALiBi is not supported"},
    {"use_mamba_kernels", "recurrent state is not cached yet"},
    {"num_kv_shared_layers", "layers that share keys and values are not supported", "gemma4"},
    {"nope_layer_interval", "layers without rotation are not in this architecture"},
});

bool asks_nothing(const JsonValue& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number()) return value.get<double>() == 0 || value.get<double>() == 1;
  return value.is_null() || value.empty();
}

// Models that see images, and whose text part reads text as it would alone.
constexpr auto kImageModels =
    std::to_array<std::string_view>({"gemma3", "gemma4", "gemma4_unified", "mistral3"});

Status check_text_part(const JsonFields& root, const JsonFields& text) {
  // A hybrid may say so at the outside alone.
  if (!text.has("model_type")) return text.missing("model_type");
  ASSIGN_OR_RETURN(const std::string type, root.text_or("model_type", ""));
  if (std::find(kImageModels.begin(), kImageModels.end(), type) != kImageModels.end()) {
    return ok_status();
  }
  return root.refused("model_type", fmt::format("of models with a text_config this version runs {}",
                                                fmt::join(kImageModels, ", ")));
}

Status refuse_fields(const JsonFields& config, const Family& family) {
  ASSIGN_OR_RETURN(const bool causal, config.flag_or("is_causal", true));
  if (!causal) {
    return config.refused("is_causal", "attention that sees later tokens is not supported");
  }
  for (const RefusedField& field : kRefusedFields) {
    const bool is_read = !field.read_by.empty() && family.model_type.starts_with(field.read_by);
    const JsonValue* const value = config.find(field.name);
    if (value == nullptr || is_read || asks_nothing(*value)) continue;
    return config.refused(field.name, field.what);
  }
  ASSIGN_OR_RETURN(const std::string activation,
                   config.text_or(family.activation_field, family.activation));
  const bool same =
      activation == family.activation || (family.activation == "silu" && activation == "swish");
  if (!same) {
    return config.refused(family.activation_field,
                          fmt::format("this architecture has {}", family.activation));
  }
  return ok_status();
}

// Which layers have a window.
class WindowKeys {
 public:
  WindowKeys(const JsonFields& config, const Family& family, std::uint64_t layers)
      : config_(config), family_(family), layers_(layers) {}

  Status write(const KeyWriter& keys) const {
    if (family_.windows == WindowRule::kNone) return ok_status();
    const bool is_default = !config_.contains("sliding_window");
    ASSIGN_OR_RETURN(const std::uint64_t window,
                     config_.count_or("sliding_window", is_default ? family_.window : 0));
    const bool flagged =
        family_.windows == WindowRule::kFromLayer || family_.windows == WindowRule::kFlagged;
    ASSIGN_OR_RETURN(const bool used, config_.flag_or("use_sliding_window", !flagged));
    const bool has_window = window != 0 && (used || !flagged);
    std::vector<bool> windowed;
    if (has_window) {
      ASSIGN_OR_RETURN(windowed, windowed_layers());
    }
    const bool any = std::find(windowed.begin(), windowed.end(), true) != windowed.end();
    // Layers of EXAONE 4 without a window rotate only where the model has none at all.
    if (any || (has_window && family_.architecture == "exaone4")) {
      keys.count("attention.sliding_window", window);
      keys.flags("attention.sliding_window_pattern", windowed);
    } else if (family_.windows == WindowRule::kAll) {
      // Where the key is absent, some architectures assume a window.
      keys.count("attention.sliding_window", 0);
    }
    return ok_status();
  }

 private:
  Result<std::vector<bool>> windowed_layers() const {
    if (family_.windows != WindowRule::kAll && config_.has("layer_types")) return by_layer_types();
    std::vector<bool> windowed(layers_, true);
    switch (family_.windows) {
      case WindowRule::kNone:
      case WindowRule::kAll:
        break;
      case WindowRule::kFlagged:
        return config_.refused("use_sliding_window", "and layer_types is missing");
      case WindowRule::kFromLayer: {
        ASSIGN_OR_RETURN(const std::uint64_t first, config_.count_or("max_window_layers", 28));
        for (std::uint64_t i = 0; i < layers_; ++i) windowed[i] = i >= first;
        break;
      }
      case WindowRule::kPattern:
        return by_pattern();
    }
    return windowed;
  }

  Result<std::vector<bool>> by_layer_types() const {
    ASSIGN_OR_RETURN(const std::vector<std::string> types, config_.texts("layer_types"));
    if (types.size() < layers_) {
      return config_.refused("layer_types",
                             fmt::format("expected one for each of {} layers", layers_));
    }
    std::vector<bool> windowed;
    for (std::uint64_t i = 0; i < layers_; ++i) {
      if (types[i] != "full_attention" && types[i] != "sliding_attention") {
        return config_.refused("layer_types",
                               types[i].find("linear") != std::string::npos
                                   ? "recurrent state is not cached yet"
                                   : "this version runs full_attention and sliding_attention");
      }
      windowed.push_back(types[i] == "sliding_attention");
    }
    return windowed;
  }

  // A number n, of which every n-th layer sees all, or letters L and G.
  Result<std::vector<bool>> by_pattern() const {
    constexpr const char* kField = "sliding_window_pattern";
    const JsonValue* const given = config_.find(kField);
    std::vector<bool> windowed;
    if (given != nullptr && given->is_string()) {
      const std::string letters = given->get<std::string>();
      const bool is_good = !letters.empty() && letters.find_first_not_of("LG") == std::string::npos;
      if (!is_good) return config_.refused(kField, "expected a number or letters L and G");
      for (std::uint64_t i = 0; i < layers_; ++i) {
        windowed.push_back(letters[i % letters.size()] == 'L' && i + 1 < layers_);
      }
      return windowed;
    }
    ASSIGN_OR_RETURN(const std::uint64_t every, config_.count_or(kField, family_.window_pattern));
    if (every == 0) return config_.refused(kField, "expected 1 or more");
    for (std::uint64_t i = 0; i < layers_; ++i) windowed.push_back((i + 1) % every != 0);
    return windowed;
  }

  const JsonFields& config_;
  const Family& family_;
  std::uint64_t layers_;
};

Status read_quantisation(const JsonFields& config, const JsonFields& root, FolderShape& shape) {
  ASSIGN_OR_RETURN(std::optional<JsonFields> quantised, root.object("quantization_config"));
  if (!quantised) {
    ASSIGN_OR_RETURN(quantised, config.object("quantization_config"));
  }
  if (!quantised) {
    ASSIGN_OR_RETURN(quantised, root.object("compression_config"));
  }
  if (!quantised) return ok_status();
  ASSIGN_OR_RETURN(const std::string method,
                   quantised->text_or("quant_method", "compressed-tensors"));
  if (method == "mxfp4" && shape.family->architecture == "gpt-oss") {
    shape.storage = Storage::kMxfp4;
    return ok_status();
  }
  if (method != "fp8") {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}quant_method is {}, which this version does not read: use the "
                             "unquantised model, or a GGUF file",
                             quantised->place(), method)};
  }
  shape.storage = Storage::kFp8;
  // null: a scale for each matrix. Where nothing is said, transformers has a block of its own.
  const bool whole =
      quantised->contains("weight_block_size") && !quantised->has("weight_block_size");
  if (whole) return ok_status();
  ASSIGN_OR_RETURN(const std::vector<std::uint64_t> block, quantised->ids("weight_block_size"));
  if (block.size() != 2 || block[0] == 0 || block[1] == 0) {
    return quantised->refused("weight_block_size",
                              "expected rows and columns of a block, or null for a scale of each "
                              "matrix: fp8 with other scales is not supported, use the unquantised "
                              "model, or a GGUF file");
  }
  shape.block_rows = block[0];
  shape.block_columns = block[1];
  return ok_status();
}

struct HeadSizes {
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;
  std::uint64_t key_dim = 0;
  std::uint64_t value_dim = 0;
  std::uint64_t rotated_dim = 0;  // the dimensions that partial_rotary_factor is a part of
};

// Reads a count that must be there unless the family has a default.
Result<std::uint64_t> count_or_default(const JsonFields& config, const char* field,
                                       std::uint64_t fallback) {
  if (fallback == 0) return config.count(field);
  return config.count_or(field, fallback);
}

Result<HeadSizes> read_heads(const JsonFields& config, const Family& family, std::uint64_t width) {
  HeadSizes sizes;
  ASSIGN_OR_RETURN(sizes.heads, count_or_default(config, "num_attention_heads", family.heads));
  if (sizes.heads == 0) return config.refused("num_attention_heads", "expected 1 or more");
  if (family.needs_kv_heads && !config.contains("num_key_value_heads")) {
    return config.missing("num_key_value_heads");
  }
  const bool has_default = family.kv_heads != 0 && !config.contains("num_key_value_heads");
  ASSIGN_OR_RETURN(sizes.kv_heads, config.count_or("num_key_value_heads",
                                                   has_default ? family.kv_heads : sizes.heads));
  if (family.architecture == "deepseek2") {
    ASSIGN_OR_RETURN(const std::uint64_t plain, config.count("qk_nope_head_dim"));
    ASSIGN_OR_RETURN(sizes.rotated_dim, config.count("qk_rope_head_dim"));
    ASSIGN_OR_RETURN(sizes.value_dim, config.count("v_head_dim"));
    sizes.key_dim = plain + sizes.rotated_dim;
    return sizes;
  }
  if (family.architecture == "gemma4") {
    ASSIGN_OR_RETURN(const Gemma4Heads heads, read_gemma4_heads(config));
    sizes.key_dim = sizes.value_dim = sizes.rotated_dim = heads.full_dim;
    sizes.kv_heads = 0;  // differ between layers
    return sizes;
  }
  const bool is_default = !config.contains("head_dim") && family.head_dim != 0;
  ASSIGN_OR_RETURN(sizes.key_dim,
                   config.count_or("head_dim", is_default ? family.head_dim : width / sizes.heads));
  sizes.value_dim = sizes.key_dim;
  sizes.rotated_dim = sizes.key_dim;
  return sizes;
}

Status write_sizes(const JsonFields& config, const Family& family, const KeyWriter& keys,
                   FolderShape& shape) {
  ASSIGN_OR_RETURN(shape.layers, config.count("num_hidden_layers"));
  ASSIGN_OR_RETURN(const std::uint64_t width, config.count("hidden_size"));
  ASSIGN_OR_RETURN(const std::uint64_t hidden, config.count(family.hidden_field));
  ASSIGN_OR_RETURN(const std::uint64_t context,
                   count_or_default(config, "max_position_embeddings", family.context));
  ASSIGN_OR_RETURN(const HeadSizes heads, read_heads(config, family, width));
  ASSIGN_OR_RETURN(const double epsilon, config.number_or("rms_norm_eps", family.norm_epsilon));
  keys.count("block_count", shape.layers);
  keys.count("embedding_length", width);
  keys.count("feed_forward_length", hidden);
  keys.count("context_length", context);
  keys.count("attention.head_count", heads.heads);
  if (heads.kv_heads != 0) keys.count("attention.head_count_kv", heads.kv_heads);
  keys.count("attention.key_length", heads.key_dim);
  keys.count("attention.value_length", heads.value_dim);
  keys.number("attention.layer_norm_rms_epsilon", epsilon);
  RETURN_IF_ERROR(WindowKeys(config, family, shape.layers).write(keys));
  return write_rope_keys(config, family, heads.rotated_dim, keys);
}

}  // namespace

Result<FolderShape> write_config_keys(const JsonValue& config, const std::string& source,
                                      gguf::FileBuilder& builder) {
  ASSIGN_OR_RETURN(const JsonFields root, JsonFields::of(config, source + ": "));
  ASSIGN_OR_RETURN(const std::optional<JsonFields> text, root.object("text_config"));
  const JsonFields& fields = text ? *text : root;
  FolderShape shape;
  shape.has_text_config = text.has_value();
  if (text) RETURN_IF_ERROR(check_text_part(root, *text));
  ASSIGN_OR_RETURN(shape.family, find_family(fields));
  const Family& family = *shape.family;
  RETURN_IF_ERROR(refuse_fields(fields, family));
  RETURN_IF_ERROR(read_quantisation(fields, root, shape));
  builder.set_text("general.architecture", family.architecture);
  const KeyWriter keys(builder, family.architecture);
  RETURN_IF_ERROR(write_sizes(fields, family, keys, shape));
  if (family.write_keys != nullptr) RETURN_IF_ERROR(family.write_keys(fields, keys));
  const JsonFields& tying = root.has("tie_word_embeddings") ? root : fields;
  if (tying.has("tie_word_embeddings")) {
    ASSIGN_OR_RETURN(shape.tied, tying.flag_or("tie_word_embeddings", false));
  } else if (family.tied) {
    shape.tied = true;
  }
  return shape;
}

}  // namespace pagoda::hf
