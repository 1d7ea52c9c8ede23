# Every verb has help on stdout, exit code 0, and names its options; the program lists the verbs of commands.def.
# shellcheck shell=bash
run stagewright --help
expect_code 0
expect_quiet_err
verbs=$(sed -n 's/^STAGEWRIGHT_COMMAND(\(.*\))$/\1/p' "$SOURCE/../../app/cli/commands.def")
expect_that "commands.def names verbs" [ -n "$verbs" ]
for verb in $verbs; do
    run stagewright --help
    expect_out "^  $verb "
    run stagewright "$verb" --help
    expect_code 0
    expect_quiet_err
    expect_out "^Usage: stagewright $verb"
    expect_out '--log-level'
    [ "$verb" = ui ] || expect_out '--json'
done
for verb in diff sweep import plan lesson; do
    run stagewright --help
    expect_no_out "^  $verb "
done
for verb in record check export; do
    run stagewright "$verb" --help
    expect_out '--progress'
    expect_out '--stdin-control'
done
run stagewright --version
expect_code 0
expect_out '^stagewright [0-9]+\.[0-9]+\.[0-9]+$'
# the man page and the page of the docs know every verb
for verb in $verbs; do
    expect_that "the man page has $verb" grep -qE "^\.(B|BR|BI) $verb( |\$)" "$SOURCE/../../app/cli/man/stagewright.1"
    expect_that "docs/cli.md has $verb" grep -q "\`$verb" "$SOURCE/../../docs/cli.md"
done
