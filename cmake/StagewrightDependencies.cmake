# Everything third-party is found here, once. Optional dependencies say what is lost without them.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(LibArchive QUIET) # archives of traces; without it they are refused with the command that unpacks them
find_package(simdjson REQUIRED)
find_package(CLI11 REQUIRED)
find_path(TL_EXPECTED_INCLUDE_DIR tl/expected.hpp)
if(NOT TL_EXPECTED_INCLUDE_DIR)
    message(FATAL_ERROR "tl/expected.hpp is missing: install libexpected-dev (./bootstrap.sh does it)")
endif()

find_path(PROTOZERO_INCLUDE_DIR protozero/version.hpp)
if(NOT PROTOZERO_INCLUDE_DIR)
    message(FATAL_ERROR "protozero/version.hpp is missing: install libprotozero-dev (./bootstrap.sh does it)")
endif()
add_library(protozero INTERFACE) # headers only
target_include_directories(protozero SYSTEM INTERFACE ${PROTOZERO_INCLUDE_DIR})
add_library(protozero::protozero ALIAS protozero)
find_path(FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h)
if(NOT FLATBUFFERS_INCLUDE_DIR)
    message(FATAL_ERROR "flatbuffers/flatbuffers.h is missing: install libflatbuffers-dev (./bootstrap.sh does it)")
endif()

# Ranks as processes: a module too, which alone sees MPI. The search for its compiler wrappers changes nothing else.
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI QUIET COMPONENTS CXX)
set(STAGEWRIGHT_HAVE_MPI ${MPI_CXX_FOUND})
# MPICH's headers, which may be beside another MPI's: a second module, for all MPIs of its binary interface. Only MPICH has mpi_proto.h.
find_path(STAGEWRIGHT_MPICH_INCLUDE_DIR mpi_proto.h PATH_SUFFIXES mpich mpich-x86_64 DOC "The folder of MPICH's mpi.h")
mark_as_advanced(STAGEWRIGHT_MPICH_INCLUDE_DIR)

set(STAGEWRIGHT_HAVE_QT OFF)
if(STAGEWRIGHT_QT)
    find_package(Qt6 6.4 QUIET COMPONENTS Core Gui Widgets Svg PrintSupport Test)
    if(Qt6_FOUND)
        set(STAGEWRIGHT_HAVE_QT ON)
    endif()
endif()

# The CUDA module is built wherever nvcc is found: on PATH, by CUDACXX, or where the toolkit's installer puts it.
set(STAGEWRIGHT_HAVE_CUDA OFF)
if(STAGEWRIGHT_CUDA AND STAGEWRIGHT_SANITIZE)
    message(STATUS "The CUDA module is not built with sanitizers")
elseif(STAGEWRIGHT_CUDA)
    if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
        find_program(STAGEWRIGHT_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
        if(STAGEWRIGHT_NVCC)
            set(CMAKE_CUDA_COMPILER ${STAGEWRIGHT_NVCC})
        endif()
    endif()
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
        set(STAGEWRIGHT_HAVE_CUDA ON)
        # Never `native`: that needs a GPU on the build machine.
        set(STAGEWRIGHT_CUDA_ARCHITECTURES "80;90;100" CACHE STRING "Compute capabilities the CUDA module is compiled for")
        set(CMAKE_CUDA_ARCHITECTURES ${STAGEWRIGHT_CUDA_ARCHITECTURES})
        enable_language(CUDA)
        if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake 3.25 knows no newer nvcc than C++17
            set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
            set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
        endif()
        find_package(CUDAToolkit REQUIRED)
    endif()
endif()

add_feature_info(Window STAGEWRIGHT_HAVE_QT "without Qt 6 there is no stagewright-ui, no PNG export; the command line is whole")
add_feature_info(CUDA STAGEWRIGHT_HAVE_CUDA "without nvcc the module libstagewright_cuda.so is not built; the CPU backend trains every schedule")
add_feature_info(MPI STAGEWRIGHT_HAVE_MPI "without it ranks are threads of one process; nothing else is lost")
add_feature_info(MPICH STAGEWRIGHT_MPICH_INCLUDE_DIR "without it processes are started by Open MPI alone")
