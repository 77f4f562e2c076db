// Asks a running server which part of a prompt it has in its cache, and why not more.
#pragma once

#include <string>

#include "base/result.h"
#include "net/server_access.h"
#include "net/url.h"

namespace pagoda::inspect {

struct AskedServer {
  std::string name;  // as it was typed; errors begin with it
  net::Url url;
};

// Asks the server about the prompt of a request's body and prints what it says: for people, or one
// JSON value.
Status explain_prompt(const AskedServer& server, const net::ServerAccess& access,
                      const std::string& body, bool json);

}  // namespace pagoda::inspect
