# The layers test: reads every #include line and fails where one goes the wrong way, where a Qt header appears outside
# widgets and app/ui, or where a CUDA, CUPTI, NCCL, MPI, SQL or BLAS header leaves its folder.
#   cmake -DROOT=<source tree> -P layers.cmake
cmake_policy(SET CMP0057 NEW)
set(failures "")
set(checked 0)

set(allowed_schedules schedules)
set(allowed_profiler schedules profiler)
set(allowed_engine schedules profiler engine)
set(allowed_traces schedules traces)
set(allowed_widgets schedules traces widgets)
set(allowed_app schedules profiler engine traces widgets app)

# header pattern → folders that may include it
set(rules
    "^Q[A-Z][A-Za-z]*|^Qt[A-Z][A-Za-z]*/|^q[a-z]*global" "^(widgets|app/ui)/"
    "^sqlite3" "^traces/store/"
    "^cblas|^openblas|^lapack|^dnnl|^oneapi/" "^engine/cpu/"
    "^cuda|^cublas|^curand|^nvtx|^nvToolsExt" "^(engine/cuda|profiler/cupti)/"
    "^cupti" "^profiler/cupti/"
    "^nccl" "^engine/cuda/"
    "^mpi\\.h" "^engine/mpi/")

# Widgets show answers: they include no simulator, planner or heuristic. These do so still; the list may only shrink.
set(simulates
    "widgets/deadlock/deadlock_dialog.cpp schedules/execute/deadlock_text.h"
    "widgets/deadlock/deadlock_dialog.h schedules/execute/deadlock.h"
    "widgets/deadlock/deadlock_view.cpp schedules/execute/deadlock_text.h"
    "widgets/deadlock/deadlock_view.h schedules/execute/deadlock.h"
    "widgets/edit/schedule_editor.h schedules/execute/simulate.h"
    "widgets/library/block_editor.cpp schedules/heuristic/block_schedule.h"
    "widgets/library/block_view.h schedules/heuristic/building_block.h"
    "widgets/tools/what_if_picture.h schedules/plan/what_if.h")
set(simulates_unseen ${simulates})

foreach(room schedules profiler engine traces widgets app)
    file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${room}/*.h ${ROOT}/${room}/*.cpp ${ROOT}/${room}/*.cu ${ROOT}/${room}/*.cuh)
    foreach(file IN LISTS files)
        math(EXPR checked "${checked} + 1")
        file(STRINGS ${ROOT}/${file} includes REGEX "^[ \t]*#[ \t]*include[ \t]*[<\"]")
        foreach(line IN LISTS includes)
            string(REGEX REPLACE "^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"]+).*" "\\1" header "${line}")
            if(header MATCHES "^(schedules|profiler|engine|traces|widgets|app)/")
                if(NOT CMAKE_MATCH_1 IN_LIST allowed_${room})
                    list(APPEND failures "${file}: includes ${header}, but ${room} may not use ${CMAKE_MATCH_1}")
                endif()
                if(file MATCHES "^app/cli/" AND header MATCHES "^(widgets|app/ui)/")
                    list(APPEND failures "${file}: includes ${header}, but the command line links no Qt")
                endif()
            endif()
            if(room STREQUAL "widgets" AND header MATCHES "^schedules/(execute|plan|heuristic)/")
                list(REMOVE_ITEM simulates_unseen "${file} ${header}")
                if(NOT "${file} ${header}" IN_LIST simulates)
                    list(APPEND failures "${file}: includes ${header}, but widgets show answers: make it in schedules/survey or app/ui")
                endif()
            endif()
            if(file MATCHES "\\.h$" AND header MATCHES "^fmt/" AND room STREQUAL "schedules")
                list(APPEND failures "${file}: includes ${header}; fmt belongs in sources only")
            endif()
            list(LENGTH rules count)
            math(EXPR last "${count} - 1")
            foreach(i RANGE 0 ${last} 2)
                math(EXPR j "${i} + 1")
                list(GET rules ${i} pattern)
                list(GET rules ${j} folders)
                if(header MATCHES "${pattern}" AND NOT file MATCHES "${folders}")
                    list(APPEND failures "${file}: includes ${header}, which belongs in ${folders} only")
                endif()
            endforeach()
        endforeach()
    endforeach()
endforeach()

foreach(pair IN LISTS simulates_unseen)
    list(APPEND failures "tests/layers/layers.cmake: \"${pair}\" is no more: remove it from the list")
endforeach()
if(checked EQUAL 0)
    message(FATAL_ERROR "layers: no source file found under ${ROOT}")
endif()
if(failures)
    list(JOIN failures "\n  " text)
    message(FATAL_ERROR "layers: wrong includes\n  ${text}")
endif()
message(STATUS "layers: ${checked} files, every include goes the right way")
