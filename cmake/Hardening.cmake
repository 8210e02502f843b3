# rbc_hardening has the flags that every shipped binary is compiled and linked with. The library links it
# through rbc_flags, the bindings' modules directly. tests/source/hardening.py checks all ELF files of all
# packages for it.

include(CheckCXXCompilerFlag)
include(CheckLinkerFlag)

add_library(rbc_hardening INTERFACE)

# Functions check their stack, and indirect calls can only go to the begin of a function. The sanitizers
# detect more.
set(hardening)
if(NOT ROBOCACHE_SANITIZE)
  set(hardening fstack-protector-strong)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND hardening fcf-protection=full)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    list(APPEND hardening mbranch-protection=standard)
  endif()
endif()
foreach(flag IN LISTS hardening)
  string(MAKE_C_IDENTIFIER "ROBOCACHE_HAS_${flag}" has)
  check_cxx_compiler_flag(-${flag} ${has})
  if(${has})
    target_compile_options(rbc_hardening INTERFACE
      $<$<COMPILE_LANGUAGE:C,CXX>:-${flag}> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-${flag}>)
  endif()
endforeach()

# Calls of the C library check the buffer's size where the compiler knows it.
if(NOT ROBOCACHE_SANITIZE)
  target_compile_options(rbc_hardening INTERFACE
    "$<$<AND:$<NOT:$<CONFIG:Debug>>,$<COMPILE_LANGUAGE:C,CXX>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>"
    "$<$<AND:$<NOT:$<CONFIG:Debug>>,$<COMPILE_LANGUAGE:CUDA>>:-Xcompiler=-U_FORTIFY_SOURCE,-D_FORTIFY_SOURCE=2>"
    $<$<AND:$<CONFIG:Debug>,$<COMPILE_LANGUAGE:CXX>>:-D_GLIBCXX_ASSERTIONS>)
endif()

# Addresses are bound when the binary is loaded, and read-only after that. No stack is executable.
target_link_options(rbc_hardening INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
# Marks the binary as compatible with shadow stacks; a program that uses one cannot load it otherwise. By
# default the linker sets the mark only if GCC's startup files have it. Debian's files do not have it, but
# they do not change return addresses either.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT ROBOCACHE_SANITIZE)
  check_linker_flag(CXX -Wl,-z,shstk ROBOCACHE_HAS_z_shstk)
  if(ROBOCACHE_HAS_z_shstk)
    target_link_options(rbc_hardening INTERFACE -Wl,-z,shstk)
  endif()
endif()
