#include "inspect/model_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <variant>

#include "app/sampling_defaults.h"
#include "base/byte_size.h"
#include "gguf/printable.h"
#include "inspect/kv_layers_json.h"
#include "terminal/json_text.h"
#include "terminal/message_fields.h"

namespace pagoda::inspect {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kTextElementsMax = 6;
constexpr std::size_t kTextBytesMax = 72;
constexpr std::uint64_t kJsonElementsMax = 8;

// Keys under "<architecture>." that the summary shows when they are there.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kSummaryKeys = {{
    {"layers", "block_count"},
    {"embedding", "embedding_length"},
    {"feed-forward", "feed_forward_length"},
    {"heads", "attention.head_count"},
    {"KV heads", "attention.head_count_kv"},
    {"key length", "attention.key_length"},
    {"value length", "attention.value_length"},
    {"window", "attention.sliding_window"},
    {"latent rank", "attention.kv_lora_rank"},
    {"experts", "expert_count"},
    {"experts used", "expert_used_count"},
    {"context", "context_length"},
}};

std::string architecture_of(const gguf::File& file) {
  const auto name = file.metadata().text_or("general.architecture", "");
  return name.ok() ? std::string(name.value()) : "";
}

// Tokens in the vocabulary: as the file says or, else, as its list is long.
std::optional<std::uint64_t> vocabulary_tokens(const gguf::File& file) {
  const auto stated = file.metadata().unsigned_value(architecture_of(file) + ".vocab_size");
  if (stated.ok()) return stated.value();
  const gguf::MetadataValue* const tokens = file.metadata().find("tokenizer.ggml.tokens");
  if (tokens == nullptr || tokens->type != gguf::ValueType::kArray) return std::nullopt;
  return std::get<gguf::Array>(tokens->data).count;
}

// A float of the file in the fewest digits that read back as the same float.
std::string number_text(const gguf::MetadataValue& value) {
  const double number = std::get<double>(value.data);
  if (value.type == gguf::ValueType::kF32) return fmt::format("{}", static_cast<float>(number));
  return fmt::format("{}", number);
}

std::string value_text(const gguf::MetadataValue& value) {
  struct Writer {
    const gguf::MetadataValue& value;
    std::string operator()(std::uint64_t number) const { return fmt::format("{}", number); }
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double) const { return number_text(value); }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(std::string_view text) const {
      return fmt::format("\"{}\"", gguf::printable(text, kTextBytesMax));
    }
    std::string operator()(const gguf::Array& array) const {
      std::string text = "[";
      for (const gguf::MetadataValue& element : gguf::elements(array, kTextElementsMax)) {
        text += (text.size() > 1 ? ", " : "") + value_text(element);
      }
      if (array.count > kTextElementsMax) {
        text += fmt::format(", \u2026 {} in all", format_grouped(array.count));
      }
      return text + "]";
    }
  };
  return std::visit(Writer{value}, value.data);
}

Json value_json(const gguf::MetadataValue& value) {
  struct Writer {
    const gguf::MetadataValue& value;
    Json operator()(std::uint64_t number) const { return number; }
    Json operator()(std::int64_t number) const { return number; }
    Json operator()(double number) const {
      const std::string digits = number_text(value);
      std::from_chars(digits.data(), digits.data() + digits.size(), number);
      return number;
    }
    Json operator()(bool flag) const { return flag; }
    Json operator()(std::string_view text) const { return std::string(text); }
    Json operator()(const gguf::Array& array) const {
      Json first = Json::array();
      for (const gguf::MetadataValue& element : gguf::elements(array, kJsonElementsMax)) {
        first.push_back(value_json(element));
      }
      if (array.count <= kJsonElementsMax) return first;
      return {{"type", gguf::value_type_name(array.element_type)},
              {"count", array.count},
              {"first", std::move(first)}};
    }
  };
  return std::visit(Writer{value}, value.data);
}

constexpr std::string_view kQuantisedKv[] = {"fp8", "int8", "k8v4", "int4"};

// Whether the heads of all layers divide into groups of values that share a scale. A latent is key
// and value, which a format must keep alike.
bool fits(const app::KvFormat& format, const std::vector<app::KvLayers>& groups) {
  return std::ranges::all_of(groups, [&](const app::KvLayers& group) {
    if (group.latent && format.key_bits != format.value_bits) return false;
    return (format.key_group == 0 || group.key_dim % format.key_group == 0) &&
           (format.value_group == 0 || group.value_dim % format.value_group == 0);
  });
}

