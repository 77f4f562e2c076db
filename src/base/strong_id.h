// Strong ids cannot be mixed up: StrongId<struct BlockTag> and StrongId<struct TokenTag> are
// different types with the same cost as their integer.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace pagoda {

template <class Tag, class Rep = std::uint32_t>
class StrongId {
 public:
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }
  constexpr auto operator<=>(const StrongId&) const = default;

 private:
  Rep value_ = 0;
};

}  // namespace pagoda

template <class Tag, class Rep>
struct std::hash<pagoda::StrongId<Tag, Rep>> {
  std::size_t operator()(pagoda::StrongId<Tag, Rep> id) const noexcept {
    return std::hash<Rep>{}(id.value());
  }
};
