# Toolchain: build for x86-64 on another Debian machine and run the tests under qemu-user, so that
# the AVX2 kernels can be tested where the CPU has none. PAGODA_X86_ROOT holds unpacked amd64
# packages; tools/test_emulated_x86 prepares it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_CXX_COMPILER x86_64-linux-gnu-g++)
set(PAGODA_X86_ROOT $ENV{PAGODA_X86_ROOT})
set(CMAKE_FIND_ROOT_PATH ${PAGODA_X86_ROOT} /usr/x86_64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE x86_64-linux-gnu)
# Where Debian keeps headers that differ from one architecture to another (OpenSSL has one).
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${PAGODA_X86_ROOT}/usr/include/x86_64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)
set(ENV{PKG_CONFIG_LIBDIR} ${PAGODA_X86_ROOT}/usr/lib/x86_64-linux-gnu/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${PAGODA_X86_ROOT})
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-x86_64-static -cpu max -L /usr/x86_64-linux-gnu
    -E LD_LIBRARY_PATH=${PAGODA_X86_ROOT}/usr/lib/x86_64-linux-gnu)
