# What the scripts share. run COMMAND… keeps stdout in $out, stderr in $err and the exit code in $rc.
# A failed expectation is printed and counted; the script continues, and finish() fails at its end.
# shellcheck shell=bash
export LC_ALL=C.UTF-8
failures=0
checks=0
out='' err='' rc=0

stagewright() { "$STAGEWRIGHT" "$@"; }

run() {
    rc=0
    "$@" >out.txt 2>err.txt </dev/null || rc=$?
    out=$(tr -d '\0' <out.txt)
    err=$(tr -d '\0' <err.txt)
    last="$*"
}

complain() {
    failures=$((failures + 1))
    printf 'FAIL (%s line %s): %s\n  command: %s\n  exit code %s\n  stdout: %.1500s\n  stderr: %.1500s\n' \
        "${BASH_SOURCE[2]##*/}" "${BASH_LINENO[1]}" "$1" "$last" "$rc" "$out" "$err"
}

expect_code() { checks=$((checks + 1)); [ "$rc" = "$1" ] || complain "exit code $1 expected"; }
expect_out() { checks=$((checks + 1)); grep -qE -- "$1" <<<"$out" || complain "stdout should match: $1"; }
expect_err() { checks=$((checks + 1)); grep -qE -- "$1" <<<"$err" || complain "stderr should match: $1"; }
expect_no_out() { checks=$((checks + 1)); ! grep -qE -- "$1" <<<"$out" || complain "stdout should not match: $1"; }
expect_quiet_err() { checks=$((checks + 1)); [ -z "$err" ] || complain "stderr should be empty"; }
expect_same() { checks=$((checks + 1)); [ "$1" = "$2" ] || complain "'$1' should be '$2'"; }
expect_file() { checks=$((checks + 1)); [ -s "$1" ] || complain "file $1 should be there"; }
expect_no_file() { checks=$((checks + 1)); [ ! -e "$1" ] || complain "file $1 should not be there"; }
# expect_that DESCRIPTION COMMAND…
expect_that() { local what=$1; shift; checks=$((checks + 1)); "$@" || complain "$what"; }

# json KEY…: the value at that path of the object in out.txt; "" and a complaint if stdout is not one JSON object.
json() { json_of out.txt "$@"; }
json_of() {
    local file=$1 path=''
    shift
    path=$(IFS=';'; printf '%s' "$*")
    "$CMAKE" -DFILE="$file" -DKEYS="$path" -P "$SOURCE/json.cmake" 2>&1
}
expect_json() { # expect_json VALUE KEY…
    local value=$1 found
    shift
    checks=$((checks + 1))
    found=$(json "$@") || found="no value: $found"
    [ "$found" = "$value" ] || complain "JSON $(IFS=.; printf '%s' "$*") should be '$value', is '$found'"
}
# expect_keys PATH KEY…: the object at PATH ("." the whole) holds every key, null or not.
expect_keys() {
    local path=$1 key
    shift
    for key in "$@"; do
        checks=$((checks + 1))
        if [ "$path" = . ]; then json "$key" >/dev/null || complain "JSON key $key is absent"
        else json "$path" "$key" >/dev/null || complain "JSON key $path.$key is absent"; fi
    done
}
number_between() { awk -v x="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(x >= a && x <= b) }'; }

finish() {
    printf '%s checks, %s failed\n' "$checks" "$failures"
    [ "$checks" -gt 0 ] && [ "$failures" = 0 ]
}
