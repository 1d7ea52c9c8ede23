# Everything third-party is found here, once. What is optional says what is lost without it.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(CLI11 REQUIRED)
find_path(TL_EXPECTED_INCLUDE_DIR tl/expected.hpp)
if(NOT TL_EXPECTED_INCLUDE_DIR)
    message(FATAL_ERROR "tl/expected.hpp is missing: install libexpected-dev (./bootstrap.sh does it)")
endif()

# OpenBLAS, the pthread flavour first, told to use one thread a rank. The serial flavour hands one scratch buffer to two
# threads that call at the same moment and then answers wrongly; the engine lets its calls take turns where it finds it.
find_package(OpenBLAS CONFIG QUIET HINTS
    /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread/cmake/openblas
    /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-serial/cmake/openblas)
add_library(stagewright_blas INTERFACE)
if(OpenBLAS_FOUND)
    target_link_libraries(stagewright_blas INTERFACE ${OpenBLAS_LIBRARIES})
    target_include_directories(stagewright_blas SYSTEM INTERFACE ${OpenBLAS_INCLUDE_DIRS})
else()
    set(BLA_VENDOR OpenBLAS)
    find_package(BLAS)
    if(NOT BLAS_FOUND)
        message(FATAL_ERROR "OpenBLAS is missing: install libopenblas-pthread-dev (./bootstrap.sh does it)")
    endif()
    target_link_libraries(stagewright_blas INTERFACE BLAS::BLAS)
endif()

set(STAGEWRIGHT_HAVE_QT OFF)
if(STAGEWRIGHT_QT)
    find_package(Qt6 6.4 QUIET COMPONENTS Core Gui Widgets Svg PrintSupport Test)
    if(Qt6_FOUND)
        set(STAGEWRIGHT_HAVE_QT ON)
    endif()
endif()

# Backends and transports beyond threads on the CPU are folders of their own; each is asked for here once it is there.
set(STAGEWRIGHT_HAVE_CUDA OFF)
if(STAGEWRIGHT_CUDA AND EXISTS ${PROJECT_SOURCE_DIR}/engine/cuda/CMakeLists.txt)
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
        set(STAGEWRIGHT_HAVE_CUDA ON)
    endif()
endif()

add_feature_info(Window STAGEWRIGHT_HAVE_QT "without Qt 6 there is no stagewright-ui, no PNG export; the command line is whole")
add_feature_info(CUDA STAGEWRIGHT_HAVE_CUDA "without it there is no GPU backend; the CPU backend trains every schedule")
add_feature_info(MPI OFF "without it ranks are threads of one process; nothing else is lost")
