# librobocache.a. A program that links it also links what its objects need, even if C is its only language.

if(ROBOCACHE_BUILD_PYTHON OR ROBOCACHE_JAVA OR ROBOCACHE_CSHARP OR ROBOCACHE_SANITIZE)
  message(FATAL_ERROR "BUILD_SHARED_LIBS is OFF, which only builds librobocache.a. The bindings for Python, Java and C# "
    "and the builds with sanitizers need librobocache.so: turn them off, or leave BUILD_SHARED_LIBS unset")
endif()
if(PROJECT_IS_TOP_LEVEL)
  message(STATUS "Static library; the tests are skipped because they load librobocache.so")
endif()

foreach(layer IN LISTS rbc_layers)
  target_sources(robocache PRIVATE $<TARGET_OBJECTS:${layer}>)
endforeach()

set(needed ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
list(FILTER needed INCLUDE REGEX "c\\+\\+") # stdc++, or c++ of Clang
list(APPEND needed m ${CMAKE_DL_LIBS})
set(rbc_dependencies Threads)
target_link_libraries(robocache PRIVATE Threads::Threads ${needed})
list(TRANSFORM needed PREPEND -l)
list(JOIN needed " " needed)
set(rbc_pc_libs " ${needed} -pthread")
if(RBC_WITH_CUDA)
  list(APPEND rbc_dependencies CUDAToolkit)
  target_link_libraries(robocache PRIVATE CUDA::cudart_static)
  string(PREPEND rbc_pc_libs " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt")
endif()
