// The text that perplexity and divergence are measured on, and that needles are hidden in.
#pragma once

#include <string>

#include "base/result.h"

namespace pagoda::eval {

struct Document {
  std::string name;  // of its file; "coriolanus" is the one inside the program
  std::string text;
  std::string digest;  // SHA-256 of the text, the first 16 hexadecimal digits
};

// The text inside the program (a part of Shakespeare's Coriolanus) where `file` is empty.
Result<Document> read_document(const std::string& file);

}  // namespace pagoda::eval
