# Writes a header that holds files as they are: one std::string_view each.
#   cmake -DOUT=page_files.h -DNAMESPACE=pagoda::server -DFILES="kPageHtml=page.html,…" -P this
# With -DLIST=kPageFiles the header has an array of that name as well: pairs of a file's name, without
# its folder, and its text, in the order of FILES.
# Bytes are written as numbers: no file can break the literal that holds it.
file(WRITE ${OUT}.new "// Made from files of the source tree by cmake/EmbedFiles.cmake.\n"
  "#pragma once\n\n#include <string_view>\n#include <utility>\n\nnamespace ${NAMESPACE} {\n")
string(REPLACE "," ";" pairs "${FILES}")
foreach(pair ${pairs})
  string(REGEX MATCH "^([^=]+)=(.+)$" matched "${pair}")
  set(name ${CMAKE_MATCH_1})
  set(path "${CMAKE_MATCH_2}")
  file(READ "${path}" bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  file(APPEND ${OUT}.new "inline constexpr char ${name}Bytes[] = {${bytes}};\n"
    "inline constexpr std::string_view ${name}(${name}Bytes, sizeof ${name}Bytes);\n")
  get_filename_component(file "${path}" NAME)
  string(APPEND entries "    {\"${file}\", ${name}},\n")
endforeach()
if(LIST)
  file(APPEND ${OUT}.new "inline constexpr std::pair<std::string_view, std::string_view> ${LIST}[] = "
    "{\n${entries}};\n")
endif()
file(APPEND ${OUT}.new "}  // namespace ${NAMESPACE}\n")
file(RENAME ${OUT}.new ${OUT})
