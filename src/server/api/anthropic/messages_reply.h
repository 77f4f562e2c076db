// Writes answers as Anthropic's messages: content blocks, whole or as the events of a stream.
#pragma once

#include <memory>

#include "server/api/reply_writer.h"

namespace pagoda::server::anthropic {

std::shared_ptr<ReplyWriter> make_messages_writer();

}  // namespace pagoda::server::anthropic
