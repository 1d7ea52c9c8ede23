# Files with more than memory could hold, and texts that a terminal obeys: lists, searches, rows and comparisons take a bounded part of it.
# shellcheck shell=bash
command -v python3 >/dev/null || { echo 'skipped: the files are made by a Python program'; exit 77; }
stagewright record --model 'layers=2,hidden=16,heads=2,seq=8,vocab=256' --microbatch-size 1 -s 1f1b -p 2 -m 4 --steps 3 --clock virtual -o base.stagewright >/dev/null 2>&1

# most MIB WORDS...: the program, which may have so much memory at most; code in $rc
most() {
    local limit=$1
    shift
    rc=0
    python3 -c 'import resource, subprocess, sys
out, err = open("out.txt", "wb"), open("err.txt", "wb")
code = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=out, stderr=err).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
sys.exit(code if code >= 0 else 128 - code)' "$STAGEWRIGHT" "$@" >memory.txt || rc=$?
    out='' err=$(head -c 4000 err.txt) # the output may be long
    last="stagewright $*"
    expect_that "at most $limit MiB, not $(cat memory.txt)" [ "$(cat memory.txt)" -le "$limit" ]
}

# many runs: kept in memory they would be 100 MB and more
runs=50000
python3 -c 'import shutil, sqlite3, sys
shutil.copy("base.stagewright", "many.stagewright")
c = sqlite3.connect("many.stagewright")
row = list(c.execute("select * from run").fetchone())
row[18] = row[19] = row[20] = None
c.executemany("insert into run values(%s)" % ",".join("?" * 21), ([i + 2, "run %d" % i] + row[2:] for i in range(int(sys.argv[1]))))
c.commit()' $runs
most 60 runs many.stagewright
expect_code 0
expect_same "$(wc -l <out.txt)" $((runs + 2))
expect_same "$(awk '{ print (length($0) > 400) }' out.txt | sort -u)" 0
most 60 runs many.stagewright --json
expect_code 0
expect_same "$(python3 -c 'import json; runs = json.load(open("out.txt"))["runs"]; print(len(runs), runs[-1]["run"], runs[-1]["name"], sorted(runs[0]) == sorted(runs[-1]))')" "$((runs + 1)) $((runs + 1)) run $((runs - 1)) True"
for verb in report 'export -o out.csv'; do
    # shellcheck disable=SC2086
    most 60 $verb many.stagewright nosuch
    expect_code 2
    expect_err "and $((runs + 1 - 20)) more\$"
    expect_that 'a short message' [ "$(wc -c <err.txt)" -lt 1000 ]
done
most 60 report many.stagewright 1 --json
expect_code 0

# rows of a megabyte: 256 MiB of them
for how in '' --json --csv; do
    # shellcheck disable=SC2086
    most 420 sql base.stagewright 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<5000) SELECT i, hex(zeroblob(500000)) AS x FROM n' $how
    expect_code 0
    expect_err 'stopped after [0-9]+ rows, which have more than 256 MiB'
done
most 420 sql base.stagewright "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<5000000) SELECT i, i, i, i FROM n" --max-rows 100000000 --csv
expect_code 0
expect_err 'more than 256 MiB'
run stagewright sql base.stagewright 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n' --time-limit 0.2
expect_code 5
expect_err 'the query was ended: it had computed for 0.2 s'
expect_err 'sql --time-limit'
run stagewright sql base.stagewright 'SELECT 1' --time-limit 0
expect_code 2

# a row for each of 65,536 ranks of which nearly all are empty: seconds of the processor
cp base.stagewright ranks.stagewright
stagewright runs ranks.stagewright --merge base.stagewright >/dev/null 2>&1
python3 -c 'import sqlite3; c = sqlite3.connect("ranks.stagewright"); c.execute("update run set ranks=65536"); c.commit()'
for how in '' --json; do
    rc=0
    # shellcheck disable=SC2086
    (ulimit -t 15 && exec "$STAGEWRIGHT" compare 'ranks.stagewright#1' 'ranks.stagewright#2' $how) </dev/null >out.txt 2>err.txt || rc=$?
    last="compare 65,536 ranks $how"
    expect_code 0
done

# marks that turn text around, and others that a terminal obeys: names and notes have them escaped in JSON
python3 -c 'import sqlite3
c = sqlite3.connect("base.stagewright")
c.execute("update run set name=?, note=?", ("a\u202eb\u2066c\u200fd\u061ce\u2028f\x9bg\x7fh\x1bi", "\u202a\u2069\u200e"))
c.commit()'
for verb in runs report 'sql' notes; do
    case $verb in
    sql) run stagewright sql base.stagewright 'SELECT name, note FROM run' --json ;;
    notes) run stagewright runs base.stagewright --note 1 $'x\u202ey' --json ;;
    *) run stagewright $verb base.stagewright --json ;;
    esac
    expect_code 0
    expect_that "$verb --json has no such mark" python3 -c 'import json, sys, unicodedata
text = open("out.txt", encoding="utf-8").read()
json.loads(text)
sys.exit(any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c != "\n" for c in text))'
    [ $verb = notes ] || expect_that "$verb --json has the name" grep -q 'a\\u202eb\\u2066c\\u200fd\\u061ce\\u2028f' out.txt
done