Result<KvInspection> inspect_kv(const gguf::File& file) {
  ASSIGN_OR_RETURN(const app::KvModel model, app::read_kv_model(file));
  const Result<app::KvSize> size = app::kv_size({.groups = model.groups,
                                                 .format = *app::find_kv_format("fp16"),
                                                 .sequence_length = model.context_length});
  if (!size.ok())
    return Error{size.error().code, terminal::with_plain_fields(size.error().message)};
  KvInspection kv = {model.groups,
                     model.context_length,
                     size.value().per_token.stored,
                     size.value().total.stored,
                     {}};
  for (const std::string_view name : kQuantisedKv) {
    const app::KvFormat& format = *app::find_kv_format(name);
    if (!fits(format, model.groups)) continue;
    const Result<app::KvSize> smaller = app::kv_size({.groups = model.groups, .format = format});
    if (smaller.ok()) kv.formats.push_back({name, smaller.value().per_token.stored});
  }
  return kv;
}

std::string grouped_bytes(std::uint64_t bytes) {
  return fmt::format("{} bytes ({})", format_grouped(bytes),
                     format_byte_size(static_cast<double>(bytes)));
}

std::string layers_text(const app::KvLayers& group) {
  const std::string layers = fmt::format("{} layer{}", group.layers, group.layers == 1 ? "" : "s");
  const std::string window =
      group.window == 0 ? "" : fmt::format(", window of {} tokens", format_grouped(group.window));
  if (group.latent) return fmt::format("{} of one latent of {}{}", layers, group.key_dim, window);
  return fmt::format("{} of {} KV head{} x ({} key + {} value){}", layers, group.kv_heads,
                     group.kv_heads == 1 ? "" : "s", group.key_dim, group.value_dim, window);
}

std::string line(std::string_view label, std::string_view value) {
  return fmt::format("  {:<16}{}\n", label, value);
}

std::string architecture_text(const gguf::File& file) {
  const std::string architecture = architecture_of(file);
  if (architecture.empty()) return "architecture: not stated\n";
  std::string text =
      fmt::format("architecture: {}\n", gguf::printable(architecture, kTextBytesMax));
  if (const gguf::MetadataValue* const name = file.metadata().find("general.name")) {
    text += line("name", value_text(*name));
  }
  for (const auto& [label, key] : kSummaryKeys) {
    const gguf::MetadataValue* const value =
        file.metadata().find(fmt::format("{}.{}", architecture, key));
    if (value != nullptr) text += line(label, value_text(*value));
  }
  const auto tokens = vocabulary_tokens(file);
  if (tokens) text += line("vocabulary", fmt::format("{}", *tokens));
  return text;
}

std::string kv_text(const Inspection& inspection) {
  if (!inspection.kv) return fmt::format("KV cache: unknown: {}\n", inspection.kv_reason);
  const KvInspection& kv = *inspection.kv;
  std::string text = "KV cache of one sequence in fp16 or bf16:\n";
  for (const app::KvLayers& group : kv.groups) text += line("shape", layers_text(group));
  text += line("per token", grouped_bytes(static_cast<std::uint64_t>(kv.bytes_per_token)));
  for (const KvInspection::Format& format : kv.formats) {
    text += line(fmt::format("  in {}", format.name),
                 grouped_bytes(static_cast<std::uint64_t>(format.bytes_per_token)));
  }
  text += line("full context",
               fmt::format("{} for {} tokens",
                           grouped_bytes(static_cast<std::uint64_t>(kv.bytes_per_full_context)),
                           format_grouped(static_cast<std::uint64_t>(kv.context_length))));
  return text;
}

std::string sampling_line(const gguf::File& file) {
  const app::SamplingDefaults defaults = app::model_sampling(file.metadata());
  if (!defaults.fields.any()) return "";
  return fmt::format("sampling where a request does not say: {} ({})\n\n",
                     app::sampling_text(defaults.fields), defaults.source);
}

Json sampling_json(const gguf::File& file) {
  Json fields = Json::object();
  for (const auto& [name, value] : app::model_sampling(file.metadata()).fields.list()) {
    fields[name] = value;
  }
  return fields;
}

std::string total_text(const TensorTotal& total, std::string_view label) {
  return fmt::format("  {:<10}{:>8}{:>20}{:>22}  {}\n", label, format_grouped(total.tensors),
                     format_grouped(total.parameters), format_grouped(total.bytes),
                     format_byte_size(static_cast<double>(total.bytes)));
}

Json total_json(const TensorTotal& total) {
  return {{"tensors", total.tensors}, {"parameters", total.parameters}, {"bytes", total.bytes}};
}

