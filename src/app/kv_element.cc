#include "app/kv_element.h"

namespace pagoda::app {

using kv::memory::Element;

std::string_view kv_element_name(Element element) {
  switch (element) {
    case Element::kF32:
      return "fp32";
    case Element::kF16:
      return "fp16";
    case Element::kBF16:
      return "bf16";
    case Element::kE4M3:
      return "fp8";
  }
  return "unknown";
}

}  // namespace pagoda::app
