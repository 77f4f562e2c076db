// Runs a parsed template. One object serves one rendering on one thread.
#pragma once

#include <cstdint>
#include <ctime>
#include <string_view>

#include "text/jinja/arguments.h"
#include "text/jinja/heap.h"
#include "text/jinja/scope.h"
#include "text/jinja/syntax.h"
#include "text/jinja/text_builder.h"

namespace pagoda::text::jinja {

class Interpreter {
 public:
  // `now` is the time for strftime_now.
  Interpreter(Heap& heap, std::time_t now) : heap_(heap), now_(now) {}

  // Throws Fault.
  OriginText run(const Block& block, Scope& scope);

 private:
  // A statement is followed by the next one, the end of the loop, or its next iteration.
  enum class Flow : std::uint8_t { kNext, kBreak, kContinue };

  Flow run_block(const Block& block, Scope& scope, TextBuilder& out);
  Flow run_statement(const Statement& statement, Scope& scope, TextBuilder& out);
  Flow run_if(const Statement& statement, Scope& scope, TextBuilder& out);
  Flow run_for(const Statement& statement, Scope& scope, TextBuilder& out);
  Flow run_captured(const Statement& statement, Scope& scope, TextBuilder& out);
  void assign(const Expression& target, const Value& value, Scope& scope);
  void bind(std::string_view name, const Value& value, Scope& scope);
  void check_output(const TextBuilder& out) const;

  Value evaluate(const Expression& expression, Scope& scope);
  Value evaluate_unplaced(const Expression& expression, Scope& scope);
  Value evaluate_literal(const Literal& literal);
  Value evaluate_name(const Expression& expression, Scope& scope);
  Value evaluate_collection(const Expression& expression, Scope& scope);
  Value evaluate_slice(const Expression& expression, Scope& scope);
  Value evaluate_condition(const Expression& expression, Scope& scope);
  bool evaluate_comparison(const Expression& expression, Scope& scope);
  // Applies filters to `subject`, which takes the innermost filter's empty operand.
  Value evaluate_filters(const Expression& filter, const Value& subject, Scope& scope);
  Arguments evaluate_arguments(const Expression& expression, Scope& scope);

  Value call(const Expression& expression, Scope& scope);
  Value call_macro(const Macro& macro, const Arguments& arguments);
  Value call_function(Function function, const Arguments& arguments);

  Heap& heap_;
  std::time_t now_;
  std::size_t loop_depth_ = 0;
};

// Binds the functions that templates may call by name in `scope`.
void bind_functions(Scope& scope);

}  // namespace pagoda::text::jinja
