#include "cli/nearest.h"

#include <algorithm>
#include <vector>

namespace pagoda::cli {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // rows[i % 3][j]: the distance of a's first i letters from b's first j.
  std::vector<std::vector<std::size_t>> rows(3, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t>& row = rows[i % 3];
    const std::vector<std::size_t>& above = rows[(i - 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], rows[(i - 2) % 3][j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> known) {
  const auto distance = [&](const std::string& other) { return edit_distance(word, other); };
  const auto best = std::min_element(
      known.begin(), known.end(),
      [&](const std::string& a, const std::string& b) { return distance(a) < distance(b); });
  if (best == known.end() || word.empty()) return std::nullopt;
  if (distance(*best) <= std::max<std::size_t>(1, word.size() / 3)) return *best;
  const auto longer = std::find_if(known.begin(), known.end(), [&](const std::string& other) {
    return other.starts_with(word) || word.starts_with(other);
  });
  return longer == known.end() ? std::nullopt : std::optional<std::string>(*longer);
}

std::optional<std::string> nearest_value(std::string_view value,
                                         std::span<const std::string> known) {
  const bool has_cuda = std::find(known.begin(), known.end(), "cuda") != known.end();
  const bool is_gpu = value == "gpu" || value == "GPU" || value == "nvidia";
  return has_cuda && is_gpu ? "cuda" : nearest(value, known);
}

}  // namespace pagoda::cli
