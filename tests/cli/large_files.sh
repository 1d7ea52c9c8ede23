# Files of a hundred megabytes and more: read in parts, with 512 MiB; a bad cell is quoted in part.
# shellcheck shell=bash

# with512 WORDS...: with an address space of 512 MiB and what the program and its libraries take
with512() {
    rc=0
    (ulimit -v $(((512 + 220) * 1024)) && exec timeout -s KILL 100 "$STAGEWRIGHT" "$@") </dev/null >out.txt 2>err.txt || rc=$?
    out=$(cat out.txt)
    err=$(cat err.txt)
    last="512 MiB; stagewright $*"
}

# 1,000 ranks of 10,000 ops, with text for a last cell
row=$(printf '%sF%s,' $(for ((i = 0; i < 500; ++i)); do echo 1023 "$((1000000 + i))"; done))
for ((i = 0; i < 20; ++i)); do printf '%s' "$row"; done | sed 's/,$//' >row.csv
printf '\n' >>row.csv
for ((i = 0; i < 850; ++i)); do cat row.csv; done >bad.csv
printf '0F0,%0300d\n' 7 >>bad.csv
expect_that 'a large file' [ "$(stat -c %s bad.csv)" -gt 100000000 ]
with512 validate bad.csv
expect_code 3
expect_err 'line 851, cell 2 \(0{80}…\): '
expect_that 'a short message' [ ${#err} -lt 600 ]

# one cell of 100 MB, of digits
head -c 100000000 /dev/zero | tr '\0' '7' >cell.csv
with512 validate cell.csv
expect_code 3
expect_err 'line 1, cell 1 \(7{80}…\): a cell of more than 1048576 bytes'

# compressed by a thousand: nothing of it is kept
(printf '0F0,0B0'; head -c 400000000 /dev/zero | tr '\0' ','; printf '\n') | gzip -1 >blank.csv.gz
expect_that 'a small file' [ "$(stat -c %s blank.csv.gz)" -lt 3000000 ]
with512 import blank.csv.gz -o blank.stagewright
expect_code 0
rm -f bad.csv cell.csv blank.csv.gz

# unpacked MB WORDS...: the program, which writes at most so many MB to TMPDIR meanwhile, and leaves nothing there
unpacked() {
    local limit=$1 pid bytes most=0
    shift
    mkdir -p unpacked
    (ulimit -v $(((512 + 220) * 1024)) && TMPDIR=$PWD/unpacked exec timeout -s KILL 100 "$STAGEWRIGHT" "$@") </dev/null >out.txt 2>err.txt &
    pid=$!
    while kill -0 $pid 2>/dev/null; do
        bytes=$(find unpacked -type f -printf '%s\n' 2>/dev/null | awk '{ sum += $1 } END { print sum + 0 }')
        most=$((bytes > most ? bytes : most))
        sleep 0.01
    done
    rc=0
    wait $pid || rc=$?
    out=$(cat out.txt)
    err=$(cat err.txt)
    last="TMPDIR=unpacked stagewright $*"
    expect_that "at most $limit MB of temporary files, not $most bytes" [ $most -le $((limit * 1000000)) ]
    expect_that 'nothing is left' [ -z "$(ls unpacked)" ]
}

# what unpacks to 100 MB or less takes no room on the disk: traces in an archive, and a compressed database, which is refused
mkdir job
{
    printf '{"traceEvents":['
    seq -f '{"ph":"X","cat":"kernel","name":"kernel","pid":0,"tid":7,"ts":%.0f,"dur":1,"args":{"stream":7}},' 0 2 1899998
    printf '{"ph":"X","cat":"kernel","name":"last","pid":0,"tid":7,"ts":1900000,"dur":1,"args":{"stream":7}}]}\n'
} >job/rank0.json
bytes=$(stat -c %s job/rank0.json)
expect_that "nearly 100 MB, not $bytes" [ "$bytes" -gt 90000000 -a "$bytes" -lt 100000000 ]
tar -czf job.tar.gz job
rm -r job
expect_that 'at most 10 MB' [ "$(stat -c %s job.tar.gz)" -le 10000000 ]
unpacked 0 import job.tar.gz -o job.stagewright
if grep -q 'no libarchive' <<<"$err"; then
    echo "skipped: an archive of 100 MB, for this build has no libarchive"
else
    expect_code 0
    run stagewright runs job.stagewright --json
    expect_json 950001 runs 0 spans
fi
rm -f job.*
(printf 'SQLite format 3\0'; head -c 81000000 /dev/zero) | gzip >zeros.sqlite.gz
unpacked 0 import zeros.sqlite.gz -o zeros.stagewright
expect_code 3
expect_err 'zeros.sqlite.gz'
expect_no_file zeros.stagewright

# more than that is a file
(printf 'SQLite format 3\0'; head -c 130000000 /dev/zero) | gzip >zeros.sqlite.gz
unpacked 131 import zeros.sqlite.gz -o zeros.stagewright
expect_code 3
rm -f zeros.sqlite.gz
