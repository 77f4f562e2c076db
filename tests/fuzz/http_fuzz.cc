// Any bytes are a request or are refused; how they are cut changes nothing, nothing beyond a
// request is taken or needed, and limits hold.
//
// Input: a byte that says how large the pieces are, then what arrives.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "server/request_reader.h"

namespace pagoda::server {
namespace {

using State = RequestReader::State;

// Small ones, so that inputs reach them.
ConnectionOptions limits() {
  ConnectionOptions limits;
  limits.header_bytes_max = 512;
  limits.body_bytes_max = 256;
  return limits;
}

const ConnectionOptions kLimits = limits();

// How many bytes it took.
std::size_t read(RequestReader& reader, std::string_view bytes, std::size_t piece) {
  std::size_t taken = 0;
  std::size_t arrived = 0;
  while (reader.state() != State::kDone && reader.state() != State::kFailed) {
    if (arrived == bytes.size()) {
      reader.end();
      break;
    }
    arrived = std::min(arrived + piece, bytes.size());
    taken += reader.put(bytes.substr(taken, arrived - taken));
    ASSERT(taken <= arrived, "only what arrived is taken");
  }
  return taken;
}

void check(std::string_view bytes, std::size_t piece) {
  RequestReader whole(kLimits);
  const std::size_t taken = read(whole, bytes, std::max<std::size_t>(bytes.size(), 1));
  RequestReader cut(kLimits);
  const std::size_t cut_taken = read(cut, bytes, piece);
  ASSERT(cut.state() == whole.state(), "how bytes are cut changes nothing");
  if (whole.state() == State::kFailed) {
    ASSERT(whole.error().status >= 400 && whole.error().status < 500, "the client is told");
    ASSERT(cut.error().message == whole.error().message, "and told the same");
    ASSERT(Json::accept(dump_json(error_json(whole.error()))), "in JSON");
    return;
  }
  ASSERT(taken == cut_taken, "the same bytes are the request");
  RequestReader exact(kLimits);
  read(exact, bytes.substr(0, taken), bytes.size());
  ASSERT(exact.state() == State::kDone, "nothing beyond the request is needed");
  RequestReader shorter(kLimits);
  read(shorter, bytes.substr(0, taken - 1), bytes.size());
  ASSERT(shorter.state() == State::kFailed, "and nothing of it is left out");
  const HttpRequest a = whole.take();
  const HttpRequest b = cut.take();
  ASSERT(a.method == b.method && a.path == b.path && a.body == b.body, "it is the same request");
  ASSERT(a.authorization == b.authorization && a.origin == b.origin, "of the same caller");
  ASSERT(a.body.size() <= kLimits.body_bytes_max, "bodies are bounded");
  ASSERT(!a.id.empty() && a.id.find_first_of("\r\n ") == std::string::npos, "ids are one word");
}

}  // namespace
}  // namespace pagoda::server

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  pagoda::server::check({reinterpret_cast<const char*>(data + 1), size - 1},
                        std::size_t{data[0]} % 64 + 1);
  return 0;
}
