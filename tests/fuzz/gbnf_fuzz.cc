// Any bytes are refused as GBNF and as a regular expression with a reason, or are a grammar under
// which a text can be written to its end.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/written_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto make :
       {pagoda::structured::grammar_from_gbnf, pagoda::structured::grammar_from_regex}) {
    const auto grammar = make(text);
    if (!grammar.ok()) {
      ASSERT(!grammar.error().message.empty(), "an error has a reason");
      continue;
    }
    for (const std::uint64_t seed : {1, 2, 3}) {
      pagoda::structured::check_grammar(*grammar.value(), seed + size);
    }
  }
  return 0;
}
