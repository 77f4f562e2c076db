// GPT-2's printable alphabet: byte-level vocabularies write each byte as one character, printable
// Latin-1 bytes as themselves and the other 68 as U+0100 upwards, so that a space shows as "Ġ".
#pragma once

#include <string>
#include <string_view>

namespace pagoda::text {

// Appends the bytes that `letters` stands for. Returns false, and appends nothing, when a character
// is not of the alphabet.
bool append_alphabet_bytes(std::string_view letters, std::string& bytes);

}  // namespace pagoda::text
