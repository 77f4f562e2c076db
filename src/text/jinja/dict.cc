#include "text/jinja/dict.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "text/jinja/heap.h"

namespace pagoda::text::jinja {

Dict::Key Dict::key_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kText:
      return {Key::Rank::kText, 0, value.bytes()};
    case Kind::kNone:
      return {};
    case Kind::kBool:
    case Kind::kInteger:
      return {Key::Rank::kInteger, value.as_integer(), {}};
    case Kind::kFloat: {
      const double real = value.as_real();
      if (std::trunc(real) == real && real >= -0x1p63 && real < 0x1p63) {
        return {Key::Rank::kInteger, static_cast<std::int64_t>(real), {}};
      }
      return {Key::Rank::kReal, std::bit_cast<std::int64_t>(real), {}};
    }
    default:
      fail(fmt::format("a {} cannot be a key", value.type_name()));
  }
}

void Dict::count_comparisons(const Key& key, Heap& heap) const {
  heap.step();
  heap.read_bytes(key.text.size() * static_cast<std::size_t>(std::bit_width(entries_.size())));
}

const Value* Dict::find(const Value& key, Heap& heap) const {
  const Key wanted = key_of(key);
  count_comparisons(wanted, heap);
  const auto found = places_.find(wanted);
  return found == places_.end() ? nullptr : &entries_[found->second].value;
}

const Value* Dict::find(std::string_view name) const {
  const auto found = places_.find({Key::Rank::kText, 0, name});
  return found == places_.end() ? nullptr : &entries_[found->second].value;
}

void Dict::set(const Value& key, const Value& value, Heap& heap) {
  const Key wanted = key_of(key);
  count_comparisons(wanted, heap);
  const auto [found, is_new] = places_.try_emplace(wanted, entries_.size());
  if (is_new) {
    heap.reserve(kEntryBytes);
    entries_.push_back({key, value});
  } else {
    entries_[found->second].value = value;
  }
}

bool Dict::erase(const Value& key, Heap& heap) {
  const Key wanted = key_of(key);
  count_comparisons(wanted, heap);
  const auto found = places_.find(wanted);
  if (found == places_.end()) return false;
  const std::size_t place = found->second;
  heap.step(entries_.size());
  places_.erase(found);
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(place));
  for (auto& [each, later] : places_) {
    if (later > place) --later;
  }
  return true;
}

}  // namespace pagoda::text::jinja
