// Who may include whom: the arrows of ARCHITECTURE.md, and what a .cu must never reach.
#pragma once

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

// Permissions of the table that no file of src/ uses: a folder or header that `from` may include
// and never does.
std::vector<std::string> unused_arrows(const Sources& sources);

// Host libraries that a .cu or .cuh reaches through our own headers: generated .cu files include
// a .cuh each. `sources` holds every file by path.
Findings host_libraries_in_cuda(const SourceText& source, const Sources& sources);

}  // namespace pagoda::tidy
