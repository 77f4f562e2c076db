#include "cli/kv_element.h"

#include <map>
#include <string>

namespace pagoda::cli {

using kv::memory::Element;

void add_kv_element_option(CLI::App& command, Element& element) {
  static const std::map<std::string, Element> kNames = {{"fp32", Element::kF32},
                                                        {"f32", Element::kF32},
                                                        {"fp16", Element::kF16},
                                                        {"f16", Element::kF16},
                                                        {"bf16", Element::kBF16}};
  command
      .add_option_function<std::string>(
          "--kv-cache-dtype", [&element](const std::string& name) { element = kNames.at(name); },
          "element type of cached keys and values (default fp16)")
      ->check(CLI::IsMember(kNames));
}

std::string_view kv_element_name(Element element) {
  switch (element) {
    case Element::kF32:
      return "fp32";
    case Element::kF16:
      return "fp16";
    case Element::kBF16:
      return "bf16";
  }
  return "unknown";
}

}  // namespace pagoda::cli
