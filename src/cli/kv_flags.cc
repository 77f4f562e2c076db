#include "cli/kv_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "app/kv_dtype.h"
#include "eval/kv_configuration.h"
#include "eval/quality_gate.h"

namespace pagoda::cli {

namespace {

// "auto" leaves what is there; why a name is refused, or nothing.
std::string choose_element(const std::string& name, std::optional<kv::memory::Element>& element) {
  if (name != "auto") element = app::find_kv_element(name);
  return {};
}

// "bf16/int8"
bool is_pair(const std::string& name) {
  return name.find('/') != std::string::npos && app::parse_kv_dtype(name).ok();
}

std::string choose_layers(const std::vector<std::string>& words, model::KvCacheDtype& dtype) {
  for (const std::string& word : words) {
    std::uint32_t layer = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), layer);
    if (word == "sliding_window") {
      dtype.skip_windows = true;
    } else if (error == std::errc() && end == word.data() + word.size()) {
      dtype.skip_layers.push_back(layer);
    } else {
      return word + " is neither a layer's number nor sliding_window";
    }
  }
  return {};
}

}  // namespace

void add_kv_cache_dtype_options(const CommandSpec& command, model::KvCacheDtype& dtype) {
  const auto choose_both = [&dtype](const std::string& name) -> std::string {
    const auto elements = app::parse_kv_dtype(name);
    if (!elements.ok()) return elements.error().message;
    if (!elements.value()) return {};
    if (!dtype.keys) dtype.keys = elements.value()->keys;
    if (!dtype.values) dtype.values = elements.value()->values;
    return {};
  };
  std::vector<std::string> names = app::kv_element_names();
  names.insert(names.begin(), "auto");
  command
      .add_parsed(
          "--cache-type-k",
          [&dtype](const std::string& name) { return choose_element(name, dtype.keys); },
          "what cached keys are kept as (default as --kv-cache-dtype)")
      .among(names);
  command
      .add_parsed(
          "--cache-type-v",
          [&dtype](const std::string& name) { return choose_element(name, dtype.values); },
          "what cached values are kept as (default as --kv-cache-dtype)")
      .among(names);
  names.insert(names.begin() + 1, "k8v4");
  command
      .add_parsed("--kv-cache-dtype", choose_both,
                  "what cached keys and values are kept as, or K/V such as bf16/int8; k8v4 "
                  "is int8/int4; below 16 bits quality is paid for memory (default for this CPU: "
                  "bf16, or fp16 where it multiplies in fp32; on a GPU bf16)")
      .among(names, "K/V", is_pair);
  add_skip_layers_option(command, dtype);
}

void add_skip_layers_option(const CommandSpec& command, model::KvCacheDtype& dtype) {
  command
      .add_parsed_list(
          "--kv-cache-dtype-skip-layers",
          [&dtype](const std::vector<std::string>& words) { return choose_layers(words, dtype); },
          "layers that keep the default all the same: numbers from 0, or "
          "sliding_window for all that have one")
      .delimiter(',')
      .one_value_each()
      .type_name("LAYERS");
}

void add_kv_configurations_option(const CommandSpec& command,
                                  std::vector<eval::EvalConfiguration>& configurations) {
  const auto choose = [&configurations](const std::vector<std::string>& names) -> std::string {
    configurations.clear();
    for (const std::string& name : names) {
      Result<eval::EvalConfiguration> made = eval::kv_configuration(name);
      if (!made.ok()) return made.error().message;
      configurations.push_back(std::move(made).value());
    }
    return {};
  };
  command
      .add_parsed_list("--kv", choose,
                       fmt::format("KV formats, as --kv-cache-dtype names them, also with a KV "
                                   "policy: int8@streaming:4+1024; several with commas (default "
                                   "{}, or none with --policy)",
                                   kEvaluatedByDefault))
      .delimiter(',')
      .one_value_each()
      .type_name("LIST");
}

void add_policy_configurations_option(const CommandSpec& command,
                                      std::vector<eval::EvalConfiguration>& policies) {
  const auto choose = [&policies](const std::vector<std::string>& names) -> std::string {
    for (const std::string& name : names) {
      Result<eval::EvalConfiguration> made =
          eval::kv_configuration(std::string(eval::kBaselineName) + eval::kPolicyMark + name);
      if (!made.ok()) return made.error().message;
      policies.push_back(std::move(made).value());
    }
    return {};
  };
  command
      .add_parsed_list("--policy", choose,
                       "KV policies, as --kv-policy names them; several with commas")
      .delimiter(',')
      .one_value_each()
      .type_name("LIST");
}

void add_kv_policy_option(const CommandSpec& command, kv::KvPolicy& policy) {
  const auto choose = [&policy](const std::string& text) -> std::string {
    const Result<kv::KvPolicy> parsed = kv::KvPolicy::parse(text);
    if (!parsed.ok()) return parsed.error().message;
    policy = parsed.value();
    return {};
  };
  command
      .add_parsed(
          "--kv-policy", choose,
          "which tokens' KV a sequence keeps where its request does not say: full, window:W "
          "(the last W tokens) or streaming:S+W (the first S tokens, attention sinks, and the "
          "last W), as in streaming:4+1024: then outputs may pass the context; h2o:BUDGET[+RECENT] "
          "or snapkv:BUDGET[+WINDOW] (pages of BUDGET tokens that got most attention, and the last "
          "ones; chosen while the output runs, or once behind the prompt) (default full)")
      .type_name("POLICY");
}

void add_kv_eviction_option(const CommandSpec& command, const kv::EvictionPolicy*& policy) {
  std::vector<std::string> names;
  for (const kv::EvictionPolicy* const known : kv::eviction_policies()) {
    names.emplace_back(known->name);
  }
  const auto choose = [&policy](const std::string& name) -> std::string {
    policy = kv::find_policy(name);
    return {};
  };
  command
      .add_parsed("--kv-eviction", choose,
                  fmt::format("which cached block goes first (default {})", policy->name))
      .among(names);
}

}  // namespace pagoda::cli
