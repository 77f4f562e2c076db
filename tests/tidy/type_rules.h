// Rules about the types of src/: a name means one type, in one source, and a class stays small
// however many files define it.
#pragma once

#include "tidy/source_text.h"

namespace pagoda::tidy {

inline constexpr int kClassLinesMax = 800;

struct TypeDefinition {
  std::string name;
  int first_line;
  int last_line;

  bool operator==(const TypeDefinition&) const = default;
};

// Classes, structs, unions, enums and aliases (`using A = B`) that are defined at namespace scope,
// outside anonymous namespaces. Declarations without a body are not listed.
std::vector<TypeDefinition> list_types(const SourceText& source);

// Type names that headers of two folders of src/ define at namespace scope. Nested types and types
// of anonymous namespaces are free.
PlacedFindings types_in_two_folders(const Sources& sources);

// Names of types and constants that two sources (.cc) of one library define at namespace scope,
// unnamed namespaces included: a unity build compiles the two as one. Kernels are compiled alone.
PlacedFindings names_in_two_sources(const Sources& sources);

// Classes of more than 800 lines. The lines are those of the header that defines the class and of
// every other file of its folder that defines members. A file counts whole, for the one class that
// most of it defines.
PlacedFindings classes_too_long(const Sources& sources);

}  // namespace pagoda::tidy
