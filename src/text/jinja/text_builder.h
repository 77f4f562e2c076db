// Builds a text and counts its bytes before they are allocated.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "text/jinja/heap.h"
#include "text/origin_text.h"

namespace pagoda::text::jinja {

class TextBuilder {
 public:
  explicit TextBuilder(Heap& heap) : heap_(heap) {}

  Heap& heap() { return heap_; }
  std::size_t size() const { return text_.size(); }

  void append(std::string_view bytes, Origin origin) {
    count(bytes.size(), [&] { text_.append(bytes, origin); });
  }
  void append(const OriginText& text, std::size_t begin, std::size_t end) {
    count(end - begin, [&] { text_.append(text, begin, end); });
  }
  void append(const OriginText& text) { append(text, 0, text.size()); }

  Value value() && { return heap_.keep(std::move(text_)); }
  OriginText take() && { return std::move(text_); }

 private:
  template <class Append>
  void count(std::size_t bytes, const Append& append) {
    heap_.reserve(bytes);
    const std::size_t runs = text_.runs().size();
    append();
    heap_.reserve((text_.runs().size() - runs) * sizeof(OriginText::Run));
  }

  Heap& heap_;
  OriginText text_;
};

}  // namespace pagoda::text::jinja
