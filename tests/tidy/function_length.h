// Functions of at most 70 lines, from the first word of the signature to the closing brace.
//
// How a function is recognised, without parsing C++: preprocessor lines, comments and literals are
// blank. At namespace or class level an opening brace is looked at with the words before it, back
// to the last ';', '{' or '}' (or ':' of an access specifier):
//   - after namespace, class, struct, union, enum or extern "C" it opens a level of that kind;
//   - else, after a closed '(…)', it opens a function, unless a '=' outside parentheses makes it an
//     initialiser; `operator=` and a lambda after '=' are functions again;
//   - else it is an initialiser or an argument and passed over.
// Inside a function braces only count, so that lambdas and local types belong to the function
// around them. Members braced in a constructor's initialiser list do not end its signature. Each
// branch of #if / #else starts from the braces open before the #if.
#pragma once

#include "tidy/source_text.h"

namespace pagoda::tidy {

inline constexpr int kFunctionLinesMax = 70;

struct Function {
  int first_line;
  int last_line;
  std::string head;  // the signature, blanks folded

  int lines() const { return last_line - first_line + 1; }
};

struct FunctionList {
  std::vector<Function> functions;
  bool balanced = true;  // every brace has its partner; if not, the list cannot be trusted
};

FunctionList list_functions(const SourceText& source);

// Long functions; also a file whose braces do not balance.
Findings functions_too_long(const SourceText& source);

}  // namespace pagoda::tidy
