// What a cache keeps keys and values as: the choice of whoever starts a model.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kv/memory/page_layout.h"

namespace pagoda::model {

struct KvCacheDtype {
  // What is unset is the default of the device.
  std::optional<kv::memory::Element> keys = {};
  std::optional<kv::memory::Element> values = {};
  // Layers that keep the default all the same: by index, and all that have a sliding window.
  std::vector<std::uint32_t> skip_layers = {};
  bool skip_windows = false;

  KvCacheDtype() = default;
  KvCacheDtype(kv::memory::Elements elements)  // NOLINT: of all layers
      : keys(elements.keys), values(elements.values) {}
  KvCacheDtype(kv::memory::Element both) : keys(both), values(both) {}  // NOLINT

  // Of layers that are not skipped.
  kv::memory::Elements elements(kv::memory::Elements standard) const {
    return {keys.value_or(standard.keys), values.value_or(standard.values)};
  }
};

}  // namespace pagoda::model