Json kv_json(const Inspection& inspection) {
  if (!inspection.kv) return nullptr;
  const KvInspection& kv = *inspection.kv;
  Json layers = Json::array();
  for (const app::KvLayers& group : kv.groups) layers.push_back(kv_layers_json(group));
  Json by_dtype = {{"fp16", kv.bytes_per_token}, {"bf16", kv.bytes_per_token}};
  for (const KvInspection::Format& format : kv.formats) {
    by_dtype[std::string(format.name)] = format.bytes_per_token;
  }
  return {{"element_bytes", 2},
          {"layers", std::move(layers)},
          {"context_length", kv.context_length},
          {"bytes_per_token", kv.bytes_per_token},
          {"bytes_per_token_by_dtype", std::move(by_dtype)},
          {"bytes_per_full_context", kv.bytes_per_full_context}};
}

Json architecture_json(const gguf::File& file) {
  const std::string architecture = architecture_of(file);
  if (architecture.empty()) return nullptr;
  Json json = {{"name", architecture}};
  for (const auto& [label, key] : kSummaryKeys) {
    const gguf::MetadataValue* const value =
        file.metadata().find(fmt::format("{}.{}", architecture, key));
    if (value != nullptr) json[std::string(key)] = value_json(*value);
  }
  if (const auto tokens = vocabulary_tokens(file)) json["vocab_size"] = *tokens;
  return json;
}

}  // namespace

Inspection inspect_model(const gguf::File& file) {
  Inspection inspection;
  inspection.all.type = "total";
  std::map<std::string_view, TensorTotal> by_type;
  for (const gguf::Tensor& tensor : file.tensors()) {
    const std::string_view name = gguf::tensor_type_info(tensor.type).name;
    TensorTotal& total = by_type[name];
    total.type = name;
    for (TensorTotal* const sum : {&total, &inspection.all}) {
      sum->tensors += 1;
      sum->parameters += tensor.elements();
      sum->bytes += tensor.bytes.size();
    }
  }
  for (auto& [name, total] : by_type) inspection.types.push_back(std::move(total));
  std::stable_sort(inspection.types.begin(), inspection.types.end(),
                   [](const TensorTotal& a, const TensorTotal& b) { return a.bytes > b.bytes; });
  Result<KvInspection> kv = inspect_kv(file);
  if (kv.ok()) {
    inspection.kv = std::move(kv).value();
  } else {
    inspection.kv_reason = kv.error().message;
  }
  return inspection;
}

std::string inspection_text(const gguf::File& file, const Inspection& inspection) {
  const bool is_folder = file.version() == 0;
  std::string text = fmt::format(
      "{}: {}, {}\n\n", file.path(),
      is_folder ? fmt::format("Hugging Face folder, {} files", file.opened_parts().size())
                : fmt::format("GGUF version {}", file.version()),
      grouped_bytes(file.bytes()));
  text += architecture_text(file) + "\n" + kv_text(inspection) + "\n";
  text += sampling_line(file);
  text +=
      fmt::format("tensors:\n  {:<10}{:>8}{:>20}{:>22}\n", "type", "count", "parameters", "bytes");
  for (const TensorTotal& total : inspection.types) text += total_text(total, total.type);
  text += total_text(inspection.all, "total") + "\n";

  text += "metadata:\n";
  for (const auto& [key, value] : file.metadata().entries()) {
    text += fmt::format("  {} = {}\n", gguf::printable(key, key.size()), value_text(value));
  }
  return text;
}

std::string inspection_json(const gguf::File& file, const Inspection& inspection) {
  Json json = {{"path", file.path()}, {"version", nullptr}, {"bytes", file.bytes()}};
  if (file.version() != 0) json["version"] = file.version();  // null: no GGUF file
  json["architecture"] = architecture_json(file);
  json["kv_cache"] = kv_json(inspection);
  if (!inspection.kv) json["kv_cache_unknown"] = inspection.kv_reason;
  json["sampling_defaults"] = sampling_json(file);
  json["tensors"] = total_json(inspection.all);
  json["tensors"]["by_type"] = Json::object();
  for (const TensorTotal& total : inspection.types) {
    json["tensors"]["by_type"][total.type] = total_json(total);
  }
  json["metadata"] = Json::object();
  for (const auto& [key, value] : file.metadata().entries()) {
    json["metadata"][std::string(key)] = value_json(value);
  }
  // Texts of the file may hold bytes that are not UTF-8.
  return terminal::json_text(json) + "\n";
}

}  // namespace pagoda::inspect
