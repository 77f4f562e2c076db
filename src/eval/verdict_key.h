// The key under which pagoda eval stores its verdicts.
#pragma once

namespace pagoda::eval {

// Verdicts about configurations of the KV cache (app::VerdictKey::subject). The choice is the
// configuration's name, which says what layers are skipped; the numerics are
// engine::Backend::numerics_id().
inline constexpr const char* kKvSubject = "kv";

}  // namespace pagoda::eval
