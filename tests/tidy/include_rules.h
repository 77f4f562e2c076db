// Who may include whom: the arrows of ARCHITECTURE.md, and what a .cu must never reach.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tidy/source_text.h"

namespace pagoda::tidy {

struct Include {
  int line;
  std::string path;
  bool quoted;  // "ours" or <theirs>
};

std::vector<Include> list_includes(const SourceText& source);

// A wrong arrow between folders of src/, a quoted include that is not a path from src/, and a file
// that is in no folder the table knows. Files under tests/ and microbench/ may include what they
// need.
Findings wrong_arrows(const SourceText& source);

// Host libraries that a .cu reaches through our own headers. `sources` holds every file by path.
Findings host_libraries_in_cuda(const SourceText& source,
                                const std::map<std::string, SourceText>& sources);

}  // namespace pagoda::tidy
