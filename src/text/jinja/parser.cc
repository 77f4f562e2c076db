#include "text/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pagoda::text::jinja {

const Token& TokenStream::peek(std::size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

Token TokenStream::take() {
  Token token = peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool TokenStream::is_operator(std::string_view text) const {
  return peek().kind == TokenKind::kOperator && peek().text == text;
}

bool TokenStream::is_name(std::string_view text) const {
  return peek().kind == TokenKind::kName && peek().text == text;
}

bool TokenStream::skip_operator(std::string_view text) {
  if (!is_operator(text)) return false;
  ++at_;
  return true;
}

bool TokenStream::skip_name(std::string_view text) {
  if (!is_name(text)) return false;
  ++at_;
  return true;
}

void TokenStream::expect_operator(std::string_view text) {
  if (!skip_operator(text)) fail_here(fmt::format("'{}'", text));
}

std::string TokenStream::expect_name() {
  if (peek().kind != TokenKind::kName) fail_here("a name");
  return take().text;
}

void TokenStream::expect(TokenKind kind, std::string_view what) {
  if (peek().kind != kind) fail_here(what);
  take();
}

void TokenStream::fail_here(std::string_view expected) const {
  fail(fmt::format("expected {}, found {}", expected, describe(peek())), peek().place);
}

Nesting::Nesting(std::uint32_t& depth, SourcePosition place) : depth_(depth) {
  if (depth >= kNestingMax) fail_limit(fmt::format("nested deeper than {}", kNestingMax), place);
  ++depth;
}

namespace {

class TemplateParser {
 public:
  explicit TemplateParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Block parse() {
    Block block = parse_block({});
    if (tokens_.peek().kind != TokenKind::kEnd) tokens_.fail_here("the end of the template");
    return block;
  }

 private:
  using Names = std::initializer_list<std::string_view>;

  // Parses up to the tag that begins with one of `ends`, whose name is left to be read, or to the
  // end of the template when there are none.
  Block parse_block(Names ends) {
    const Nesting nesting(depth_, tokens_.peek().place);
    Block block;
    while (tokens_.peek().kind != TokenKind::kEnd) {
      const SourcePosition place = tokens_.peek().place;
      if (tokens_.peek().kind == TokenKind::kData) {
        block.push_back(statement(StatementKind::kText, place));
        block.back().text = tokens_.take().text;
      } else if (tokens_.peek().kind == TokenKind::kPrintBegin) {
        tokens_.take();
        block.push_back(statement(StatementKind::kPrint, place));
        block.back().value = expressions_.parse_tuple();
        tokens_.expect(TokenKind::kPrintEnd, "'}}'");
      } else {
        tokens_.take();
        if (std::any_of(ends.begin(), ends.end(),
                        [&](std::string_view end) { return tokens_.is_name(end); })) {
          return block;
        }
        block.push_back(parse_statement(place));
      }
    }
    if (ends.size() > 0) tokens_.fail_here(fmt::format("'{}'", *(ends.end() - 1)));
    return block;
  }

  static Statement statement(StatementKind kind, SourcePosition place) {
    Statement made;
    made.kind = kind;
    made.place = place;
    return made;
  }

  Statement parse_statement(SourcePosition place) {
    if (tokens_.peek().kind != TokenKind::kName) tokens_.fail_here("the name of a statement");
    const Token name = tokens_.take();
    if (name.text == "if") return parse_if(place);
    if (name.text == "for") return parse_for(place);
    if (name.text == "set") return parse_set(place);
    if (name.text == "macro") return parse_macro(place);
    if (name.text == "filter") return parse_filter(place);
    if (name.text == "generation") return parse_generation(place);
    if (name.text == "break" || name.text == "continue") {
      if (loops_ == 0) fail(fmt::format("'{}' outside a loop", name.text), name.place);
      end_tag();
      return statement(name.text == "break" ? StatementKind::kBreak : StatementKind::kContinue,
                       place);
    }
    fail(fmt::format("unknown statement '{}'", name.text), name.place);
  }

  void end_tag() { tokens_.expect(TokenKind::kBlockEnd, "'%}'"); }

  Block parse_body(std::string_view end) {
    end_tag();
    Block body = parse_block({end});
    tokens_.take();
    end_tag();
    return body;
  }

  Statement parse_if(SourcePosition place) {
    Statement made = statement(StatementKind::kIf, place);
    bool more = true;
    while (more) {
      Branch branch;
      branch.condition = expressions_.parse_tuple();
      end_tag();
      branch.body = parse_block({"elif", "else", "endif"});
      made.branches.push_back(std::move(branch));
      more = tokens_.skip_name("elif");
    }
    if (tokens_.skip_name("else")) {
      made.branches.push_back({nullptr, parse_body("endif")});
    } else {
      tokens_.take();
      end_tag();
    }
    return made;
  }

  Statement parse_for(SourcePosition place) {
    Statement made = statement(StatementKind::kFor, place);
    made.target = expressions_.parse_target(false);
    if (!tokens_.skip_name("in")) tokens_.fail_here("'in'");
    made.value = expressions_.parse_tuple(false);
    if (tokens_.skip_name("if")) made.condition = expressions_.parse_expression();
    if (tokens_.is_name("recursive")) {
      fail("recursive loops are not supported", tokens_.peek().place);
    }
    end_tag();
    ++loops_;
    made.body = parse_block({"else", "endfor"});
    --loops_;
    if (tokens_.skip_name("else")) {
      made.otherwise = parse_body("endfor");
    } else {
      tokens_.take();
      end_tag();
    }
    return made;
  }

  Statement parse_set(SourcePosition place) {
    Statement made = statement(StatementKind::kSet, place);
    made.target = expressions_.parse_target(true);
    if (tokens_.skip_operator("=")) {
      made.value = expressions_.parse_tuple();
      end_tag();
      return made;
    }
    made.kind = StatementKind::kSetBlock;
    if (tokens_.skip_operator("|")) made.value = expressions_.parse_filters();
    made.body = parse_body("endset");
    return made;
  }

  Statement parse_macro(SourcePosition place) {
    Statement made = statement(StatementKind::kMacro, place);
    made.text = tokens_.expect_name();
    tokens_.expect_operator("(");
    while (!tokens_.is_operator(")")) {
      if (!made.parameters.empty()) tokens_.expect_operator(",");
      if (tokens_.is_operator(")")) break;
      Argument parameter;
      parameter.name = tokens_.expect_name();
      if (tokens_.skip_operator("=")) parameter.value = expressions_.parse_expression();
      made.parameters.push_back(std::move(parameter));
    }
    tokens_.expect_operator(")");
    // `break` inside a macro does not end a loop around the macro.
    const std::uint32_t loops = std::exchange(loops_, 0);
    made.body = parse_body("endmacro");
    loops_ = loops;
    return made;
  }

  Statement parse_filter(SourcePosition place) {
    Statement made = statement(StatementKind::kFilter, place);
    made.value = expressions_.parse_filters();
    made.body = parse_body("endfilter");
    return made;
  }

  Statement parse_generation(SourcePosition place) {
    Statement made = statement(StatementKind::kScope, place);
    made.body = parse_body("endgeneration");
    return made;
  }

  TokenStream tokens_;
  ExpressionParser expressions_{tokens_};
  std::uint32_t depth_ = 0;
  std::uint32_t loops_ = 0;
};

}  // namespace

Block parse_template(std::string_view source) { return TemplateParser(tokenise(source)).parse(); }

}  // namespace pagoda::text::jinja
