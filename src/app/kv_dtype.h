// Names the elements in which keys and values are cached (--kv-cache-dtype).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kv/memory/page_layout.h"
#include "model/kv_cache_dtype.h"

namespace pagoda::app {

// "bf16", "int8", …; "k8v4" is int8 keys and int4 values; other pairs are "KEYS/VALUES".
std::string kv_dtype_name(kv::memory::Elements elements);

// Names the elements that a cache of this layout has under the choice, and behind them the layers
// that keep the default all the same: "int8", "int8 skip 0,1,sliding_window".
std::string kv_choice_name(const model::KvCacheDtype& choice, const kv::memory::PageLayout& layout);
// The layers that a choice skips, as the flag takes them: "0,1,sliding_window". Empty: none, or
// nothing that they could be skipped by was chosen.
std::string kv_skipped_layers(const model::KvCacheDtype& choice);
// "int8 skip 0,1"
std::string with_skipped_layers(const std::string& name, const std::string& layers);

// The names of one element, aliases of other engines among them: "fp16", "f16", "int8", "q8_0", …
std::vector<std::string> kv_element_names();
std::optional<kv::memory::Element> find_kv_element(std::string_view name);

// Any name that kv_dtype_name gives, or pairs of aliases; "auto" is no elements. The error lists
// what there is.
Result<std::optional<kv::memory::Elements>> parse_kv_dtype(std::string_view name);

}  // namespace pagoda::app
