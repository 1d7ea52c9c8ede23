#!/usr/bin/env bash
# Sets up, builds and runs Stagewright on Debian 12.
#   ./bootstrap.sh run               records four schedules, compares them, leaves files and pictures in demo/, opens the window
#   ./bootstrap.sh test [--full]     builds and runs the tests (with --full also the long ones)
#   ./bootstrap.sh build             only builds build/release/bin/stagewright and stagewright-ui
#   ./bootstrap.sh install [PREFIX]  builds and installs them to PREFIX [/usr/local]
# Each installs missing packages first, and says so. A second call does only what is left to do.
set -euo pipefail
cd "$(dirname "$0")"

readonly build=build/release
readonly program=$build/bin/stagewright
readonly window=$build/bin/stagewright-ui
configure_again=no # packages were installed: what was not found before may be there now

say() { printf '\n== %s\n' "$*"; }
die() { # die MESSAGE REMEDY
    printf '\nbootstrap: %s\n' "$1" >&2
    [ $# -lt 2 ] || printf '  %s\n' "$2" >&2
    exit 1
}

usage() {
    sed -n '2,7s/^# \{0,1\}//p' "$0"
}

# Package and reason. Packages that others in the list pull in are listed as well if they are used directly.
packages() {
    cat <<'LIST'
build-essential         compiler (g++ 12)
cmake                   build system
ninja-build             build tool
pkg-config              finds libraries
libexpected-dev         results and errors in all headers
libfmt-dev              formats text
nlohmann-json3-dev      JSON documents
libcli11-dev            command line options
libsqlite3-dev          run files
libprotozero-dev        Perfetto traces, OpenTelemetry
libmicrohttpd-dev       listens to OpenTelemetry
libflatbuffers-dev      Arrow files
zlib1g-dev              compressed traces
libarchive-dev          archives of traces (zip, tar, zstd, xz), optional
libsimdjson-dev         large JSON traces
libopenblas0-pthread    matrix products of the training engine
libopenmpi-dev          ranks as processes, where it is installed
openmpi-bin             starts them
libmpich-dev            the same under MPICH, Intel MPI or Cray's, optional
mpich                   starts them in tests
openssh-client          recording on other computers
libdnnl2                faster matrix products on some processors
coinor-libcbc3          integer programs of planners with memory rows
pybind11-dev            the Python package's arrays, optional
python3-dev             the same
python3-numpy           uses them, in tests
qt6-base-dev            the window, and the test framework
qt6-base-dev-tools      Qt's code generators
qt6-svg-dev             icons and SVG export
libgl-dev               required by Qt's build files
libbenchmark-dev        benchmark programs
fonts-dejavu-core       text in pictures and tests without a desktop
desktop-file-utils      checks the desktop entry
appstream               checks the software centre's data
shared-mime-info        checks the type of run files
dpkg-dev                dependencies of the packages
file                    detects file types, for the packages
patchelf                makes the archive independent of its place
xvfb                    an X server for the tests of mouse and keyboard
xauth                   required by xvfb-run
xdotool                 real mouse and keyboard for those tests
LIST
}

missing_packages() {
    local installed name
    # shellcheck disable=SC2016
    installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' 2>/dev/null | awk '$2 == "installed" { print $1 }')
    while read -r name _; do
        grep -qxF "$name" <<<"$installed" || printf '%s\n' "$name"
    done < <(packages)
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "installing packages needs root, and there is no sudo" \
            "as root: apt-get install --no-install-recommends $(missing_packages | tr '\n' ' ')"
    fi
}

apt_get() { # retried: mirrors hiccup
    local attempt
    for attempt in 1 2 3; do
        if as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 "$@"; then
            return 0
        fi
        [ "$attempt" = 3 ] || { printf 'bootstrap: apt-get %s failed, trying again\n' "$1" >&2; sleep $((attempt * 3)); }
    done
    return 1
}

install_packages() {
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        printf 'bootstrap: this is not Debian; continuing with what is installed. Needed:\n' >&2
        packages | sed 's/^/  /' >&2
        return 0
    fi
    local missing
    mapfile -t missing < <(missing_packages)
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing ${#missing[@]} packages"
    local name
    for name in "${missing[@]}"; do packages | grep "^$name "; done
    if [ "$(id -u)" != 0 ] && command -v sudo >/dev/null && ! sudo -n true 2>/dev/null && [ ! -t 0 ]; then
        die "installing packages needs root, and sudo asks for a password" \
            "as root: apt-get install --no-install-recommends ${missing[*]}"
    fi
    # The lists are fetched only where a package is not known yet, or the known ones can't be fetched any more.
    local known=yes
    for name in "${missing[@]}"; do
        apt-cache policy "$name" 2>/dev/null | grep -q 'Candidate: [^(]' || known=no
    done
    if [ $known = no ]; then
        apt_get update || die "the package lists can't be fetched" "check the network and /etc/apt/sources.list, then run this again"
    fi
    if ! apt_get install -y --no-install-recommends "${missing[@]}"; then
        if ! apt_get update || ! apt_get install -y --no-install-recommends "${missing[@]}"; then
            die "some packages could not be installed" "see apt-get's message above; this needs Debian 12 with its main archive"
        fi
    fi
    configure_again=yes
    mapfile -t missing < <(missing_packages)
    [ ${#missing[@]} -eq 0 ] || die "still missing: ${missing[*]}" "install them by hand, then run this again"
}

# As many compilers as there are cores, but no more than one for each GB of free memory.
jobs_count() {
    local cores memory limit
    cores=$(nproc)
    memory=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo 2>/dev/null || echo 2)
    limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
    if [[ $limit =~ ^[0-9]+$ ]] && [ $((limit / 1073741824)) -lt "$memory" ]; then memory=$((limit / 1073741824)); fi
    [ "$memory" -ge 1 ] || memory=1
    echo $((cores < memory ? cores : memory))
}

check_tools() {
    command -v cmake >/dev/null || die "cmake is missing" "install cmake 3.25 or newer"
    command -v ninja >/dev/null || die "ninja is missing" "install ninja-build"
    command -v c++ >/dev/null || command -v g++ >/dev/null || die "there is no C++ compiler" "install g++ 12 or newer"
}

# Build steps left and about how long they take: a step is 3 to 5 s of a core.
say_how_long() {
    local steps jobs=$2
    steps=$(ninja -C $build -n "$1" 2>/dev/null | grep -c '^\[') || return 0
    [ "$steps" -gt 20 ] || return 0
    printf 'about %d build steps: %d to %d minutes with %d idle cores\n' "$steps" $((steps * 3 / jobs / 60)) $((steps * 5 / jobs / 60 + 1)) "$jobs"
}

# Architectures of the CUDA module for this computer: of 80, 90 and 100 those of its GPUs, else 90. All of them take the compiler three times as long.
own_architectures() {
    local found
    found=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sed -nE 's/^(8|9|10)\..*$/\10/p' | sort -u | paste -sd';') || true
    printf '%s\n' "${found:-90}"
}

# build_target TARGET [for_all]: "programs" for those a user runs, "all" with the tests, "benchmarks"; for_all: GPUs of other computers too
build_target() {
    local jobs architectures=()
    install_packages
    check_tools
    if command -v ccache >/dev/null && [ -z "${CMAKE_CXX_COMPILER_LAUNCHER:-}" ]; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
    # ccache takes a precompiled header for unchanged when only comments or macros of it have changed: g++ then reads it twice, or an old macro.
    export CCACHE_EXTRAFILES=$PWD/cmake/precompiled.h:$PWD/cmake/precompiled_qt.h:$PWD/tests/support/test_program.h
    if [ "${2:-}" = for_all ]; then
        architectures=(-U STAGEWRIGHT_CUDA_ARCHITECTURES)
        configure_again=yes
    elif [ ! -f $build/build.ninja ]; then
        architectures=("-DSTAGEWRIGHT_CUDA_ARCHITECTURES=$(own_architectures)")
    fi
    if [ ! -f $build/build.ninja ] || [ $configure_again = yes ]; then
        say "configuring"
        cmake --preset release -DSTAGEWRIGHT_UNITY=ON "${architectures[@]}" || # a third less compile time of a first build
            die "configuring failed" "see the message above; 'rm -r $build' and running this again starts from scratch"
    fi
    jobs=$(jobs_count)
    say "building with $jobs jobs"
    say_how_long "$1" "$jobs"
    cmake --build --preset release --target "$1" --parallel "$jobs" ||
        die "the build failed" "see the first error above; 'rm -r $build' and running this again starts from scratch"
    [ -x $program ] || die "the build left no $program" "'rm -r $build' and run this again"
}

# Checks that could not run here, with the reason, from CTest's log of all output.
say_skipped() {
    local log=$build/Testing/Temporary/LastTest.log skipped
    [ -s $log ] || return 0
    skipped=$(sed -nE 's/^SKIP   : ([^(]*\([^)]*\)) (.*)$/\1: \2/p; s/^skipped: (.*)$/\1/p' $log | sort -u)
    [ -n "$skipped" ] || return 0
    say "skipped here: $(grep -c . <<<"$skipped")"
    printf '    %s\n' "${skipped//$'\n'/$'\n'    }"
}

run_tests() {
    local full=$1 log status=0
    export QT_QPA_PLATFORM=offscreen
    say "running the quick tests"
    ctest --preset release -L quick --parallel "$(nproc)" || status=1
    say_skipped
    if [ "$full" = yes ]; then
        say "running the long tests"
        ctest --preset release -L full --parallel "$(nproc)" --no-tests=ignore || status=1
        say_skipped
    fi
    log=$build/Testing/Temporary/LastTestsFailed.log
    if [ $status -ne 0 ]; then
        die "tests failed$([ ! -s $log ] || sed 's/^[0-9]*:/ /' $log | tr '\n' ' ')" \
            "one again: ctest --preset release -R NAME --output-on-failure"
    fi
    say "all tests pass"
}

record_demo() {
    local part=demo/.recording.stagewright name
    mkdir -p demo
    rm -f $part $part-wal $part-shm $part-lock
    say "training under four schedules: 4 ranks, 8 microbatches, 8 measured steps and one of warm-up each"
    $program record --schedule gpipe,1f1b,interleaved-1f1b,zb-h1 --ranks 4 --microbatches 8 --steps 8 --warmup 1 \
        --log-level warning -o $part || die "recording failed" "see the message above"
    mv $part demo/demo.stagewright

    say "1F1B against ZB-H1"
    $program compare demo/demo.stagewright 1f1b zb-h1 --ops 0

    say "writing to demo/"
    rm -f demo/*.json demo/*.png
    for name in gpipe 1f1b interleaved-1f1b zb-h1; do
        $program export demo/demo.stagewright $name --format chrome -o demo/$name.json
    done
    if [ -x $window ]; then
        take_picture demo/zb-h1-light.png --theme light --run zb-h1
        take_picture demo/zb-h1-dark.png --theme dark --run zb-h1
        take_picture demo/compare.png --theme light --compare 1f1b zb-h1
    else
        printf 'no pictures: the window was not built, Qt 6 is missing\n'
    fi
    printf '\n'
    find demo -maxdepth 1 -type f -printf '%9s  %p\n' | sort -k2
}

take_picture() { # take_picture OUT OPTION…
    local out=$1
    shift
    QT_QPA_PLATFORM=offscreen QT_LOGGING_RULES="*.warning=false" $window demo/demo.stagewright --screenshot "$out" --size 1600x1000 "$@" ||
        die "the window could not be drawn to $out" "see the message above"
}

open_window() {
    [ -x $window ] || return 0
    if [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
        say "no display here; on a computer with one: $window demo/demo.stagewright"
        return 0
    fi
    say "opening the window: $window demo/demo.stagewright"
    setsid "$window" demo/demo.stagewright </dev/null >demo/window.log 2>&1 &
    local pid=$!
    sleep 2
    kill -0 $pid 2>/dev/null || die "the window did not open" "see demo/window.log"
}

say_path() {
    # shellcheck disable=SC2016
    printf '\nto call the programs by name in this shell:\n  export PATH="%s/bin:$PATH"\n' "$PWD/$build"
}

# As the user if the folder, or its nearest existing parent, is writable; else as root.
install_programs() {
    local prefix=$1 at
    [[ $prefix = /* ]] || prefix=$PWD/$prefix
    at=$prefix
    while [ ! -e "$at" ]; do at=$(dirname "$at"); done
    say "installing to $prefix"
    local become=()
    [ -w "$at" ] || become=(as_root)
    "${become[@]}" cmake --install $build --prefix "$prefix" >/dev/null ||
        die "installing to $prefix failed" "see the message above, or choose another folder: ./bootstrap.sh install PREFIX"
    find "$prefix/bin" -maxdepth 1 -name 'stagewright*' -printf '%p\n' | sort
    # shellcheck disable=SC2016
    [[ :$PATH: = *:$prefix/bin:* ]] || printf 'add it to PATH: export PATH="%s/bin:$PATH"\n' "$prefix"
}

main() {
    local verb=${1:-} full=no prefix=
    [ $# -eq 0 ] || shift
    while [ $# -gt 0 ]; do
        case $1 in
        --full) full=yes ;;
        [!-]*)
            if [ "$verb" != install ] || [ -n "$prefix" ]; then usage >&2; die "unknown argument '$1'"; fi
            prefix=$1 ;;
        *) usage >&2; die "unknown option '$1'" ;;
        esac
        shift
    done
    [ $full = no ] || [ "$verb" = test ] || die "--full goes with test" "./bootstrap.sh test --full"
    case $verb in
    build) build_target programs; say "built: $program$([ ! -x $window ] || printf ' and %s' $window)"; say_path ;;
    test)
        build_target all
        build_target benchmarks # no test runs them, but they are to compile
        run_tests $full
        ;;
    run) build_target programs; record_demo; say_path; open_window ;;
    install) build_target programs for_all; install_programs "${prefix:-/usr/local}" ;;
    -h | --help | help) usage ;;
    *) usage >&2; [ -z "$verb" ] || die "there is no '$verb'"; exit 2 ;;
    esac
}

main "$@"
