// vLLM's other way to write a flag whose value is JSON: a flag for each field,
// "--speculative-config.method ngram --speculative-config.num_speculative_tokens 4".
#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"

namespace pagoda::cli {

// The words with the fields of each such flag joined to one value, where its first field stood:
// --speculative-config '{"method":"ngram","num_speculative_tokens":4}'. A value that is no JSON is
// text; a field that ends with '+' is a list, to which values are added. Flags that take no JSON,
// and fields without a value, are left as they are.
std::vector<std::string> with_joined_fields(std::vector<std::string> words,
                                            const CommandLine::Place& place);

}  // namespace pagoda::cli
