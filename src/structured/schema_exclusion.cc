#include "structured/schema_exclusion.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace pagoda::structured {
namespace {

constexpr int kMemberDepthMax = 3;

using Shapes = std::vector<SchemaShape>;

class Exclusion {
 public:
  explicit Exclusion(SchemaGraph& graph) : graph_(graph) {}

  // Every shape of one must exclude every shape of the other.
  Result<bool> check(const Shapes& written, const Shapes& other, int depth) {
    for (const SchemaShape& a : written) {
      for (const SchemaShape& b : other) {
        const std::size_t values =
            (a.values ? a.values->size() : 0) + (b.values ? b.values->size() : 0);
        RETURN_IF_ERROR(graph_.count_steps(a.schemas.front(), 1 + values));
        ASSIGN_OR_RETURN(const bool excluded, check_shapes(a, b, depth));
        if (!excluded) return false;
      }
    }
    return true;
  }

 private:
  static bool values_differ(const SchemaShape& a, const SchemaShape& b) {
    if (!a.values || !b.values) return false;
    return values_of_both(*a.values, *b.values).empty();
  }

  static std::uint8_t types_of(const SchemaShape& shape) {
    if (!shape.values) return shape.types;
    std::uint8_t types = 0;
    for (const SchemaValue& value : *shape.values) types |= type_of_value(*value.json);
    return types & shape.types;
  }

  static bool numbers_differ(const SchemaShape& a, const SchemaShape& b) {
    const auto below = [](const NumberBounds& low, const NumberBounds& high) {
      if (!low.high || !high.low) return false;
      const int order = compare(low.high->value, high.low->value);
      return order < 0 || (order == 0 && (low.high->excluded || high.low->excluded));
    };
    return below(a.numbers, b.numbers) || below(b.numbers, a.numbers);
  }

  Result<bool> check_shapes(const SchemaShape& written, const SchemaShape& other, int depth) {
    if (written.is_never || other.is_never || values_differ(written, other)) return true;
    std::uint8_t both = types_of(written) & types_of(other);
    if (numbers_differ(written, other)) both &= ~(kIntegerType | kFractionType) & kAllTypes;
    if (written.length_most < other.length_least || other.length_most < written.length_least) {
      both &= ~kStringType & kAllTypes;
    }
    if (written.items_most < other.items_least || other.items_most < written.items_least) {
      both &= ~kArrayType & kAllTypes;
    }
    if (both == kObjectType) return objects_differ(written, other, depth);
    return both == 0;
  }

  Result<bool> objects_differ(const SchemaShape& written, const SchemaShape& other, int depth) {
    for (const std::string_view name : other.required) {
      RETURN_IF_ERROR(graph_.count_steps(written.schemas.front()));
      if (!written.is_open() && !written.names_member(name)) return true;
    }
    if (depth == 0) return false;
    for (const std::string_view name : written.required) {
      RETURN_IF_ERROR(graph_.count_steps(written.schemas.front()));
      ASSIGN_OR_RETURN(const Conjunction mine, graph_.member(written, name));
      ASSIGN_OR_RETURN(const Conjunction theirs, graph_.member(other, name));
      if (mine.empty() || theirs.empty()) continue;
      ASSIGN_OR_RETURN(const Shapes my_shapes, graph_.list_shapes(mine));
      ASSIGN_OR_RETURN(const Shapes their_shapes, graph_.list_shapes(theirs));
      ASSIGN_OR_RETURN(const bool differs, check(my_shapes, their_shapes, depth - 1));
      if (differs) return true;
    }
    return false;
  }

  SchemaGraph& graph_;
};

}  // namespace

Result<std::optional<OverlappingPair>> find_overlap(SchemaGraph& graph,
                                                    const std::vector<Conjunction>& alternatives) {
  Exclusion exclusion(graph);
  std::vector<Shapes> shapes;
  for (const Conjunction& alternative : alternatives) {
    ASSIGN_OR_RETURN(shapes.emplace_back(), graph.list_shapes(alternative));
    // They are all kept: a step stands for some bytes.
    constexpr std::uint64_t kStepsPerShape = 8;
    RETURN_IF_ERROR(
        graph.count_steps(alternative.front().schema, kStepsPerShape * shapes.back().size()));
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      if (i == k) continue;
      ASSIGN_OR_RETURN(const bool excluded, exclusion.check(shapes[i], shapes[k], kMemberDepthMax));
      if (!excluded) return std::optional(OverlappingPair{std::min(i, k), std::max(i, k)});
    }
  }
  return std::optional<OverlappingPair>();
}

}  // namespace pagoda::structured
