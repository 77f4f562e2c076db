// SHA-256 and HMAC-SHA-256, for keys and salts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace pagoda::server {

using Digest = std::array<std::uint8_t, 32>;

Digest sha256(std::string_view bytes);
Digest hmac_sha256(std::string_view key, std::string_view bytes);

// The time does not depend on where the digests differ.
bool equal_in_constant_time(const Digest& a, const Digest& b);

std::string to_hex(const Digest& digest);

}  // namespace pagoda::server
