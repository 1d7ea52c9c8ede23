# run_test.bash NAME: runs NAME.sh in its own empty folder, with the expectations of the command-line tests.
set -euo pipefail
SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rm -rf "$WORK"
mkdir -p "$WORK"
cd "$WORK"
# shellcheck source=../cli/expect.bash
source "$SOURCE/../cli/expect.bash"
skip() { printf 'skipped: %s\n' "$1"; exit 77; }
trap 'echo "ended early at: $BASH_COMMAND"' ERR
# shellcheck disable=SC1090
source "$SOURCE/$1.sh"
trap - ERR
finish
