# Limits of address space, processes and descriptors: every verb ends by itself, soon, with a documented code, and leaves no lock.
# shellcheck shell=bash
tiny=(--model 'layers=4,hidden=32,heads=2,seq=16' --microbatch-size 1 -s 1f1b -p 4 -m 4 --products openblas)

as=() # runs the program as somebody else

# under LIMIT VALUE WORDS...: the program with `ulimit -LIMIT VALUE`; ends by itself (timeout gives 137), with a documented code and a reason
under() {
    local limit=$1 value=$2
    shift 2
    rm -f limited.stagewright*
    rc=0
    (exec timeout -s KILL 60 "${as[@]}" bash -c 'ulimit "-$1" "$2" && shift 2 && exec "$@"' limit "$limit" "$value" "$STAGEWRIGHT" "$@") </dev/null >out.txt 2>err.txt || rc=$?
    out=$(cat out.txt)
    err=$(cat err.txt)
    last="ulimit -$limit $value; stagewright $*"
    case $rc in
    0) ;;
    1 | 3 | 4 | 5) expect_that 'says why' grep -q '^stagewright: ' err.txt ;;
    126 | 127) expect_that 'the loader says why' grep -q 'shared librar' err.txt ;; # before the program began
    *) expect_that "a documented code, not $rc: $(head -c 300 err.txt)" false ;;
    esac
    expect_that 'no OpenBLAS speaks' [ "$(grep -ci 'openblas.*\(init\|malloc\|warning\)' err.txt)" = 0 ]
    expect_that 'no number of an error' [ "$rc" = 127 -o "$(grep -c 'Error [0-9]' err.txt)" = 0 ]
    expect_that 'no 0.0 of a unit' [ "$(grep -c '[^0-9.]0\.0 [KMG]iB' err.txt)" = 0 ]
}

# kilobytes of address space
spaces='60000 100000 150000 200000 219000 300000 400000 600000 800000'
[ -z "${LONG:-}" ] || spaces="$(seq 40000 13000 300000) $(seq 300000 60000 1200000)"
for space in $spaces; do
    under v "$space" record "${tiny[@]}" --steps 2 --clock virtual -o limited.stagewright
    [ "$(grep -c 'OpenBLAS' err.txt)" = 0 ] || expect_err "[0-9]+ MiB of address space.*; less is free: the limit is $((space / 1024)) MiB \(ulimit -v $space\)"
done
for space in 60000 120000 250000; do
    under v "$space" simulate -s zb-h1 -p 8 -m 64 -o limited.stagewright
    under v "$space" check "${tiny[@]}"
done
for files in 4 6 8 9 10 11 12 20; do
    under n "$files" record "${tiny[@]}" --steps 2 --clock virtual -o limited.stagewright
    expect_that 'nobody else wrote to it' [ "$(grep -c 'another program' err.txt)" = 0 ]
    [ "$files" -gt 8 ] || [ $rc = 127 ] || expect_err "too many open files; this program may have $files"
    expect_that 'no empty file is left' [ ! -e limited.stagewright -o -s limited.stagewright ]
    under n "$files" simulate -s 1f1b -p 2 -m 4 -o limited.stagewright
    expect_that 'nothing is left beside it' [ -z "$(compgen -G 'limited.stagewright?*')" ]
done

# a text to train on has a limit, so a device that never ends is refused
under v 4000000 record "${tiny[@]}" --steps 2 --data /dev/zero -o limited.stagewright
expect_code 3
expect_err 'more than 256 MiB of training text'

# of processes and threads, of which root may have any number: as nobody
here=$PWD
if [ "$(id -u)" != 0 ]; then
    counts='1 100000'
elif command -v setpriv >/dev/null && theirs=$(mktemp -d) && chmod 777 "$theirs" && setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$STAGEWRIGHT"; then
    as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    cd "$theirs" || exit 1
    counts='1 2 3 4 6 8 100'
else
    counts=''
fi
for processes in $counts; do
    under u "$processes" record "${tiny[@]}" --steps 2 --clock virtual -o limited.stagewright
done
[ -z "$counts" ] || expect_code 0
cd "$here" || exit 1
as=()
[ -z "${theirs:-}" ] || rm -rf "$theirs"

# a recording that has begun with little room ends at the first TERM
for space in 219000 700000 1000000; do
    rm -f limited.stagewright* err.txt
    (ulimit -v "$space" && exec "$STAGEWRIGHT" record "${tiny[@]}" --steps 1000000 --clock virtual --progress jsonl -o limited.stagewright) </dev/null >out.txt 2>err.txt &
    pid=$!
    for ((i = 0; i < 100; ++i)); do
        if grep -q '"event":"\(progress\|error\)"' err.txt 2>/dev/null || ! kill -0 $pid 2>/dev/null; then break; fi
        sleep 0.05
    done
    kill -TERM $pid 2>/dev/null || true
    rc=0
    wait $pid || rc=$?
    err=$(cat err.txt)
    last="ulimit -v $space, record, then TERM"
    expect_that "a documented code, not $rc" [ $rc = 130 -o $rc = 4 -o $rc = 5 ]
done
