#include "structured/schema_exclusion.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace pagoda::structured {
namespace {

constexpr int kMemberDepthMax = 3;

class Exclusion {
 public:
  explicit Exclusion(SchemaGraph& graph) : graph_(graph) {}

  // Every alternative of one must exclude every alternative of the other.
  Result<bool> check(const Conjunction& written, const Conjunction& other, int depth) {
    if (written.empty() || other.empty()) return false;
    std::vector<SchemaShape> written_shapes;
    std::vector<SchemaShape> other_shapes;
    RETURN_IF_ERROR(list_shapes(written, written_shapes));
    RETURN_IF_ERROR(list_shapes(other, other_shapes));
    for (const SchemaShape& a : written_shapes) {
      for (const SchemaShape& b : other_shapes) {
        RETURN_IF_ERROR(graph_.count_step(a.path));
        ASSIGN_OR_RETURN(const bool excluded, check_shapes(a, b, depth));
        if (!excluded) return false;
      }
    }
    return true;
  }

 private:
  Status list_shapes(const Conjunction& root, std::vector<SchemaShape>& shapes) {
    std::vector<Conjunction> open = {root};
    while (!open.empty()) {
      const Conjunction next = std::move(open.back());
      open.pop_back();
      ASSIGN_OR_RETURN(SchemaGraph::Expanded expanded, graph_.expand(next));
      if (!expanded.choice) {
        shapes.push_back(std::move(expanded.shape));
        continue;
      }
      for (std::size_t i = 0; i < expanded.choice->branches->size(); ++i) {
        open.push_back(graph_.decide(next, *expanded.choice, i));
      }
    }
    return ok_status();
  }

  static bool values_differ(const SchemaShape& a, const SchemaShape& b) {
    if (!a.values || !b.values) return false;
    std::set<std::string> texts;
    for (const SchemaJson* value : *a.values) {
      // 1 and 1.0 are one value.
      if (value->is_number_float()) return false;
      texts.insert(value->dump());
    }
    return std::none_of(b.values->begin(), b.values->end(), [&](const SchemaJson* value) {
      return value->is_number_float() || texts.contains(value->dump());
    });
  }

  static std::uint8_t types_of(const SchemaShape& shape) {
    if (!shape.values) return shape.types;
    std::uint8_t types = 0;
    for (const SchemaJson* value : *shape.values) types |= type_of_value(*value);
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

  static bool names(const SchemaShape& shape, const std::string& name) {
    return std::find(shape.names.begin(), shape.names.end(), name) != shape.names.end();
  }

  Result<bool> objects_differ(const SchemaShape& written, const SchemaShape& other, int depth) {
    for (const std::string& name : other.required) {
      RETURN_IF_ERROR(graph_.count_step(written.path));
      if (!written.is_open() && !names(written, name)) return true;
    }
    if (depth == 0) return false;
    for (const std::string& name : written.required) {
      RETURN_IF_ERROR(graph_.count_step(written.path));
      ASSIGN_OR_RETURN(const Conjunction mine, graph_.member(written, name));
      ASSIGN_OR_RETURN(const Conjunction theirs, graph_.member(other, name));
      ASSIGN_OR_RETURN(const bool differs, check(mine, theirs, depth - 1));
      if (differs) return true;
    }
    return false;
  }

  SchemaGraph& graph_;
};

}  // namespace

Result<bool> excludes(SchemaGraph& graph, const Conjunction& written, const Conjunction& other) {
  return Exclusion(graph).check(written, other, kMemberDepthMax);
}

}  // namespace pagoda::structured
