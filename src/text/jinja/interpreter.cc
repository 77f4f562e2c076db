#include "text/jinja/interpreter.h"

#include <fmt/format.h>

#include <utility>

#include "text/jinja/filters.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/show.h"

namespace pagoda::text::jinja {

OriginText Interpreter::run(const Block& block, Scope& scope) {
  TextBuilder out(heap_);
  run_block(block, scope, out);
  return std::move(out).take();
}

void Interpreter::check_output(const TextBuilder& out) const {
  if (out.size() > heap_.limits().output_bytes) {
    fail_limit(fmt::format("the output has more than {} bytes", heap_.limits().output_bytes));
  }
}

void Interpreter::bind(std::string_view name, const Value& value, Scope& scope) {
  if (scope.set(name, value)) heap_.reserve(Scope::kNameBytes);
}

Interpreter::Flow Interpreter::run_block(const Block& block, Scope& scope, TextBuilder& out) {
  for (const Statement& statement : block) {
    try {
      heap_.step();
      const Flow flow = run_statement(statement, scope, out);
      check_output(out);
      if (flow != Flow::kNext) return flow;
    } catch (Fault& fault) {
      if (!fault.place) fault.place = statement.place;
      throw;
    }
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_statement(const Statement& statement, Scope& scope,
                                             TextBuilder& out) {
  switch (statement.kind) {
    case StatementKind::kText:
      out.append(statement.text, Origin{});
      return Flow::kNext;
    case StatementKind::kPrint:
      append_shown(evaluate(*statement.value, scope), out);
      return Flow::kNext;
    case StatementKind::kIf:
      return run_if(statement, scope, out);
    case StatementKind::kFor:
      return run_for(statement, scope, out);
    case StatementKind::kSet:
      assign(*statement.target, evaluate(*statement.value, scope), scope);
      return Flow::kNext;
    case StatementKind::kSetBlock:
    case StatementKind::kFilter:
    case StatementKind::kScope:
      return run_captured(statement, scope, out);
    case StatementKind::kMacro:
      bind(statement.text, heap_.macro({&statement, &scope}), scope);
      return Flow::kNext;
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_if(const Statement& statement, Scope& scope, TextBuilder& out) {
  const Heap::Level level(heap_);
  for (const Branch& branch : statement.branches) {
    if (branch.condition == nullptr || evaluate(*branch.condition, scope).truthy()) {
      return run_block(branch.body, scope, out);
    }
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_for(const Statement& statement, Scope& scope, TextBuilder& out) {
  const Heap::Level level(heap_);
  std::vector<Value> items = items_of(evaluate(*statement.value, scope), heap_);
  Scope& inner = heap_.scope(&scope);
  if (statement.condition != nullptr) {
    std::vector<Value> wanted;
    for (const Value& item : items) {
      assign(*statement.target, item, inner);
      if (evaluate(*statement.condition, inner).truthy()) wanted.push_back(item);
    }
    items = std::move(wanted);
  }
  if (items.empty()) return run_block(statement.otherwise, scope, out);
  Loop& loop = heap_.loop(std::move(items), ++loop_depth_);
  for (; loop.index < loop.items->size(); ++loop.index) {
    inner.clear();
    bind("loop", Value(&loop), inner);
    assign(*statement.target, (*loop.items)[loop.index], inner);
    heap_.step();
    if (run_block(statement.body, inner, out) == Flow::kBreak) break;
  }
  --loop_depth_;
  return Flow::kNext;
}

// Runs a body with its own scope, whose text goes to a variable, through filters, or to the output.
Interpreter::Flow Interpreter::run_captured(const Statement& statement, Scope& scope,
                                            TextBuilder& out) {
  const Heap::Level level(heap_);
  Scope& inner = heap_.scope(&scope);
  if (statement.kind == StatementKind::kScope) return run_block(statement.body, inner, out);
  TextBuilder body(heap_);
  const Flow flow = run_block(statement.body, inner, body);
  Value text = std::move(body).value();
  if (statement.value != nullptr) text = evaluate_filters(*statement.value, text, scope);
  if (statement.kind == StatementKind::kSetBlock) {
    assign(*statement.target, text, scope);
  } else {
    append_shown(text, out);
  }
  return flow;
}

void Interpreter::assign(const Expression& target, const Value& value, Scope& scope) {
  if (target.operation == Operation::kName) {
    bind(target.name, value, scope);
    return;
  }
  if (target.operation == Operation::kAttribute) {
    const std::string& name = target.operands[0]->name;
    const Value* const space = scope.find(name);
    if (space == nullptr || !space->is(Kind::kNamespace)) {
      fail(fmt::format("'{}' is not a namespace: its attributes cannot be set", name));
    }
    space->as_dict().set(heap_.text(target.name), value, heap_);
    return;
  }
  const std::vector<Value> items = items_of(value, heap_);
  if (items.size() != target.operands.size()) {
    fail(fmt::format("{} values for {} names", items.size(), target.operands.size()));
  }
  for (std::size_t i = 0; i < items.size(); ++i) assign(*target.operands[i], items[i], scope);
}

Value Interpreter::call(const Expression& expression, Scope& scope) {
  const Value callee = evaluate(*expression.operands[0], scope);
  const Arguments arguments = evaluate_arguments(expression, scope);
  switch (callee.kind()) {
    case Kind::kMacro:
      return call_macro(callee.as_macro(), arguments);
    case Kind::kMethod:
      return call_method(callee.as_method(), arguments, heap_);
    case Kind::kFunction:
      return call_function(callee.as_function(), arguments);
    case Kind::kUndefined:
      fail_undefined(callee);
    default:
      fail(fmt::format("a {} cannot be called", callee.type_name()));
  }
}

Value Interpreter::call_macro(const Macro& macro, const Arguments& arguments) {
  const Heap::Level level(heap_);
  const Statement& statement = *macro.statement;
  const std::vector<Argument>& parameters = statement.parameters;
  Scope& scope = heap_.scope(macro.scope);
  heap_.step(parameters.size());
  std::vector<bool> given(parameters.size(), false);
  if (arguments.positional.size() > parameters.size()) {
    fail(fmt::format("macro '{}' takes at most {} arguments, was given {}", statement.text,
                     parameters.size(), arguments.positional.size()));
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    bind(parameters[i].name, arguments.positional[i], scope);
    given[i] = true;
  }
  for (const auto& [name, value] : arguments.named) {
    std::size_t i = 0;
    while (i < parameters.size() && parameters[i].name != name) ++i;
    heap_.step(i);
    if (i == parameters.size() || given[i]) {
      fail(fmt::format("macro '{}' takes no argument '{}'{}", statement.text, name,
                       i < parameters.size() ? " twice" : ""));
    }
    bind(name, value, scope);
    given[i] = true;
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (given[i]) continue;
    const Argument& parameter = parameters[i];
    bind(parameter.name,
         parameter.value == nullptr ? Value::undefined(&parameter.name)
                                    : evaluate(*parameter.value, scope),
         scope);
  }
  TextBuilder out(heap_);
  const std::size_t loops = std::exchange(loop_depth_, 0);
  run_block(statement.body, scope, out);
  loop_depth_ = loops;
  return std::move(out).value();
}

}  // namespace pagoda::text::jinja
