#include "serve/dtype_blocks.h"

#include <array>
#include <string>

#include "app/kv_dtype.h"

namespace pagoda::serve {
namespace {

using kv::memory::Element;
using kv::memory::Elements;

constexpr auto kSmallerElements = std::to_array<Elements>({Element::kBF16,
                                                           Element::kInt8,
                                                           Element::kE4M3,
                                                           {Element::kInt8, Element::kInt4},
                                                           Element::kInt4});

bool can_keep(const kv::memory::PageLayout& layout, Elements elements) {
  if (layout.values_in_keys && elements.keys != elements.values) return false;
  return layout.key_dim % kv::memory::dimension_multiple(elements.keys) == 0 &&
         layout.value_dim % kv::memory::dimension_multiple(elements.values) == 0;
}

}  // namespace

server::Json block_bytes_by_dtype(const kv::memory::PageLayout& layout) {
  server::Json sizes = server::Json::object();
  for (const Elements elements : kSmallerElements) {
    kv::memory::PageLayout smaller = layout;
    smaller.elements = elements;
    if (!can_keep(smaller, elements) || smaller.page_bytes() >= layout.page_bytes()) continue;
    sizes[app::kv_dtype_name(elements)] = smaller.page_bytes();
  }
  return sizes;
}

}  // namespace pagoda::serve
