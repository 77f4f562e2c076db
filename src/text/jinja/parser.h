// Parses tokens into a template. Nesting is bounded, so that neither parsing nor rendering can run
// out of stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/lexer.h"
#include "text/jinja/syntax.h"

namespace pagoda::text::jinja {

inline constexpr std::uint32_t kNestingMax = 200;           // nested blocks or brackets
inline constexpr std::uint32_t kExpressionHeightMax = 400;  // "a + b + c" is three high

// The token stream, with the operations that both halves of the parser need.
class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& peek(std::size_t ahead = 0) const;
  Token take();
  bool is_operator(std::string_view text) const;
  bool is_name(std::string_view text) const;
  bool skip_operator(std::string_view text);
  bool skip_name(std::string_view text);
  void expect_operator(std::string_view text);
  std::string expect_name();
  void expect(TokenKind kind, std::string_view what);
  [[noreturn]] void fail_here(std::string_view expected) const;

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

// Counts nesting while it lives.
class Nesting {
 public:
  Nesting(std::uint32_t& depth, SourcePosition place);
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  std::uint32_t& depth_;
};

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  // Parses a tuple where there are commas. Without `conditional`, "if" ends the expression, because
  // it belongs to a for.
  ExpressionPointer parse_tuple(bool conditional = true);
  ExpressionPointer parse_expression() { return parse_condition(); }
  // Parses names, and attributes where `attributes`, separated by commas.
  ExpressionPointer parse_target(bool attributes);
  // Parses the filters after "filter" or "set x |"; their innermost subject is null.
  ExpressionPointer parse_filters();

 private:
  ExpressionPointer parse_condition();
  ExpressionPointer parse_or();
  ExpressionPointer parse_and();
  ExpressionPointer parse_not();
  ExpressionPointer parse_compare();
  ExpressionPointer parse_sum();
  ExpressionPointer parse_concatenation();
  ExpressionPointer parse_product();
  ExpressionPointer parse_power();
  ExpressionPointer parse_unary(bool with_filters);
  ExpressionPointer parse_primary();
  ExpressionPointer parse_name();
  ExpressionPointer parse_number();
  ExpressionPointer parse_string();
  ExpressionPointer parse_list();
  ExpressionPointer parse_dict();
  ExpressionPointer parse_postfix(ExpressionPointer object);
  ExpressionPointer parse_subscript(ExpressionPointer object);
  ExpressionPointer parse_call(ExpressionPointer callee);
  ExpressionPointer parse_filter_chain(ExpressionPointer subject);
  ExpressionPointer parse_filter(ExpressionPointer subject);
  ExpressionPointer parse_test(ExpressionPointer subject);
  std::vector<Argument> parse_arguments();

  TokenStream& tokens_;
  std::uint32_t depth_ = 0;
};

// Throws Fault.
Block parse_template(std::string_view source);

}  // namespace pagoda::text::jinja
