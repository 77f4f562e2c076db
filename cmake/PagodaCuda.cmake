# Finds CUDA and compiles .cu files by calling nvcc itself: the same way natively and for another
# architecture of host, where CMake's own CUDA language cannot link its test program.
#   PAGODA_CUDA     AUTO (where nvcc is), DEVICE (where nvcc and an NVIDIA GPU are: for a program that
#                   runs where it is built), ON (an error without nvcc) or OFF
#   PAGODA_CUDART   the static CUDA runtime of the target, where nvcc's own is of another host
set(PAGODA_CUDA_FOUND OFF)
set(PAGODA_CUDA_SUMMARY "not built: no nvcc, or PAGODA_CUDA=OFF")
set(wanted ${PAGODA_CUDA})
# The signs of a GPU that cli::shows_nvidia_gpu() looks for.
if(PAGODA_CUDA STREQUAL DEVICE AND NOT EXISTS /dev/nvidia0 AND NOT EXISTS /proc/driver/nvidia)
  set(wanted OFF)
  set(PAGODA_CUDA_SUMMARY "not built: no NVIDIA GPU here (PAGODA_CUDA=AUTO needs none)")
endif()
if(NOT wanted STREQUAL OFF)
  find_program(PAGODA_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(PAGODA_NVCC)
    get_filename_component(cuda_bin ${PAGODA_NVCC} DIRECTORY)
    get_filename_component(cuda_root ${cuda_bin}/.. REALPATH)
    find_path(PAGODA_CUDA_INCLUDE cuda_runtime_api.h NO_CMAKE_FIND_ROOT_PATH
      PATHS ${cuda_root}/include ${cuda_root}/targets/sbsa-linux/include
            ${cuda_root}/targets/x86_64-linux/include)
    if(NOT CMAKE_CROSSCOMPILING)
      find_library(PAGODA_CUDART cudart_static
        PATHS ${cuda_root} PATH_SUFFIXES lib64 lib targets/sbsa-linux/lib targets/x86_64-linux/lib)
    endif()
    if(PAGODA_CUDA_INCLUDE AND PAGODA_CUDART)
      set(PAGODA_CUDA_FOUND ON)
      execute_process(COMMAND ${PAGODA_NVCC} --version OUTPUT_VARIABLE cuda_version)
      string(REGEX MATCH "release ([0-9.]+)" matched "${cuda_version}")
      set(PAGODA_CUDA_VERSION ${CMAKE_MATCH_1})
    endif()
  endif()
  if(PAGODA_CUDA STREQUAL ON AND NOT PAGODA_CUDA_FOUND)
    message(FATAL_ERROR "PAGODA_CUDA is ON, but nvcc ('${PAGODA_NVCC}') or the static runtime "
      "('${PAGODA_CUDART}') was not found")
  endif()
endif()

if(PAGODA_CUDA_FOUND)
  add_library(pagoda_cudart INTERFACE)
  target_include_directories(pagoda_cudart SYSTEM INTERFACE ${PAGODA_CUDA_INCLUDE})
  target_link_libraries(pagoda_cudart INTERFACE ${PAGODA_CUDART} Threads::Threads dl rt)
  set(PAGODA_CUDA_SUMMARY "${PAGODA_CUDA_VERSION}, sm_90a")
endif()

# nvcc's front end knows the types of the host it runs on: 80-bit floats, which libstdc++ for x86-64
# names in <compare>, are none of them elsewhere. No kernel has any.
set(PAGODA_CUDA_OPTIONS)
if(CMAKE_CROSSCOMPILING AND CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  set(PAGODA_CUDA_OPTIONS -D__float80=double)
endif()

# pagoda_cuda_objects(variable a.cu …): objects of .cu files, of this folder or generated ones in
# its binary folder, for a target's sources. Multiply-adds are fused where the source says so and
# nowhere else.
function(pagoda_cuda_objects variable)
  set(objects)
  foreach(source IN LISTS ARGN)
    get_filename_component(path ${source} ABSOLUTE)
    string(REPLACE ${CMAKE_CURRENT_BINARY_DIR}/ "" name ${source})
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
    get_filename_component(folder ${object} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${object}
      COMMAND ${PAGODA_NVCC} -ccbin ${CMAKE_CXX_COMPILER} ${PAGODA_CUDA_OPTIONS} -std=c++20 -O3
              -Xcompiler=-fPIC
              -fmad=false --expt-relaxed-constexpr -gencode=arch=compute_90a,code=sm_90a
              -I${CMAKE_SOURCE_DIR}/src -I${PAGODA_CUDA_INCLUDE} -MD -MF ${object}.d
              -c ${path} -o ${object}
      DEPENDS ${path} DEPFILE ${object}.d
      COMMENT "CUDA ${name}" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()
