# Compiler settings that every target of the tree shares.

find_program(TROUPE_CCACHE ccache)
if(TROUPE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${TROUPE_CCACHE})
endif()
# The compiler's own linker: a program takes it half a second. mold 1.10, faster, hangs on some of these programs and lays out the
# read-only part of others so that they do not load.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
if(TROUPE_SANITIZE)
  # -O1 and line tables only: half the compile time, and stacks stay readable. A report ends the program, or the undefined-behaviour
  # sanitizer would print and the test would pass.
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
  add_compile_options(-fsanitize=${TROUPE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TROUPE_SANITIZE})
endif()

add_library(troupe_settings INTERFACE)
target_include_directories(troupe_settings INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(troupe_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion
                       -Wnon-virtual-dtor -Woverloaded-virtual -Wno-sign-conversion -Wno-restrict>)
if(TROUPE_WERROR)
  target_compile_options(troupe_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()

# troupe_library(NAME SOURCES a.cpp ... LINK target ...): one library of the tree.
function(troupe_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC troupe_settings ${ARG_LINK})
endfunction()

# troupe_add_rooms(a b ...): the subfolders that have a CMakeLists.txt, in this order (lower layers first).
macro(troupe_add_rooms)
  foreach(room ${ARGN})
    if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${room}/CMakeLists.txt")
      add_subdirectory(${room})
    endif()
  endforeach()
endmacro()

# troupe_see_cuda(a.cpp ...): these sources see CUDA's headers.
function(troupe_see_cuda)
  list(TRANSFORM CUDAToolkit_INCLUDE_DIRS PREPEND "-isystem" OUTPUT_VARIABLE headers)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${headers}")
endfunction()

# troupe_cuda_kernels(NAME a.cu ...): kernels as an object library. By themselves: CMake 3.25 cannot ask nvcc 13 for the C++20 of
# troupe_settings, and they need none of it.
function(troupe_cuda_kernels name)
  add_library(${name} OBJECT ${ARGN})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  set_target_properties(${name} PROPERTIES CUDA_STANDARD 17)
endfunction()
