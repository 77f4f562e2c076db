// The elements that keys and values may have, with names for tests.
#pragma once

#include <array>
#include <string>

#include "kv/memory/page_layout.h"

namespace pagoda::engine {

inline constexpr std::array kElementsOfKv = {kv::memory::Element::kF32,  kv::memory::Element::kF16,
                                             kv::memory::Element::kBF16, kv::memory::Element::kE4M3,
                                             kv::memory::Element::kE5M2, kv::memory::Element::kInt8,
                                             kv::memory::Element::kInt4};

inline std::string element_name(kv::memory::Element element) {
  constexpr std::array kNames = {"fp32", "fp16", "bf16", "e4m3", "e5m2", "int8", "int4"};
  return kNames[static_cast<std::size_t>(element)];
}

}  // namespace pagoda::engine
