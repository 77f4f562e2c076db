#include "kv/tiers/page_store.h"

namespace pagoda::kv {

std::string_view name_of(StoreFault fault) {
  constexpr std::array<std::string_view, kStoreFaults> kNames = {
      "none", "absent", "damaged", "foreign", "io", "timeout", "no_room", "off", "cancelled"};
  return kNames[static_cast<std::size_t>(fault)];
}

}  // namespace pagoda::kv
