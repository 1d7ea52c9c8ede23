# Too few descriptors, files too small, no processes left: every verb that reads or writes runs says so in a sentence and with its code, soon; what was there stays
# whole, and nothing is left beside it. "Soon" is a minute here, on a busy machine: none waits for an end that does not come.
# shellcheck shell=bash
tiny=(--model 'layers=2,hidden=16,heads=2,seq=8,vocab=256' --microbatch-size 1 -s 1f1b -p 2 -m 4 --steps 3)
stagewright record "${tiny[@]}" --clock virtual -o base.stagewright >/dev/null 2>&1
stagewright simulate -s zb-h1 -p 4 -m 64 -o simulated.stagewright >/dev/null 2>&1
stagewright export simulated.stagewright --format kineto -o traces >/dev/null 2>&1
mpi=$(stagewright record "${tiny[@]}" --processes -o probe.stagewright >/dev/null 2>&1 && echo 1 || true)
[ -n "$mpi" ] || echo 'skipped: record --processes, which does not run here'

as=() # runs the program as somebody else

# with LIMIT VALUE WORDS...: the program with `ulimit -LIMIT VALUE`. Its output goes through pipes, for files may be too small for it.
with() {
    local limit=$1 value=$2
    shift 2
    rm -rf out.*
    [ "$1" = record ] || cp base.stagewright out.stagewright
    [ ${#as[@]} = 0 ] || chmod 666 out.stagewright 2>/dev/null || true
    rc=0
    { (exec timeout -s KILL 60 "${as[@]}" bash -c 'ulimit "-$1" "$2" && shift 2 && exec "$@"' limit "$limit" "$value" "$STAGEWRIGHT" "$@") </dev/null 2>&1 >/dev/null | cat >err.txt; rc=${PIPESTATUS[0]}; } || true
    out='' err=$(tr -d '\0' <err.txt)
    last="ulimit -$limit $value; stagewright $*"
    case $rc in
    0) ;;
    3 | 4 | 5) expect_that 'says why' grep -q '^stagewright: ' err.txt ;;
    126 | 127) expect_that 'the loader says why' grep -q 'shared librar' err.txt ;; # before the program began
    *) expect_that "a documented code, not $rc" false ;;
    esac
    expect_that 'nothing is left beside it' [ -z "$(compgen -G 'out.stagewright?*' || true)$(compgen -G 'out.*.part-*' || true)" ]
    [ "$1" = record ] || same_runs
}

# The runs that were there are there, and more if the verb succeeded.
same_runs() {
    local code=$rc call=$last said=$err runs
    local least=1
    [[ $call != *--delete* ]] || least=0 # the run is gone, and the merging failed
    run stagewright runs out.stagewright --verify --json
    runs=$(grep -c '"run":' <<<"$out" || true)
    rc=$code
    expect_that "after $call the file is whole, with $runs runs" [ "$runs" -ge "$least" -a -z "$(grep -v 'every run was read' <<<"$err" || true)" ]
    last=$call err=$said out=''
}

# every LIMIT VALUE: each verb with it
every() {
    with "$1" "$2" record "${tiny[@]}" --clock virtual -o out.stagewright
    [ -z "$mpi" ] || with "$1" "$2" record "${tiny[@]}" --processes -o out.stagewright
    with "$1" "$2" import traces -o out.stagewright
    with "$1" "$2" export simulated.stagewright --format kineto -o out.traces
    with "$1" "$2" export simulated.stagewright --format html -o out.html
    with "$1" "$2" runs out.stagewright
    with "$1" "$2" runs out.stagewright --merge simulated.stagewright
    with "$1" "$2" runs out.stagewright --compact
    with "$1" "$2" runs out.stagewright --delete 1 --merge base.stagewright
}

for files in 4 7 9 12 20 28; do every n $files; done
with n 6 runs out.stagewright --compact
expect_code 4
expect_err 'too many open files; this program may have 6'

# kilobytes
for size in 1 16 100 400; do every f $size; done
with f 16 import traces -o out.stagewright
expect_code 5
expect_err 'it may not become larger'
expect_err 'ulimit -f unlimited'
with f 16 export simulated.stagewright --format kineto -o out.traces
expect_code 5
expect_err 'it may not become larger'
with f 16 runs out.stagewright --merge simulated.stagewright
expect_code 5
expect_err 'it may not become larger'
if [ -n "$mpi" ]; then
    with f 64 record "${tiny[@]}" --processes -o out.stagewright
    expect_code 4
    expect_err 'files may have 64.0 KiB here'
    expect_err 'ulimit -f unlimited'
fi

# of processes and threads, of which root may have any number: as nobody
here=$PWD counts=''
if [ "$(id -u)" != 0 ]; then
    counts='1 3'
elif command -v setpriv >/dev/null && theirs=$(mktemp -d) && chmod 777 "$theirs" && setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$STAGEWRIGHT"; then
    as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    cp -r base.stagewright simulated.stagewright traces "$theirs"
    chmod -R a+rX "$theirs"
    cd "$theirs" || exit 1
    counts='1 2 4 12'
fi
for processes in $counts; do every u $processes; done
if [ ${#as[@]} != 0 ]; then
    with u 1 record "${tiny[@]}" --clock virtual -o out.stagewright
    expect_code 5
    expect_err 'the system refuses more threads or memory'
fi
cd "$here" || exit 1
[ -z "${theirs:-}" ] || rm -rf "$theirs"
