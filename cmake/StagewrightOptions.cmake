# Build options, the warning set, sanitizers, and the three functions every folder uses.

option(STAGEWRIGHT_QT "Build the window (needs Qt 6)" ON)
option(STAGEWRIGHT_CUDA "Build the CUDA module where nvcc is found" ON)
option(STAGEWRIGHT_TESTS "Build tests and benchmarks" ON)
option(STAGEWRIGHT_WERROR "Treat warnings as errors" OFF)
option(STAGEWRIGHT_PCH "Precompile the headers that most sources include" ON)
option(STAGEWRIGHT_UNITY "Compile up to sixteen sources of a folder as one: a third less compile time of everything, but more for a small edit" OFF)
option(STAGEWRIGHT_FUZZ "Build the libFuzzer drivers (needs clang)" OFF)
set(STAGEWRIGHT_SANITIZE "" CACHE STRING "Sanitizers, e.g. 'address,undefined' or 'thread'")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

add_library(stagewright_warnings INTERFACE)
target_compile_options(stagewright_warnings INTERFACE
    -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual -Wformat=2 -Wimplicit-fallthrough
    # GCC 12 sees overlapping copies in std::string's operator+ where there are none (its bug 105651).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
    # Compiled together, a parameter may have the name of another source's function, and a class its parts in an anonymous namespace;
    # and GCC 12 sees more where there is nothing.
    $<IF:$<BOOL:${STAGEWRIGHT_UNITY}>,$<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage;-Wno-array-bounds;-Wno-maybe-uninitialized;-Wno-stringop-overflow;-Wno-stringop-overread>,-Wshadow>
    $<$<BOOL:${STAGEWRIGHT_WERROR}>:-Werror>)

