// A TokenId is a token's number in its vocabulary.
#pragma once

#include "base/strong_id.h"

namespace pagoda {

using TokenId = StrongId<struct TokenTag, std::uint32_t>;

}  // namespace pagoda
