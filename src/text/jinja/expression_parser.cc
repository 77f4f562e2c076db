#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "text/jinja/parser.h"

namespace pagoda::text::jinja {
namespace {

ExpressionPointer make(Operation operation, SourcePosition place) {
  auto node = std::make_unique<Expression>();
  node->operation = operation;
  node->place = place;
  return node;
}

void grow(Expression& node, const Expression* child) {
  if (child == nullptr) return;
  node.height = std::max(node.height, child->height + 1);
  if (node.height > kExpressionHeightMax) {
    fail_limit(fmt::format("an expression of more than {} steps", kExpressionHeightMax),
               node.place);
  }
}

void add_operand(Expression& node, ExpressionPointer child) {
  node.operands.push_back(std::move(child));
  grow(node, node.operands.back().get());
}

template <class... Operands>
ExpressionPointer make(Operation operation, SourcePosition place, Operands... operands) {
  ExpressionPointer node = make(operation, place);
  (add_operand(*node, std::move(operands)), ...);
  return node;
}

void add_arguments(Expression& node, std::vector<Argument> arguments) {
  node.arguments = std::move(arguments);
  for (const Argument& argument : node.arguments) grow(node, argument.value.get());
}

struct BinaryOperator {
  std::string_view text;
  Operation operation;
};

std::optional<Operation> find_operator(const TokenStream& tokens,
                                       std::initializer_list<BinaryOperator> table) {
  for (const BinaryOperator& row : table) {
    if (tokens.is_operator(row.text)) return row.operation;
  }
  return std::nullopt;
}

std::optional<Comparison> take_comparison(TokenStream& tokens) {
  constexpr std::array<std::pair<std::string_view, Comparison>, 6> kTable = {
      {{"==", Comparison::kEqual},
       {"!=", Comparison::kNotEqual},
       {"<=", Comparison::kLessEqual},
       {"<", Comparison::kLess},
       {">=", Comparison::kGreaterEqual},
       {">", Comparison::kGreater}}};
  for (const auto& [text, comparison] : kTable) {
    if (tokens.skip_operator(text)) return comparison;
  }
  if (tokens.skip_name("in")) return Comparison::kIn;
  const Token& next = tokens.peek(1);
  if (tokens.is_name("not") && next.kind == TokenKind::kName && next.text == "in") {
    tokens.take();
    tokens.take();
    return Comparison::kNotIn;
  }
  return std::nullopt;
}

bool ends_tuple(const TokenStream& tokens) {
  const TokenKind kind = tokens.peek().kind;
  return kind == TokenKind::kPrintEnd || kind == TokenKind::kBlockEnd || tokens.is_operator(")");
}

}  // namespace

ExpressionPointer ExpressionParser::parse_tuple(bool conditional) {
  const SourcePosition place = tokens_.peek().place;
  const auto item = [&] { return conditional ? parse_condition() : parse_or(); };
  ExpressionPointer first = item();
  if (!tokens_.is_operator(",")) return first;
  ExpressionPointer tuple = make(Operation::kTuple, place, std::move(first));
  while (tokens_.skip_operator(",") && !ends_tuple(tokens_)) add_operand(*tuple, item());
  return tuple;
}

ExpressionPointer ExpressionParser::parse_target(bool attributes) {
  const auto item = [&] {
    const SourcePosition place = tokens_.peek().place;
    ExpressionPointer name = make(Operation::kName, place);
    name->name = tokens_.expect_name();
    if (!attributes || !tokens_.skip_operator(".")) return name;
    ExpressionPointer attribute = make(Operation::kAttribute, place, std::move(name));
    attribute->name = tokens_.expect_name();
    return attribute;
  };
  const SourcePosition place = tokens_.peek().place;
  const bool brackets = tokens_.skip_operator("(");
  ExpressionPointer target = item();
  if (tokens_.is_operator(",")) {
    target = make(Operation::kTuple, place, std::move(target));
    while (tokens_.skip_operator(",") && tokens_.peek().kind == TokenKind::kName &&
           !tokens_.is_name("in")) {
      add_operand(*target, item());
    }
  }
  if (brackets) tokens_.expect_operator(")");
  return target;
}

ExpressionPointer ExpressionParser::parse_condition() {
  const Nesting nesting(depth_, tokens_.peek().place);
  ExpressionPointer value = parse_or();
  while (tokens_.is_name("if")) {
    const SourcePosition place = tokens_.take().place;
    ExpressionPointer condition = parse_or();
    ExpressionPointer other;
    if (tokens_.skip_name("else")) other = parse_condition();
    value = make(Operation::kCondition, place, std::move(value), std::move(condition),
                 std::move(other));
  }
  return value;
}

ExpressionPointer ExpressionParser::parse_or() {
  ExpressionPointer left = parse_and();
  while (tokens_.is_name("or")) {
    const SourcePosition place = tokens_.take().place;
    left = make(Operation::kOr, place, std::move(left), parse_and());
  }
  return left;
}

ExpressionPointer ExpressionParser::parse_and() {
  ExpressionPointer left = parse_not();
  while (tokens_.is_name("and")) {
    const SourcePosition place = tokens_.take().place;
    left = make(Operation::kAnd, place, std::move(left), parse_not());
  }
  return left;
}

ExpressionPointer ExpressionParser::parse_not() {
  if (!tokens_.is_name("not")) return parse_compare();
  const SourcePosition place = tokens_.take().place;
  const Nesting nesting(depth_, place);
  return make(Operation::kNot, place, parse_not());
}

ExpressionPointer ExpressionParser::parse_compare() {
  const SourcePosition place = tokens_.peek().place;
  ExpressionPointer first = parse_sum();
  std::optional<Comparison> comparison = take_comparison(tokens_);
  if (!comparison) return first;
  ExpressionPointer chain = make(Operation::kCompare, place, std::move(first));
  for (; comparison; comparison = take_comparison(tokens_)) {
    chain->comparisons.push_back(*comparison);
    add_operand(*chain, parse_sum());
  }
  return chain;
}

ExpressionPointer ExpressionParser::parse_sum() {
  ExpressionPointer left = parse_concatenation();
  while (const auto operation =
             find_operator(tokens_, {{"+", Operation::kAdd}, {"-", Operation::kSubtract}})) {
    const SourcePosition place = tokens_.take().place;
    left = make(*operation, place, std::move(left), parse_concatenation());
  }
  return left;
}

ExpressionPointer ExpressionParser::parse_concatenation() {
  ExpressionPointer left = parse_product();
  while (tokens_.is_operator("~")) {
    const SourcePosition place = tokens_.take().place;
    left = make(Operation::kConcatenate, place, std::move(left), parse_product());
  }
  return left;
}

ExpressionPointer ExpressionParser::parse_product() {
  ExpressionPointer left = parse_power();
  while (const auto operation = find_operator(tokens_, {{"*", Operation::kMultiply},
                                                        {"/", Operation::kDivide},
                                                        {"//", Operation::kFloorDivide},
                                                        {"%", Operation::kRemainder}})) {
    const SourcePosition place = tokens_.take().place;
    left = make(*operation, place, std::move(left), parse_power());
  }
  return left;
}

ExpressionPointer ExpressionParser::parse_power() {
  ExpressionPointer left = parse_unary(true);
  while (tokens_.is_operator("**")) {
    const SourcePosition place = tokens_.take().place;
    left = make(Operation::kPower, place, std::move(left), parse_unary(true));
  }
  return left;
}

ExpressionPointer ExpressionParser::parse_unary(bool with_filters) {
  const SourcePosition place = tokens_.peek().place;
  const Nesting nesting(depth_, place);
  ExpressionPointer node;
  if (tokens_.skip_operator("-")) {
    node = make(Operation::kNegate, place, parse_unary(false));
  } else if (tokens_.skip_operator("+")) {
    node = make(Operation::kPlus, place, parse_unary(false));
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return with_filters ? parse_filter_chain(std::move(node)) : std::move(node);
}

ExpressionPointer ExpressionParser::parse_primary() {
  const Token& token = tokens_.peek();
  switch (token.kind) {
    case TokenKind::kName:
      return parse_name();
    case TokenKind::kString:
      return parse_string();
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return parse_number();
    default:
      break;
  }
  if (tokens_.is_operator("[")) return parse_list();
  if (tokens_.is_operator("{")) return parse_dict();
  const SourcePosition place = token.place;
  if (!tokens_.skip_operator("(")) tokens_.fail_here("an expression");
  if (tokens_.skip_operator(")")) return make(Operation::kTuple, place);
  ExpressionPointer inner = parse_tuple();
  tokens_.expect_operator(")");
  return inner;
}

ExpressionPointer ExpressionParser::parse_name() {
  Token token = tokens_.take();
  ExpressionPointer node = make(Operation::kLiteral, token.place);
  if (token.text == "true" || token.text == "True") {
    node->literal = true;
  } else if (token.text == "false" || token.text == "False") {
    node->literal = false;
  } else if (token.text != "none" && token.text != "None") {
    node->operation = Operation::kName;
    node->name = std::move(token.text);
  }
  return node;
}

ExpressionPointer ExpressionParser::parse_number() {
  const Token token = tokens_.take();
  ExpressionPointer node = make(Operation::kLiteral, token.place);
  const char* const begin = token.text.data();
  const char* const end = begin + token.text.size();
  std::int64_t integer = 0;
  double real = 0;
  const bool is_integer = token.kind == TokenKind::kInteger;
  const auto parsed =
      is_integer ? std::from_chars(begin, end, integer) : std::from_chars(begin, end, real);
  if (parsed.ec != std::errc{} || parsed.ptr != end) {
    fail(fmt::format("the number {} is out of range", token.text), token.place);
  }
  if (is_integer) {
    node->literal = integer;
  } else {
    node->literal = real;
  }
  return node;
}

// Adjacent string literals are concatenated.
ExpressionPointer ExpressionParser::parse_string() {
  Token token = tokens_.take();
  ExpressionPointer node = make(Operation::kLiteral, token.place);
  while (tokens_.peek().kind == TokenKind::kString) token.text += tokens_.take().text;
  node->literal = std::move(token.text);
  return node;
}

ExpressionPointer ExpressionParser::parse_list() {
  ExpressionPointer list = make(Operation::kList, tokens_.take().place);
  while (!tokens_.is_operator("]")) {
    if (!list->operands.empty()) tokens_.expect_operator(",");
    if (tokens_.is_operator("]")) break;
    add_operand(*list, parse_expression());
  }
  tokens_.expect_operator("]");
  return list;
}

ExpressionPointer ExpressionParser::parse_dict() {
  ExpressionPointer dict = make(Operation::kDict, tokens_.take().place);
  while (!tokens_.is_operator("}")) {
    if (!dict->operands.empty()) tokens_.expect_operator(",");
    if (tokens_.is_operator("}")) break;
    add_operand(*dict, parse_expression());
    tokens_.expect_operator(":");
    add_operand(*dict, parse_expression());
  }
  tokens_.expect_operator("}");
  return dict;
}

ExpressionPointer ExpressionParser::parse_postfix(ExpressionPointer object) {
  while (true) {
    const SourcePosition place = tokens_.peek().place;
    if (tokens_.skip_operator(".")) {
      if (tokens_.peek().kind == TokenKind::kInteger) {
        object = make(Operation::kSubscript, place, std::move(object), parse_number());
      } else {
        object = make(Operation::kAttribute, place, std::move(object));
        object->name = tokens_.expect_name();
      }
    } else if (tokens_.is_operator("[")) {
      object = parse_subscript(std::move(object));
    } else if (tokens_.is_operator("(")) {
      object = parse_call(std::move(object));
    } else {
      return object;
    }
  }
}

ExpressionPointer ExpressionParser::parse_subscript(ExpressionPointer object) {
  const SourcePosition place = tokens_.take().place;
  std::array<ExpressionPointer, 3> parts;
  std::size_t part = 0;
  bool slice = false;
  while (!tokens_.is_operator("]")) {
    if (tokens_.skip_operator(":")) {
      slice = true;
      if (++part == parts.size()) tokens_.fail_here("']'");
    } else if (parts[part] == nullptr) {
      parts[part] = parse_expression();
    } else {
      tokens_.fail_here("']'");
    }
  }
  if (!slice && parts[0] == nullptr) tokens_.fail_here("an expression");
  tokens_.expect_operator("]");
  if (!slice) return make(Operation::kSubscript, place, std::move(object), std::move(parts[0]));
  return make(Operation::kSlice, place, std::move(object), std::move(parts[0]), std::move(parts[1]),
              std::move(parts[2]));
}

ExpressionPointer ExpressionParser::parse_call(ExpressionPointer callee) {
  ExpressionPointer call = make(Operation::kCall, tokens_.peek().place, std::move(callee));
  add_arguments(*call, parse_arguments());
  return call;
}

std::vector<Argument> ExpressionParser::parse_arguments() {
  tokens_.expect_operator("(");
  std::vector<Argument> arguments;
  while (!tokens_.is_operator(")")) {
    if (!arguments.empty()) tokens_.expect_operator(",");
    if (tokens_.is_operator(")")) break;
    if (tokens_.is_operator("*") || tokens_.is_operator("**")) {
      fail("'*' and '**' in calls are not supported", tokens_.peek().place);
    }
    const Token& next = tokens_.peek(1);
    Argument argument;
    if (tokens_.peek().kind == TokenKind::kName && next.kind == TokenKind::kOperator &&
        next.text == "=") {
      argument.name = tokens_.expect_name();
      tokens_.take();
    } else if (!arguments.empty() && !arguments.back().name.empty()) {
      tokens_.fail_here("an argument with a name");
    }
    argument.value = parse_expression();
    arguments.push_back(std::move(argument));
  }
  tokens_.expect_operator(")");
  return arguments;
}

ExpressionPointer ExpressionParser::parse_filter_chain(ExpressionPointer subject) {
  while (true) {
    if (tokens_.skip_operator("|")) {
      subject = parse_filter(std::move(subject));
    } else if (tokens_.is_name("is")) {
      subject = parse_test(std::move(subject));
    } else if (tokens_.is_operator("(")) {
      subject = parse_call(std::move(subject));
    } else {
      return subject;
    }
  }
}

ExpressionPointer ExpressionParser::parse_filter(ExpressionPointer subject) {
  ExpressionPointer filter = make(Operation::kFilter, tokens_.peek().place, std::move(subject));
  filter->name = tokens_.expect_name();
  if (tokens_.is_operator("(")) add_arguments(*filter, parse_arguments());
  return filter;
}

ExpressionPointer ExpressionParser::parse_filters() {
  ExpressionPointer filters = parse_filter(nullptr);
  while (tokens_.skip_operator("|")) filters = parse_filter(std::move(filters));
  return filters;
}

ExpressionPointer ExpressionParser::parse_test(ExpressionPointer subject) {
  const SourcePosition place = tokens_.take().place;
  const bool negated = tokens_.skip_name("not");
  ExpressionPointer test = make(Operation::kTest, place, std::move(subject));
  test->name = tokens_.expect_name();
  const Token& next = tokens_.peek();
  const bool keyword = tokens_.is_name("else") || tokens_.is_name("or") || tokens_.is_name("and") ||
                       tokens_.is_name("if") || tokens_.is_name("is") || tokens_.is_name("in") ||
                       tokens_.is_name("not");
  const bool value = next.kind == TokenKind::kName || next.kind == TokenKind::kString ||
                     next.kind == TokenKind::kInteger || next.kind == TokenKind::kFloat ||
                     tokens_.is_operator("[") || tokens_.is_operator("{");
  if (tokens_.is_operator("(")) {
    add_arguments(*test, parse_arguments());
  } else if (value && !keyword) {
    std::vector<Argument> arguments(1);
    arguments[0].value = parse_postfix(parse_primary());
    add_arguments(*test, std::move(arguments));
  }
  return negated ? make(Operation::kNot, place, std::move(test)) : std::move(test);
}

}  // namespace pagoda::text::jinja
