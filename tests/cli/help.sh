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
    [ "$verb" = ui ] || [ "$verb" = mcp ] || expect_out '--json'
done
for verb in record check export import sweep explore plan; do
    run stagewright "$verb" --help
    expect_out '--progress'
    expect_out '--stdin-control'
done
run stagewright --version
expect_code 0
expect_out '^stagewright [0-9]+\.[0-9]+\.[0-9]+( \([0-9a-f]{9,}(-dirty)?\))?$'
# what an option does starts in one column, also behind an ellipsis, which is one character of three bytes
for verb in $verbs; do
    starts=$("$STAGEWRIGHT" "$verb" --help | sed -n '/^Options:/,/^$/p' | sed 's/…/./g' | grep -oE '^  -.* {2,}[^ ]' | awk '{ print length }' | sort -u)
    expect_that "$verb has one column of descriptions" [ "$(grep -c . <<<"$starts")" = 1 ]
done
# the man page and the page of the docs know every verb
for verb in $verbs; do
    expect_that "the man page has $verb" grep -qE "^\.(B|BR|BI) $verb( |\$)" "$SOURCE/../../app/cli/man/stagewright.1"
    expect_that "docs/cli.md has $verb" grep -q "\`$verb" "$SOURCE/../../docs/cli.md"
done
# and what import reads, as its help says
reads=$("$STAGEWRIGHT" import --help | sed -n 's/^Reads \(.*\)\.$/\1/p')
expect_that "import says what it reads" [ -n "$reads" ]
expect_that "the man page has all that import reads: $reads" grep -qF "$reads" "$SOURCE/../../app/cli/man/stagewright.1"
# every long option that a verb's help names is in the man page and offered by the completion
# shellcheck disable=SC1091
source "$SOURCE/../../app/cli/completion/stagewright.bash"
for verb in $verbs; do
    options=$("$STAGEWRIGHT" "$verb" --help | sed -n '/^Options:/,/^$/p' | grep -oE -- '(^|[ ,])--[a-z][a-z-]*' | tr -d ' ,' | sort -u)
    expect_that "$verb has options" [ -n "$options" ]
    COMP_WORDS=("$STAGEWRIGHT" "$verb" --) COMP_CWORD=2 COMPREPLY=()
    _stagewright
    offered=$(printf '%s\n' "${COMPREPLY[@]}")
    for option in $options; do
        expect_that "the completion of $verb offers $option" grep -qxF -- "$option" <<<"$offered"
        [ "$option" = --help ] || expect_that "the man page has $option of $verb" \
            grep -qE -- "${option//-/\\\\-}([^a-z\\-]|$)" "$SOURCE/../../app/cli/man/stagewright.1"
    done
done
# every type of exit code is there too
for code in 0 1 2 3 4 5 130; do
    expect_that "the man page has exit code $code" grep -qx "\.B $code" "$SOURCE/../../app/cli/man/stagewright.1"
done
