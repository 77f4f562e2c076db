// KvCacheDtype is the operator's choice of the elements in which a cache stores keys and values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kv/memory/page_layout.h"

namespace pagoda::model {

struct KvCacheDtype {
  // An unset element is the device's default.
  std::optional<kv::memory::Element> keys = {};
  std::optional<kv::memory::Element> values = {};
  // Layers that keep the default all the same: by index, and all that have a sliding window.
  std::vector<std::uint32_t> skip_layers = {};
  bool skip_windows = false;

  KvCacheDtype() = default;
  KvCacheDtype(kv::memory::Elements elements)  // NOLINT: of all layers
      : keys(elements.keys), values(elements.values) {}
  KvCacheDtype(kv::memory::Element both) : keys(both), values(both) {}  // NOLINT

  // Returns the elements of layers that are not skipped; `standard` is the device's default.
  kv::memory::Elements elements(kv::memory::Elements standard) const {
    return {keys.value_or(standard.keys), values.value_or(standard.values)};
  }
};

}  // namespace pagoda::model
