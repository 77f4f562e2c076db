// The grammars of `pagoda bench structured`, each with an answer that is written under it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "structured/grammar.h"

namespace pagoda::bench {

struct StructuredCase {
  std::string name;
  Result<std::shared_ptr<const structured::Grammar>> (*make)();
  std::string answer;
};

std::vector<StructuredCase> structured_cases();

}  // namespace pagoda::bench
