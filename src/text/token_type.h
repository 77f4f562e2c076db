// The type of a token. The numbers are those in the file.
#pragma once

#include <cstdint>

namespace pagoda::text {

enum class TokenType : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,      // stands for text that the vocabulary lacks
  kControl = 3,      // structure, never text: "<|im_start|>"
  kUserDefined = 4,  // text that is one token wherever it occurs
  kUnused = 5,
  kByte = 6,  // "<0x0A>"
};

}  // namespace pagoda::text
