#include "app/rank_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "kv/memory/page_layout.h"
#include "kv/tiers/page_store.h"
#include "model/kv_groups.h"
#include "model/rows_description.h"

namespace pagoda::app {
namespace {

using Json = nlohmann::json;

template <class T>
Json number_of(const std::optional<T>& value) {
  return value ? Json(static_cast<std::uint64_t>(*value)) : Json();
}

template <class T>
void read_number(const Json& json, const char* name, std::optional<T>& value) {
  if (!json.at(name).is_null()) value = static_cast<T>(json.at(name).get<std::uint64_t>());
}

Error unreadable(const char* what, const std::exception& error) {
  return {ErrorCode::kCorrupt, fmt::format("a rank's {} cannot be read: {}", what, error.what())};
}

}  // namespace

std::string write_setup(const RankSetup& setup) {
  const QuantizationOptions& quantization = setup.load.quantization;
  const model::KvCacheDtype& dtype = setup.kv_cache_dtype;
  return Json({{"model", setup.model},
               {"context", setup.load.context_tokens},
               {"fields", setup.load.overrides.fields},
               {"rope_scaling", setup.load.overrides.rope_scaling},
               {"quantization", number_of(quantization.type)},
               {"dtype", number_of(quantization.dtype)},
               {"cache_bytes", number_of(quantization.cache_bytes)},
               {"cache_folder", quantization.cache_folder},
               {"kernel_set", setup.kernel_set},
               {"keys", number_of(dtype.keys)},
               {"values", number_of(dtype.values)},
               {"skip_layers", dtype.skip_layers},
               {"skip_windows", dtype.skip_windows},
               {"block_tokens", setup.block_tokens},
               {"rows_max", setup.rows_max},
               {"threads", setup.threads},
               {"limit_ms", setup.limit.count()}})
      .dump();
}

Result<RankSetup> read_setup(std::string_view text) try {
  const Json json = Json::parse(text);
  RankSetup setup;
  json.at("model").get_to(setup.model);
  json.at("context").get_to(setup.load.context_tokens);
  json.at("fields").get_to(setup.load.overrides.fields);
  json.at("rope_scaling").get_to(setup.load.overrides.rope_scaling);
  read_number(json, "quantization", setup.load.quantization.type);
  read_number(json, "dtype", setup.load.quantization.dtype);
  read_number(json, "cache_bytes", setup.load.quantization.cache_bytes);
  json.at("cache_folder").get_to(setup.load.quantization.cache_folder);
  json.at("kernel_set").get_to(setup.kernel_set);
  read_number(json, "keys", setup.kv_cache_dtype.keys);
  read_number(json, "values", setup.kv_cache_dtype.values);
  json.at("skip_layers").get_to(setup.kv_cache_dtype.skip_layers);
  json.at("skip_windows").get_to(setup.kv_cache_dtype.skip_windows);
  json.at("block_tokens").get_to(setup.block_tokens);
  json.at("rows_max").get_to(setup.rows_max);
  json.at("threads").get_to(setup.threads);
  setup.limit = std::chrono::milliseconds(json.at("limit_ms").get<std::int64_t>());
  return setup;
} catch (const Json::exception& error) {
  return unreadable("setup", error);
}

std::string write_ready(const RankReady& ready) {
  return Json({{"identity", ready.identity},
               {"page_bytes", ready.facts.page_bytes},
               {"weight_bytes", ready.facts.weight_bytes}})
      .dump();
}

Result<RankReady> read_ready(std::string_view text) try {
  const Json json = Json::parse(text);
  return RankReady{.identity = json.at("identity").get<std::string>(),
                   .facts = {.page_bytes = json.at("page_bytes").get<std::uint64_t>(),
                             .weight_bytes = json.at("weight_bytes").get<std::uint64_t>()}};
} catch (const Json::exception& error) {
  return unreadable("answer", error);
}

// The first bytes of every tensor tell models of one shape apart.
std::string identity_of(const gguf::File& file, const model::Config& config,
                        const kernels::KernelSet& kernels, const RankSetup& setup) {
  constexpr std::size_t kSample = 64;
  std::string tensors;
  for (const gguf::Tensor& tensor : file.tensors()) {
    const std::span<const std::byte> sample =
        std::span(tensor.bytes).first(std::min(kSample, tensor.bytes.size()));
    tensors += fmt::format("{} {} {} {} ", tensor.name, static_cast<int>(tensor.type),
                           tensor.rows(), tensor.bytes.size());
    tensors.append(reinterpret_cast<const char*>(sample.data()), sample.size());
  }
  std::string layouts;
  for (const kv::memory::PageLayout& layout :
       model::plan_kv_groups(config, kernels, setup.kv_cache_dtype, setup.block_tokens).layouts) {
    layouts += " " + kv::memory::format_name(layout);
  }
  const auto digest = kv::space_id(tensors + model::describe_rows(config)).digest;
  std::string text =
      fmt::format("{}.{}{} rows {} ", kernels.name, kernels.version, layouts, setup.rows_max);
  for (const auto byte : digest) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

}  // namespace pagoda::app
