// Finds the known word that a mistyped one was probably meant to be.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pagoda::cli {

// Letters to insert, delete, replace or swap with a neighbour to make `b` of `a`.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The nearest of `known`, when it is near: at most a third of the word's letters are wrong, or one
// begins with the other. The first of several.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> known);

// The same of a flag's value. A GPU is meant by "gpu", which is nearer to "cpu" than to "cuda".
std::optional<std::string> nearest_value(std::string_view value,
                                         std::span<const std::string> known);

}  // namespace pagoda::cli
