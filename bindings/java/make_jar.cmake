# Packs a folder into a jar whose bytes depend only on its files.
# Usage: cmake -DJAR=tool [-DMANIFEST=file] -P make_jar.cmake JAR_FILE FOLDER

math(EXPR last "${CMAKE_ARGC} - 1")
math(EXPR next_to_last "${CMAKE_ARGC} - 2")
set(jar_file ${CMAKE_ARGV${next_to_last}})
set(folder ${CMAKE_ARGV${last}})
set(manifest --no-manifest)
if(MANIFEST)
  set(manifest --manifest=${MANIFEST})
endif()

file(GLOB_RECURSE files RELATIVE ${folder} ${folder}/*) # sorted
list(TRANSFORM files PREPEND "-C ${folder} ")
list(JOIN files "\n" files)
file(WRITE ${jar_file}.files "${files}\n")
execute_process(
  COMMAND ${JAR} --create --file ${jar_file} --date=1980-01-01T00:00:02Z ${manifest}
          @${jar_file}.files
  COMMAND_ERROR_IS_FATAL ANY)
