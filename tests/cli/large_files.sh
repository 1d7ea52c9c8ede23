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
