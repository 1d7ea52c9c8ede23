# bootstrap.sh refuses what it does not know, and its text is clean where shellcheck is there to say so.
# shellcheck shell=bash
root=$SOURCE/../..
run bash "$root/bootstrap.sh"
expect_code 2
expect_err 'bootstrap.sh run'
run bash "$root/bootstrap.sh" dance
expect_code 1
expect_err "there is no 'dance'"
run bash "$root/bootstrap.sh" build --full
expect_code 1
run bash "$root/bootstrap.sh" build somewhere
expect_code 1
expect_err "unknown argument 'somewhere'"
run bash "$root/bootstrap.sh" install one two
expect_code 1
expect_err "unknown argument 'two'"
run bash "$root/bootstrap.sh" --help
expect_code 0
expect_out 'bootstrap.sh test'
expect_out 'bootstrap.sh install \[PREFIX\]'
run bash -n "$root/bootstrap.sh"
expect_code 0
if command -v shellcheck >/dev/null; then
    run shellcheck -x "$root/bootstrap.sh" "$root/app/cli/completion/stagewright.bash"
    expect_code 0
fi
