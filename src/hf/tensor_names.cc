#include "hf/tensor_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "gguf/printable.h"

namespace pagoda::hf {
namespace {

constexpr auto kAllFamilies = std::to_array<TensorName>({
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
});

// The prefixes of the text model in a model that sees images; the longest comes first.
constexpr auto kTextPrefixes = std::to_array<std::string_view>(
    {"language_model.model.", "model.language_model.", "language_model."});
// The prefixes of such a model's image and audio tensors, which are skipped.
constexpr auto kImagePrefixes = std::to_array<std::string_view>(
    {"vision_tower.", "vision_model.", "visual.", "multi_modal_projector.", "patch_merger.",
     "model.vision_tower.", "model.vision_model.", "model.visual.", "model.multi_modal_projector.",
     "model.patch_merger.", "embed_vision.", "embed_audio.", "audio_tower.", "model.embed_vision.",
     "model.embed_audio.", "model.audio_tower."});
// Tables that older versions of transformers saved beside the weights.
constexpr auto kRotationTables = std::to_array<std::string_view>(
    {".rotary_emb.inv_freq", ".rotary_emb.cos_cached", ".rotary_emb.sin_cached"});

bool takes_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Takes a number and the dot after it.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size() || *end != '.') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return number;
}

// Returns the number at '*' as text, an empty text where the pattern has none, or nothing when the
// pattern does not fit.
std::optional<std::string_view> match(std::string_view pattern, std::string_view part) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) {
    return pattern == part ? std::optional<std::string_view>("") : std::nullopt;
  }
  const std::string_view end = pattern.substr(star + 1);
  if (part.size() <= star + end.size() || !part.starts_with(pattern.substr(0, star)) ||
      !part.ends_with(end)) {
    return std::nullopt;
  }
  const std::string_view number = part.substr(star, part.size() - star - end.size());
  const bool is_number =
      std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? std::optional(number) : std::nullopt;
}

// Finds a part of a layer: "self_attn.q_proj.weight".
std::optional<TensorPlace> find_part(std::string_view part, std::span<const TensorName> names) {
  std::string_view base = part;
  std::string_view end;
  for (const std::string_view suffix : {".weight", ".bias"}) {
    if (!part.ends_with(suffix)) continue;
    base = part.substr(0, part.size() - suffix.size());
    end = suffix;
  }
  for (const TensorName& row : names) {
    const auto number = match(row.folder, base);
    if (!number) continue;
    std::string name(row.gguf);
    if (!number->empty()) name.replace(name.find('*'), 1, *number);
    return TensorPlace{name + std::string(end), row.change};
  }
  return std::nullopt;
}

Error unknown(std::string_view tensor, const FolderShape& shape) {
  return {ErrorCode::kUnsupported,
          fmt::format("tensor '{}' is of no use to this version: models of type {} have a part "
                      "here that is not supported",
                      gguf::printable(tensor, 120), shape.family->model_type)};
}

bool is_left_out(std::string_view tensor, const FolderShape& shape) {
  if (std::any_of(kRotationTables.begin(), kRotationTables.end(),
                  [&](std::string_view end) { return tensor.ends_with(end); })) {
    return true;
  }
  return shape.has_text_config &&
         std::any_of(kImagePrefixes.begin(), kImagePrefixes.end(),
                     [&](std::string_view prefix) { return tensor.starts_with(prefix); });
}

}  // namespace

Result<std::optional<TensorPlace>> find_place(std::string_view tensor, const FolderShape& shape) {
  using Found = std::optional<TensorPlace>;
  if (is_left_out(tensor, shape)) return Found();
  std::string_view name = tensor;
  bool is_inner = false;  // the prefix of the text model stood for "model." as well
  if (shape.has_text_config) {
    for (const std::string_view prefix : kTextPrefixes) {
      if (!takes_prefix(name, prefix)) continue;
      is_inner = prefix != "language_model.";
      break;
    }
  }
  // One that is there is used, also where the config says that it is the embedding.
  if (name == "lm_head.weight") return Found(TensorPlace{"output.weight"});
  if (!is_inner && !takes_prefix(name, "model.")) return unknown(tensor, shape);
  if (name == "embed_tokens.weight") return Found(TensorPlace{"token_embd.weight"});
  if (name == "norm.weight") return Found(TensorPlace{"output_norm.weight"});
  if (!takes_prefix(name, "layers.")) return unknown(tensor, shape);
  const std::optional<std::uint64_t> layer = take_number(name);
  if (!layer) return unknown(tensor, shape);
  if (*layer >= shape.layers && shape.family->skips_later_layers) return Found();
  Found place = find_part(name, shape.family->names);
  if (!place) place = find_part(name, kAllFamilies);
  if (!place || *layer >= shape.layers) return unknown(tensor, shape);
  place->name = fmt::format("blk.{}.{}", *layer, place->name);
  return place;
}

}  // namespace pagoda::hf
