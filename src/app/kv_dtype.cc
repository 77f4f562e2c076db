#include "app/kv_dtype.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace pagoda::app {
namespace {

using kv::memory::Element;
using kv::memory::Elements;

struct NamedElement {
  std::string_view name;
  Element element;
};
// The first name of an element is ours; aliases are those of vLLM and llama.cpp.
constexpr std::array kNamedElements = {
    NamedElement{"fp32", Element::kF32},      NamedElement{"f32", Element::kF32},
    NamedElement{"fp16", Element::kF16},      NamedElement{"f16", Element::kF16},
    NamedElement{"bf16", Element::kBF16},     NamedElement{"fp8", Element::kE4M3},
    NamedElement{"fp8_e4m3", Element::kE4M3}, NamedElement{"fp8_e5m2", Element::kE5M2},
    NamedElement{"int8", Element::kInt8},     NamedElement{"q8_0", Element::kInt8},
    NamedElement{"int4", Element::kInt4},     NamedElement{"q4_0", Element::kInt4},
};
constexpr std::string_view kMixName = "k8v4";
constexpr Elements kMix = {Element::kInt8, Element::kInt4};

std::string_view name_of(Element element) {
  return std::ranges::find(kNamedElements, element, &NamedElement::element)->name;
}

}  // namespace

std::string kv_dtype_name(Elements elements) {
  if (elements == kMix) return std::string(kMixName);
  if (elements.keys == elements.values) return std::string(name_of(elements.keys));
  return fmt::format("{}/{}", name_of(elements.keys), name_of(elements.values));
}

std::string kv_choice_name(const model::KvCacheDtype& choice,
                           const kv::memory::PageLayout& layout) {
  const Elements elements = choice.elements(layout.elements);
  const std::string name = kv_dtype_name(layout.values_in_keys ? elements.keys : elements);
  return with_skipped_layers(name, kv_skipped_layers(choice));
}

std::string kv_skipped_layers(const model::KvCacheDtype& choice) {
  if (!choice.keys && !choice.values) return {};
  std::vector<std::uint32_t> layers = choice.skip_layers;
  std::ranges::sort(layers);
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  std::vector<std::string> words;
  for (const std::uint32_t layer : layers) words.push_back(fmt::format("{}", layer));
  if (choice.skip_windows) words.emplace_back("sliding_window");
  return fmt::format("{}", fmt::join(words, ","));
}

std::string with_skipped_layers(const std::string& name, const std::string& layers) {
  return layers.empty() ? name : fmt::format("{} skip {}", name, layers);
}

std::vector<std::string> kv_element_names() {
  std::vector<std::string> names;
  for (const NamedElement& named : kNamedElements) names.emplace_back(named.name);
  return names;
}

std::optional<Element> find_kv_element(std::string_view name) {
  const auto found = std::ranges::find(kNamedElements, name, &NamedElement::name);
  if (found == kNamedElements.end()) return std::nullopt;
  return found->element;
}

Result<std::optional<Elements>> parse_kv_dtype(std::string_view name) {
  if (name == "auto") return std::optional<Elements>();
  if (name == kMixName) return std::optional<Elements>(kMix);
  const std::size_t slash = name.find('/');
  const std::optional<Element> keys = find_kv_element(name.substr(0, slash));
  const std::optional<Element> values =
      slash == name.npos ? keys : find_kv_element(name.substr(slash + 1));
  if (keys && values) return std::optional<Elements>(Elements(*keys, *values));
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("`kv_cache_dtype`: {} is none of auto, {}, {}; keys and values may "
                           "differ: bf16/int8",
                           name, kMixName, fmt::join(kv_element_names(), ", "))};
}

}  // namespace pagoda::app
