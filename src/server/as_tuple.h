// kAsTuple: the completion token of every asynchronous operation here. A coroutine that awaits it
// gets the error as a value beside the result; nothing is thrown.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace pagoda::server {

inline constexpr auto kAsTuple = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace pagoda::server