if(STAGEWRIGHT_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # less garbage collection: 14 % less time, 20 % more memory
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288;--param=ggc-min-expand=100>")
endif()

if(STAGEWRIGHT_SANITIZE)
    if(STAGEWRIGHT_SANITIZE MATCHES "thread" AND STAGEWRIGHT_SANITIZE MATCHES "address")
        message(FATAL_ERROR "STAGEWRIGHT_SANITIZE: 'thread' and 'address' exclude each other")
    endif()
    add_compile_options(-fsanitize=${STAGEWRIGHT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
                        -Wno-maybe-uninitialized) # GCC 12 sees it in variants that its own checks have taken apart
    add_link_options(-fsanitize=${STAGEWRIGHT_SANITIZE})
endif()

if(STAGEWRIGHT_FUZZ AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_compile_options(-fsanitize=fuzzer-no-link) # coverage for the libraries under the fuzz targets
endif()

# stagewright_precompile(<target> [ALWAYS] headers…): the headers are compiled once for the target. ALWAYS: they are included before every
# source in any case. Sources still include what they use: without STAGEWRIGHT_PCH they must compile alone.
function(stagewright_precompile target)
    cmake_parse_arguments(ARG "ALWAYS" "" "" ${ARGN})
    if(STAGEWRIGHT_PCH)
        target_precompile_headers(${target} PRIVATE ${ARG_UNPARSED_ARGUMENTS})
    elseif(ARG_ALWAYS)
        foreach(header IN LISTS ARG_UNPARSED_ARGUMENTS)
            target_compile_options(${target} PRIVATE "SHELL:$<$<COMPILE_LANGUAGE:CXX>:-include ${header}>")
        endforeach()
    endif()
endfunction()

# stagewright_cold(<target>): nothing in it is hot; optimised builds of it save a third of the compile time.
function(stagewright_cold target)
    target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
endfunction()

# stagewright_level(<option> sources…): these are compiled so in optimised builds. Without precompiled headers, as GCC takes the level from
# those rather than from its command line.
function(stagewright_level option)
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:${option}>)
    set_property(SOURCE ${ARGN} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# stagewright_sources(<target> ALONE … TOGETHER … FOLDERS … COLD … HOT …): how the sources are compiled; each list has folders and single sources.
# With STAGEWRIGHT_UNITY those of one folder are compiled together, up to sixteen, and those of several folders where FOLDERS names them
# ("check+device", "." is the target's own): names in their anonymous namespaces must then differ. ALONE are not; TOGETHER are a group of their own.
# COLD: like stagewright_cold(); HOT: not, in a target that is.
function(stagewright_sources target)
    cmake_parse_arguments(ARG "" "" "ALONE;TOGETHER;FOLDERS;COLD;HOT" ${ARGN})
    get_target_property(sources ${target} SOURCES)
    foreach(source IN LISTS sources)
        if(NOT source MATCHES "\\.cpp$" OR IS_ABSOLUTE ${source})
            continue()
        endif()
        get_filename_component(folder ${source} DIRECTORY)
        if(NOT folder)
            set(folder .)
        endif()
        set(place "${source};${folder}")
        set(level "")
        set(apart OFF)
        set(most 16)
        set(group "folder_${folder}")
        foreach(joined IN LISTS ARG_FOLDERS)
            string(FIND "+${joined}+" "+${folder}+" found)
            if(NOT found EQUAL -1)
                set(group "folders_${joined}")
                set(most 40)
            endif()
        endforeach()
        foreach(name IN LISTS place)
            if(name IN_LIST ARG_COLD)
                set(level -O1)
            elseif(name IN_LIST ARG_HOT)
                set(level -O3)
            endif()
            if(name IN_LIST ARG_ALONE)
                set(apart ON)
            elseif(name IN_LIST ARG_TOGETHER)
                string(APPEND group _together)
            endif()
        endforeach()
        get_source_file_property(excluded ${source} SKIP_UNITY_BUILD_INCLUSION)
        if(apart OR excluded OR NOT STAGEWRIGHT_UNITY)
            set(compiled ${source})
        else()
            string(MAKE_C_IDENTIFIER "${group}${level}" group)
            math(EXPR ${group} "0${${group}} + 1")
            math(EXPR part "${${group}} / ${most}")
            set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${part})
            set(compiled ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/Unity/unity_${group}_${part}_cxx.cxx)
        endif()
        if(level)
            list(APPEND compiled${level} ${compiled})
        endif()
    endforeach()
    foreach(level -O1 -O3)
        if(compiled${level})
            list(REMOVE_DUPLICATES compiled${level})
            stagewright_level(${level} ${compiled${level}})
        endif()
    endforeach()
    if(STAGEWRIGHT_UNITY)
        set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    endif()
endfunction()

# stagewright_moc(<target>): Qt's code generator for its classes, by cmake/moc_alone.sh.in.
function(stagewright_moc target)
    get_target_property(STAGEWRIGHT_QT_MOC Qt6::moc LOCATION)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/moc_alone.sh.in ${CMAKE_BINARY_DIR}/moc_alone.sh @ONLY)
    set_target_properties(${target} PROPERTIES AUTOMOC ON AUTOMOC_EXECUTABLE ${CMAKE_BINARY_DIR}/moc_alone.sh)
endfunction()

# stagewright_library(<room> SOURCES … [ALONE …] [FOLDERS …] [COLD …] PUBLIC … PRIVATE … [PRECOMPILE headers…]): the static library stagewright::<room>. ALONE, FOLDERS, COLD: for
# stagewright_sources. Include paths start at the root, so that a line reads #include "schedules/model/op.h".
function(stagewright_library room)
    cmake_parse_arguments(ARG "" "" "SOURCES;ALONE;FOLDERS;COLD;PUBLIC;PRIVATE;PRECOMPILE" ${ARGN})
    add_library(stagewright_${room} STATIC ${ARG_SOURCES})
    add_library(stagewright::${room} ALIAS stagewright_${room})
    target_include_directories(stagewright_${room} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(stagewright_${room} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} stagewright_warnings)
    stagewright_sources(stagewright_${room} ALONE ${ARG_ALONE} FOLDERS ${ARG_FOLDERS} COLD ${ARG_COLD})
    stagewright_precompile(stagewright_${room} ${PROJECT_SOURCE_DIR}/cmake/precompiled.h ${ARG_PRECOMPILE})
endfunction()

# stagewright_def_names(<variable> <file.def> <MACRO>): the names in lines such as MACRO(name), so that CMake and the
# registry source read the same list; of MACRO(name, folder) folder/name.
function(stagewright_def_names variable file macro)
    file(STRINGS ${file} lines REGEX "^${macro}\\(")
    set(names "")
    foreach(line IN LISTS lines)
        string(REGEX REPLACE "^${macro}\\(([A-Za-z0-9_]+).*" "\\1" name "${line}")
        if(line MATCHES ", *([a-z/]+)\\)")
            string(PREPEND name ${CMAKE_MATCH_1}/)
        endif()
        list(APPEND names ${name})
    endforeach()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    set(${variable} ${names} PARENT_SCOPE)
endfunction()
