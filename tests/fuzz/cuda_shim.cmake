# Fails if the library's objects call a function of the CUDA runtime that the shim does not make
# fail.
#
#   cmake -DNM=nm -DSHIM=cuda_shim.cpp "-DOBJECTS=a.o;b.o" -P cuda_shim.cmake

# Functions that only report an error, and those that the compiler adds before main() and around a
# launch.
set(known cudaGetErrorName cudaGetErrorString __cudaGetKernel __cudaInitModule
  __cudaPopCallConfiguration __cudaPushCallConfiguration __cudaRegisterFatBinary
  __cudaRegisterFatBinaryEnd __cudaRegisterFunction __cudaRegisterVar __cudaUnregisterFatBinary)

file(READ ${SHIM} shim)
execute_process(COMMAND ${NM} --undefined-only ${OBJECTS}
  OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " U (__)?cuda[A-Za-z_0-9]+" called "${symbols}")
list(TRANSFORM called REPLACE " U " "")
list(REMOVE_DUPLICATES called)
list(REMOVE_ITEM called ${known})
list(LENGTH called count)
if(count LESS 10)
  message(FATAL_ERROR "Only ${count} functions of CUDA's runtime are called: ${called}")
endif()
foreach(function IN LISTS called)
  if(NOT shim MATCHES "(RBC_SHIM[A-Z_]*\\(|__wrap_)${function}[,(]")
    message(SEND_ERROR "${function} is called, and cuda_shim.cpp does not let it fail")
  endif()
endforeach()
