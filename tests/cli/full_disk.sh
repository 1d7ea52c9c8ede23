# A disk that fills up at any moment, of any verb that writes: the code is 5, the file alone opens with every step that was announced and every run that was
# there, an export is there as a whole or as it was, and nothing stays beside them. The disk is a tmpfs of so many KB in a mount namespace of its own.
# MOMENTS: how many for each verb; SEED chooses them.
# shellcheck shell=bash

if [ -z "${FULL_DISK_INSIDE:-}" ]; then
    export FULL_DISK_INSIDE=1
    space=(unshare -m)
    [ "$(id -u)" = 0 ] || space=(unshare -rm)
    if ! "${space[@]}" bash -c 'mount -t tmpfs -o size=100k tmpfs "$1"' mount "$PWD" 2>/dev/null; then
        echo 'skipped: no disk of a given size can be mounted here'
        exit 77
    fi
    exec "${space[@]}" bash "$SOURCE/run_test.bash" full_disk
fi

moments=${MOMENTS:-4}
seed=${SEED:-20261127}
RANDOM=$((seed % 32768))
disk=$PWD/disk
mkdir disk alone
mount -t tmpfs -o size=64m tmpfs "$disk"
tiny=(--model 'layers=2,hidden=16,heads=2,seq=8,vocab=256' --microbatch-size 1 -s 1f1b -p 2 -m 4)

used() { df -k --output=used "$disk" | tail -n 1; }

# room_for KB: the disk keeps what is on it and has so many KB more
room_for() {
    local size=$(($(used) + $1))
    mount -o "remount,size=$((size > 0 ? size : 1))k" "$disk" # 0 is any size
}

