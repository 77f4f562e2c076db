#include "cli/serve_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "server/access/secret.h"

namespace pagoda::cli {
namespace {

std::string default_secret_path() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  const std::string base = cache != nullptr && *cache != '\0'
                               ? std::string(cache)
                               : fmt::format("{}/.cache", home != nullptr ? home : "");
  return base + "/pagoda/secret";
}

Status check_origin(const std::string& origin) {
  const bool has_scheme = origin.starts_with("http://") || origin.starts_with("https://");
  const std::size_t host = origin.find("//") + 2;
  if (origin == "*" || (has_scheme && origin.find('/', host) == std::string::npos)) {
    return ok_status();
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("--cors-origin: \"{}\" is no origin, expected one like "
                           "https://chat.example.com, or *",
                           origin)};
}

}  // namespace

void add_access_options(CLI::App& command, AccessOptions& options) {
  command
      .add_option("--api-key", options.api_keys,
                  "a key that requests must carry, once or more: for everything, admin included "
                  "(default: no key is needed)")
      ->allow_extra_args(false);
  command.add_option("--api-keys", options.key_file,
                     "file with tenants, their limits and their keys; SIGHUP reads it again");
  command.add_option("--secret-file", options.secret_file,
                     "what tenants' salts are made with; made when missing (default: secret in the "
                     "cache folder)");
  command
      .add_option("--cors-origin", options.cors_origins,
                  "whose pages may ask, e.g. https://chat.example.com, once or more; * for all "
                  "(default: the server's own)")
      ->allow_extra_args(false);
  command.add_option("--ssl-certfile", options.certificate_file,
                     "certificate and chain in PEM: serve https; SIGHUP reads it again");
  command.add_option("--ssl-keyfile", options.certificate_key_file, "the certificate's key in PEM");
  command.add_flag("--metrics-need-admin", options.metrics_need_admin,
                   "/metrics needs an admin's key too (default: open to all)");
}

Status set_access(const AccessOptions& options, server::ServerOptions& made) {
  if (options.certificate_file.empty() != options.certificate_key_file.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "--ssl-certfile and --ssl-keyfile: expected both or none"};
  }
  if (!options.certificate_file.empty()) {
    made.tls = server::TlsFiles{options.certificate_file, options.certificate_key_file};
  }
  for (const std::string& origin : options.cors_origins) RETURN_IF_ERROR(check_origin(origin));
  for (const std::string& key : options.api_keys) {
    if (key.empty()) return Error{ErrorCode::kInvalidArgument, "--api-key: is empty"};
  }
  made.cors_origins = options.cors_origins;
  made.metrics_need_admin = options.metrics_need_admin;
  return ok_status();
}

Result<std::shared_ptr<const server::KeyRing>> KeySource::read() {
  if (options_.api_keys.empty() && options_.key_file.empty()) {
    return std::shared_ptr<const server::KeyRing>();
  }
  server::KeyList list;
  if (!options_.key_file.empty()) {
    ASSIGN_OR_RETURN(list, server::read_key_file(options_.key_file));
  }
  for (const std::string& key : options_.api_keys) {
    list.keys.push_back(server::key_for_everything(key));
  }
  if (secret_.empty()) {
    const std::string path =
        options_.secret_file.empty() ? default_secret_path() : options_.secret_file;
    ASSIGN_OR_RETURN(secret_, server::read_or_make_secret(path));
  }
  return server::KeyRing::make(list, tenants_, secret_);
}

}  // namespace pagoda::cli