# an empty disk with copies of FILE...
disk_with() {
    mount -o remount,size=64m "$disk"
    find "$disk" -mindepth 1 -delete
    [ $# = 0 ] || cp "$@" "$disk"
}

# from 0 to MOST: the first ones are as often near 0 as near MOST
some_up_to() {
    local most=$1
    [ $((RANDOM % 3)) = 0 ] && most=$(($1 / 8 + 8))
    room=$(((RANDOM * 32768 + RANDOM) % (most + 1)))
}

# What is on the disk, and nothing else.
expect_only() {
    local found wanted=''
    found=$(find "$disk" -mindepth 1 -printf '%P\n' | sort)
    [ $# = 0 ] || wanted=$(printf '%s\n' "$@" | sort)
    expect_that "with $room KB of room only '$wanted' is on the disk, not: $found" [ "$found" = "$wanted" ]
}

# The copy of a file that is on the disk, read without what is beside it; its runs as "number steps state" in $there.
open_alone() {
    local code=$rc call="$last"
    rm -f alone/*
    cp "$disk/$1" alone/
    run stagewright runs "alone/$1" --verify --json
    [ $rc = 0 ] || complain "with $room KB of room $call (code $code) left a file that is not whole alone"
    expect_that "with $room KB of room after $call nothing is missing" [ -z "$(grep -v 'every run was read completely' <<<"$err" || true)" ]
    there=$(sed -nE 's/^ *"(run|steps|state)": "?([^",]*)"?,?$/\1 \2/p' out.txt | awk '$1 == "run" { n = $2 } $1 == "state" { s = $2 } $1 == "steps" { print n, $2, s }')
    rc=$code
    last=$call
}

# 0 where there was room, else 5
expect_room_or_full() {
    checks=$((checks + 1))
    [ "$rc" = 0 ] || [ "$rc" = 5 ] || complain "with $room KB of room the code should be 0 or 5"
    [ "$rc" = 0 ] || expect_that "with $room KB of room the reason is given" grep -Eq 'disk is full|No space left' err.txt
    filled=$((filled + (rc == 5)))
}

# Steps that were announced, by run: "number steps".
announced() { sed -nE 's/.*"event":"progress","what":"step",.*"run":([0-9]+),.*"step_number":([0-9]+),.*/\1 \2/p' err.txt | sort -n | awk '{ if (!($1 in most) || $2 > most[$1]) most[$1] = $2 } END { for (run in most) print run, most[run] }'; }

# recorded WHAT BEFORE WORDS...: BEFORE are the runs that were there
recorded() {
    local before=$1 run steps line
    shift
    run stagewright record "${tiny[@]}" --progress jsonl -o "$disk/r.stagewright" "$@"
    expect_room_or_full
    if [ ! -e "$disk/r.stagewright" ]; then
        expect_only # not even an empty file
        expect_that "with $room KB of room no step was announced" [ "$(announced | awk '$2 > 1' | wc -l)" = 0 -a -z "$before" ]
        return
    fi
    expect_only r.stagewright
    local said
    said=$(announced)
    open_alone r.stagewright
    [ -z "$before" ] || expect_that "with $room KB of room the runs before are as they were" [ "$(head -n "$(wc -l <<<"$before")" <<<"$there")" = "$before" ]
    while read -r run steps; do
        [ -n "$run" ] && [ "$steps" -gt 1 ] || continue # a warm-up alone is not kept
        line=$(awk -v run="$run" '$1 == run' <<<"$there")
        expect_that "with $room KB of room run $run has $steps steps, not: $line" [ "$(cut -d ' ' -f 2 <<<"$line")" -ge "$steps" ]
        [ $rc = 5 ] || expect_that "run $run is complete: $line" [ "${line##* }" = complete ]
    done <<<"$said"
    expect_that "nothing is being recorded" [ "$(grep -c recording <<<"$there" || true)" = 0 ]
}

# changed FILE WORDS...: a verb that changes FILE, which keeps the runs $before unless it succeeds; then it has $after
changed() {
    local file=$1
    shift
    run stagewright "$@"
    expect_room_or_full
    [ $rc = 0 ] || expect_err "${needs:-}"
    # shellcheck disable=SC2086
    expect_only $beside "$file"
    open_alone "$file"
    if [ $rc = 0 ]; then expect_same "$there" "$after"; else expect_that "with $room KB of room the runs are '$before', not '$there'" [ "$there" = "$before" -o "$there" = "${between:-$before}" ]; fi
}

# ---- what is changed
stagewright record "${tiny[@]}" --clock virtual --steps 20 -o old.stagewright >/dev/null 2>&1
stagewright record "${tiny[@]}" --clock virtual --steps 300 -o long.stagewright >/dev/null 2>&1
stagewright simulate -s zb-h1 -p 4 -m 64 -o simulated.stagewright >/dev/null 2>&1
cp long.stagewright several.stagewright
for each in old simulated long; do stagewright runs several.stagewright --merge $each.stagewright >/dev/null 2>&1; done
stagewright export simulated.stagewright --format kineto -o traces >/dev/null 2>&1
# a recording that was killed, with its log
"$STAGEWRIGHT" record "${tiny[@]}" --clock virtual --steps 1000000 --progress jsonl -o killed.stagewright </dev/null >/dev/null 2>progress.txt &
pid=$!
touch progress.txt
for ((i = 0; i < 600; ++i)); do
    if [ "$(grep -cs '"event":"progress"' progress.txt || true)" -ge 400 ]; then break; fi
    sleep 0.05
done
kill -KILL $pid
wait $pid 2>/dev/null || true

# runs_of FILE: as open_alone gives them
runs_of() {
    disk_with "$1"
    room=0 last="cp $1"
    rc=0
    open_alone "$1"
    printf '%s' "$there"
}
old=$(runs_of old.stagewright)
several=$(runs_of several.stagewright)
simulated=$(runs_of simulated.stagewright)
expect_same "$(wc -l <<<"$several")" 4

# ---- record
filled=0
for ((moment = 0; moment < 2 * moments; ++moment)); do
    steps=$(((RANDOM % 20 + 1) * (moment % 3 == 0 ? 20 : 200)))
    clock=$([ $((moment % 4)) = 3 ] && echo wall || echo virtual)
    if [ $((moment % 2)) = 0 ]; then disk_with; else disk_with old.stagewright && mv "$disk/old.stagewright" "$disk/r.stagewright"; fi
    some_up_to 1500
    room_for $room
    if [ $((moment % 2)) = 0 ]; then recorded '' --clock $clock --steps $steps; else recorded "$old" --clock $clock --steps $steps; fi
done
expect_that "the disk was full while recording" [ $filled -gt 0 ]
echo "record: full at $filled of $((2 * moments)) moments"

# ---- record --processes
if "$STAGEWRIGHT" record "${tiny[@]}" --processes --steps 1 -o probe.stagewright >/dev/null 2>probe.txt; then
    filled=0
    for ((moment = 0; moment < (moments + 1) / 2; ++moment)); do
        disk_with
        some_up_to 1200
        room_for $room
        recorded '' --processes --steps 4000
    done
    echo "record --processes: full at $filled of $(((moments + 1) / 2)) moments"
else
    echo "skipped: record --processes ($(head -n 1 probe.txt))"
fi

# ---- import, into a new file and into an old one
filled=0
for ((moment = 0; moment < 2 * moments; ++moment)); do
    disk_with
    some_up_to 900
    if [ $((moment % 2)) = 0 ]; then
        room_for $room
        run stagewright import traces -o "$disk/r.stagewright"
        expect_room_or_full
        if [ $rc = 0 ]; then
            expect_only r.stagewright
            open_alone r.stagewright
            expect_same "$(wc -l <<<"$there")" 1
        else
            expect_only
        fi
    else
        disk_with several.stagewright
        room_for $room
        before=$several after="$several
5 1 complete" beside=''
        changed several.stagewright import traces -o "$disk/several.stagewright"
    fi
done
expect_that "the disk was full while importing" [ $filled -gt 0 ]
echo "import: full at $filled of $((2 * moments)) moments"

# ---- export, of every format, over an old file and where there is none
filled=0
export QT_QPA_PLATFORM=offscreen
mkdir whole
formats=()
for format in perfetto chrome kineto csv torchtitan spans html svg; do
    run stagewright export simulated.stagewright --format $format -o whole/$format
    if [ $rc = 0 ]; then formats+=("$format"); else echo "skipped: export as $format ($err)"; fi
done
for ((moment = 0; moment < 2 * moments; ++moment)); do
    format=${formats[moment % ${#formats[@]}]}
    disk_with
    size=$(du -sk "whole/$format" | cut -f 1)
    some_up_to $((size + 8))
    old_there=$([ -d "whole/$format" ] || echo $((moment % 2)))
    [ "${old_there:-0}" = 0 ] || echo old >"$disk/$format"
    room_for $room
    run stagewright export simulated.stagewright --format "$format" -o "$disk/$format"
    expect_room_or_full
    if [ $rc = 0 ]; then
        expect_that "the export as $format is whole" diff -r "whole/$format" "$disk/$format"
    elif [ "${old_there:-0}" = 1 ]; then
        expect_only "$format"
        expect_same "$(cat "$disk/$format")" old
    else
        expect_only
    fi
done
expect_that "the disk was full while exporting" [ $filled -gt 0 ]
echo "export: full at $filled of $((2 * moments)) moments (${formats[*]})"

# ---- runs --compact, of a file with room to give back and of a killed recording
filled=0
cp several.stagewright holes.stagewright
stagewright runs holes.stagewright --delete 1 >/dev/null 2>&1
holes=$(runs_of holes.stagewright)
cp killed.stagewright settled.stagewright
cp killed.stagewright-wal settled.stagewright-wal
killed=$(stagewright runs settled.stagewright --json 2>/dev/null | sed -nE 's/^ *"steps": ([0-9]+),/\1/p')
for ((moment = 0; moment < 2 * moments; ++moment)); do
    beside=''
    if [ $((moment % 2)) = 0 ]; then
        disk_with holes.stagewright
        some_up_to 2400
        room_for $room
        before=$holes after=$holes needs='compacting needs about [0-9]+ MB of free space'
        changed holes.stagewright runs "$disk/holes.stagewright" --compact
        needs=''
    else
        disk_with killed.stagewright killed.stagewright-wal
        some_up_to 1500
        room_for $room
        run stagewright runs "$disk/killed.stagewright" --compact
        expect_room_or_full
        mount -o remount,size=64m "$disk"
        if [ $rc = 0 ]; then
            expect_only killed.stagewright
            open_alone killed.stagewright
            expect_same "$there" "1 $killed interrupted"
        else # the log that it was killed with may stay: then both are read
            code=$rc
            run stagewright runs "$disk/killed.stagewright" --json
            expect_that "with $room KB of room (code $code) the killed recording has $killed steps" grep -q "\"steps\": $killed," out.txt
            expect_that "with $room KB of room only the recording and its log are there" [ -z "$(find "$disk" -mindepth 1 ! -name killed.stagewright ! -name killed.stagewright-wal ! -name killed.stagewright-shm)" ]
        fi
    fi
done
expect_that "the disk was full while compacting" [ $filled -gt 0 ]
echo "runs --compact: full at $filled of $((2 * moments)) moments"

# ---- runs --merge
filled=0
for ((moment = 0; moment < 2 * moments; ++moment)); do
    other=$([ $((moment % 2)) = 0 ] && echo "$PWD/several.stagewright" || echo "$disk/several.stagewright")
    if [ $((moment % 2)) = 0 ]; then disk_with old.stagewright && beside=''; else disk_with old.stagewright several.stagewright && beside=several.stagewright; fi
    some_up_to 2400
    room_for $room
    before=$old
    after="$old
$(awk '{ print $1 + 1, $2, $3 }' <<<"$several")"
    changed old.stagewright runs "$disk/old.stagewright" --merge "$other"
    [ -z "$beside" ] || expect_that "the other file is as it was" cmp "$disk/several.stagewright" several.stagewright
done
expect_that "the disk was full while merging" [ $filled -gt 0 ]
echo "runs --merge: full at $filled of $((2 * moments)) moments"

# ---- runs --delete
filled=0
for ((moment = 0; moment < moments; ++moment)); do
    disk_with several.stagewright
    some_up_to 900
    room_for $room
    needs='deleting needs at most [0-9]+ MB of free space'
    beside='' before=$several after=$(sed -n '2p;4p' <<<"$several")
    between=$(sed -n '2,4p' <<<"$several")
    changed several.stagewright runs "$disk/several.stagewright" --delete 1 --delete 3
    between=''
done
echo "runs --delete: full at $filled of $moments moments"
umount "$disk"
